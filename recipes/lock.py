"""Write requirements.lock: the versions in constraints.txt, each with the SHA-256 hashes of its files.

    python -m recipes.lock [WHEEL …]

Run `make lock` after changing constraints.txt. The hashes are those on PyPI for Linux and macOS wheels. Packages below
the line `DOCS` in constraints.txt go to requirements-docs.lock, which `make docs` installs. Wheels given as arguments
go to requirements-cpu.lock: torch without CUDA is not on PyPI, and pip would prefer PyPI's torch if one file listed
both.
"""

import hashlib
import re
import sys
import urllib.request
from collections.abc import Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

ROOT = Path(__file__).parents[1]
INDEX = "https://pypi.org/simple"
DOCS = "# For the documentation alone"
_LINK = re.compile(r'href="[^"]*/([^"/#]+)#sha256=([0-9a-f]{64})"')
_PYTHON = re.compile(r"-(py3|py2\.py3|cp3\d+\.py3|cp3\d|cp31[0-9])-[^-]+-(any|manylinux|macosx)[^-]*\.whl$")
_HEAD = """\
# The files that `make` installs, by their SHA-256. Made by `make lock` from constraints.txt; do not edit.
"""


def pins(constraints: str) -> dict[str, str]:
    """Versions by name, from lines such as `numpy==2.4.6`."""
    lines = [line.split("#")[0].strip() for line in constraints.splitlines()]
    return dict(line.split("==") for line in lines if line)


def hashes(page: str, version: str) -> list[str]:
    """The hashes of a version on a project's index page. The source distribution counts only if there is no wheel."""
    files = [(name, digest) for name, digest in _LINK.findall(page) if _version(name) == version]
    wheels = [digest for name, digest in files if _PYTHON.search(name)]
    return wheels or [digest for name, digest in files if name.endswith(".tar.gz")]


def _version(file: str) -> str:
    """The version in a file name, without a local part such as +cpu."""
    stem = re.sub(r"\.tar\.gz$", "", file)
    parts = stem.split("-") if file.endswith(".whl") else ["", stem.rpartition("-")[2]]
    return parts[1].replace("%2B", "+").partition("+")[0]


def wheel_text(wheels: Iterable[Path]) -> str:
    """The lines for local files, including the local part of their versions."""
    entries = []
    for wheel in sorted(wheels):
        name, version = wheel.name.split("-")[:2]
        entries.append(f"{name}=={version} --hash=sha256:{hashlib.sha256(wheel.read_bytes()).hexdigest()}")
    return _HEAD + "".join(f"{entry}\n" for entry in entries)


def _plain(name: str) -> str:
    """The normalised name used by the index."""
    return re.sub(r"[-_.]+", "-", name).lower()


def lock_text(versions: Mapping[str, str], found: Mapping[str, Iterable[str]]) -> str:
    """The lines of the file, in the format of `pip --require-hashes`."""
    entries = []
    for name, version in versions.items():
        lines = [f"{name}=={version}", *(f"    --hash=sha256:{digest}" for digest in sorted(set(found[name])))]
        entries.append(" \\\n".join(lines))
    return _HEAD + "\n".join(entries) + "\n"


def main(wheels: list[Path]) -> None:
    """Query the index for every pinned version and write the files."""
    text = (ROOT / "constraints.txt").read_text()
    versions = pins(text)

    def ask(name: str) -> list[str]:
        with urllib.request.urlopen(f"{INDEX}/{_plain(name)}/", timeout=60) as answer:
            digests = hashes(answer.read().decode(), versions[name])
        if not digests:
            raise SystemExit(f"{INDEX} has no file of {name} {versions[name]}.")
        return digests

    with ThreadPoolExecutor(8) as pool:
        found = dict(zip(versions, pool.map(ask, versions), strict=True))
    for file, part in zip(("requirements.lock", "requirements-docs.lock"), text.split(DOCS), strict=True):
        (ROOT / file).write_text(lock_text(pins(part), found))
    if wheels:
        (ROOT / "requirements-cpu.lock").write_text(wheel_text(wheels))


if __name__ == "__main__":
    main([Path(word) for word in sys.argv[1:]])
