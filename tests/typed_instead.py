"""What is typed in place of commands that would take too long in a test, or need what is not on the machine.

Every other command block of the documentation runs as it is printed. A row of this table says why a command does not,
and what is done in its place: a smaller command of the same kind is typed, or a check is made. The `papi` command as it
is printed must be accepted by the real parser in any case.
"""

import re
import shlex
import signal
import socket
import subprocess
import threading
import tomllib
from collections.abc import Callable
from dataclasses import dataclass
from http.client import HTTPConnection
from importlib.util import find_spec

import papi.cli
from command import papi_exit_code
from pages import ROOT, require_tests


@dataclass(frozen=True)
class Instead:
    """Commands (a regular expression for the whole line), why they are not typed, and what is done in their place."""

    commands: str
    why: str
    type: str | None = None
    """The command to type; groups of the expression are \\1, \\2, … and all of it is \\g<0>."""
    check: Callable[[str], None] | None = None


def instead_of(line: str) -> Instead | None:
    """The row for a command, if it is not run as printed."""
    rows = [row for row in TABLE if re.fullmatch(row.commands, line)]
    assert len(rows) <= 1, f"{line}: tests/typed_instead.py has {len(rows)} rows for it; leave one."
    return rows[0] if rows else None


def require_understood(line: str) -> None:
    """Fail unless the real parser accepts a `papi` command."""
    words = [word for word in shlex.split(line) if not re.match(r"[A-Z_]+=", word)]
    if "papi" in words[:1] or words[0] == "torchrun":
        papi.cli.app.parse_args(words[words.index("papi") + 1 :], exit_on_error=False, print_error=False)


def is_a_target(line: str) -> None:
    """`make` knows the target and all that it needs."""
    done = subprocess.run([*line.split(), "--dry-run"], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"{line}: {done.stderr}"


def is_an_extra(line: str) -> None:
    """The package has the extra that is to be installed."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    (named,) = re.findall(r"([\w-]+)\[([\w,]+)\]", line)
    assert named[0] == project["name"]
    assert set(named[1].split(",")) <= project["optional-dependencies"].keys()


def serves_until_stopped(line: str) -> None:
    """The command answers a browser on its port, and ends well with Ctrl-C."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]

    ended = threading.Event()

    def stop_when_it_answers() -> None:
        while not ended.wait(0.1):
            browser = HTTPConnection("127.0.0.1", port, timeout=10)
            try:
                browser.request("GET", "/")
                browser.getresponse()  # a connection alone is accepted before the command waits for Ctrl-C
            except OSError:
                continue
            finally:
                browser.close()
            signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)
            return

    visitor = threading.Thread(target=stop_when_it_answers)
    visitor.start()
    try:
        code = papi_exit_code(*shlex.split(line)[1:], "--port", port)
    finally:
        ended.set()
        visitor.join()
    assert code == 0, line


def needs(*files: str) -> Callable[[str], None]:
    """The files that the command uses are in the repository."""

    def check(line: str) -> None:
        assert [file for file in files if not (ROOT / file).exists()] == [], line

    return check


def tested_by(*tests: str) -> Callable[[str], None]:
    """Other tests run it; they exist, and so does the program."""

    def check(line: str) -> None:
        require_tests(line, " ".join(f"`{test}`" for test in tests))
        if module := re.match(r"python -m (\S+)", line):
            assert find_spec(module[1]) is not None, line

    return check


_RESULTS = "python -m recipes.results"
TABLE = (
    Instead("git clone .*", "the address depends on where the repository is", check=needs("pyproject.toml")),
    Instead(
        r"(python -m venv \.venv( && )?)?(\.venv/bin/pip install -c constraints.txt \.)?",
        "it downloads all dependencies; the test installs the package without them",
        check=tested_by("tests/test_package.py::test_a_wheel_trains_from_another_folder"),
    ),
    Instead(r"source \.venv/bin/activate", "the tests have their environment", check=needs("pyproject.toml")),
    Instead(r"pip install 'papi-pll\[.*\]'", "it downloads packages", check=is_an_extra),
    Instead("make .*", "it installs packages and takes minutes", check=is_a_target),
    Instead("(papi report .*) --open", "it would open a browser", type=r"\1"),
    Instead(r"papi report \S+ --serve", "it serves until it is stopped", check=serves_until_stopped),
    Instead(
        "papi (bench|tune) .*--backend (dask|ray).*",
        "it needs a cluster; a test runs a grid on a small one of Dask",
        type=r"\g<0> --dry-run",
        check=tested_by("tests/experiments/test_grid.py::test_the_same_through_a_dask_cluster"),
    ),
    Instead(
        f"(papi bench|{_RESULTS}) uniform( --jobs 2)?|papi bench ablation --scale paper --device cuda",
        "it trains for hours or days",
        type=r"\g<0> --dry-run",
    ),
    Instead(
        "PYTHONPATH=. papi bench mine:SUITE --jobs 2",
        "six runs take too long",
        type=r"\g<0> --dry-run",
    ),
    Instead("(papi tune .*) --budget 20 --jobs 2", "20 trials take too long", type=r"\1 --budget 2 --epochs 1"),
    Instead("papi tune [a-z]+", "20 trials take too long", type=r"\g<0> --limit 50 --epochs 1 --budget 1"),
    Instead(
        "papi train .*--network timm:.*",
        "it downloads weights, or needs a file of them; a test runs an encoder of timm's kind",
        check=tested_by("tests/networks/test_pretrained.py::test_a_real_encoder"),
    ),
    Instead(
        "(papi train --preset paper) --epochs 3 --device cuda --precision ([a-z0-9]+)(.*)",
        "it needs a GPU",
        type=r"\1 --epochs 1 --limit 64 --network small --precision \2\3",
    ),
    Instead(
        "torchrun --nproc-per-node 8 (.*)",
        "eight processes are too many for two cores",
        type=r"torchrun --standalone --nproc-per-node 2 \1",
    ),
    Instead(
        r"(python recipes/validate\.py .*--epochs) \d+(.*)",
        "recipes do not read papi.toml",
        type=r"\1 1 --limit 50 --threads 1\2",
    ),
    Instead(
        r"papi train --(method|network) yours",
        "the file must be in the package; a test adds it to a copy of the sources",
        check=tested_by("tests/docs/test_contributing.py::test_inside_the_package"),
    ),
    Instead(
        "python -m recipes.same_weights HEAD",
        "it trains hundreds of runs",
        check=tested_by(
            "tests/recipes/test_same_weights.py::test_equal_sources_give_equal_models_and_a_failure_is_told",
            "tests/recipes/test_same_weights.py::test_the_sources_of_a_revision",
        ),
    ),
    Instead(
        f"{_RESULTS} .*--adopt.*",
        "it would change the pages of the repository",
        type=r"\g<0> --rows rows --write pages",
    ),
    Instead(
        f"{_RESULTS} all --tables-only",
        "it would change the pages of the repository",
        check=tested_by("tests/docs/test_results_page.py::test_writing_a_page_again_changes_nothing"),
    ),
    Instead("python -m recipes.architecture", "it would change a picture", type=r"\g<0> --out architecture.svg"),
    Instead(
        "python -m recipes.screenshots .*",
        "it needs Chromium, as the tests of the report in a browser do",
        check=tested_by("tests/browser/test_report_page.py::test_no_errors_no_requests_and_everything_is_visible"),
    ),
    Instead(
        "python -m benchmarks --quick",
        "it measures for a minute, and needs an idle machine",
        check=tested_by("tests/benchmarks/test_benchmark.py::test_exit_code_table_and_json"),
    ),
    Instead("(python -m recipes.samplers pool .*)", "it trains 360 runs", type=r"\1 --draws 1"),
    Instead(
        "python -m recipes.samplers compare .*",
        "it needs Optuna, which is not a dependency",
        check=tested_by("tests/recipes/test_samplers.py::test_samplers_are_compared"),
    ),
)
