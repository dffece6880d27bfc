"""Write a software bill of materials: PaPi and its runtime dependencies, as installed here.

    python -m recipes.sbom dist/sbom.json

The format is CycloneDX 1.5 JSON. Extras and developer tools are left out: the list is what `pip install papi-pll`
installs.
"""

import json
import re
import sys
import uuid
from importlib.metadata import Distribution, PackageNotFoundError, distribution
from pathlib import Path

from packaging.requirements import Requirement

PROJECT = "papi-pll"
Component = dict[str, object]


def needed(name: str) -> dict[str, Distribution]:
    """A package and its direct and indirect dependencies on this machine, by name."""
    found: dict[str, Distribution] = {}
    waiting = [name]
    while waiting:
        plain = _plain(waiting.pop())
        if plain in found:
            continue
        try:
            found[plain] = distribution(plain)
        except PackageNotFoundError:  # for another system, or replaced by a package of another name
            continue
        waiting += requirements(found[plain])
    return found


def requirements(package: Distribution) -> list[str]:
    """The names of a package's direct dependencies here, without extras."""
    wanted = [Requirement(line) for line in package.requires or ()]
    return [each.name for each in wanted if each.marker is None or each.marker.evaluate({"extra": ""})]


def component(package: Distribution) -> Component:
    """A package as a CycloneDX component."""
    name, version = _plain(package.name), package.version
    place = f"pkg:pypi/{name}@{version.replace('+', '%2B')}"
    entry: Component = {"type": "library", "bom-ref": place, "name": name, "version": version, "purl": place}
    stated = "License-Expression"
    return entry | ({"licenses": [{"expression": package.metadata[stated]}]} if stated in package.metadata else {})


def bill(name: str = PROJECT) -> dict[str, object]:
    """The complete bill of materials. It is the same for the same packages."""
    packages = needed(name)
    parts = {plain: component(package) for plain, package in sorted(packages.items())}
    main = parts.pop(_plain(name))
    depends = [
        {
            "ref": component(package)["bom-ref"],
            "dependsOn": sorted(
                str(component(packages[_plain(each)])["bom-ref"])
                for each in set(requirements(package))
                if _plain(each) in packages
            ),
        }
        for _, package in sorted(packages.items())
    ]
    content = json.dumps([main, *parts.values()], sort_keys=True)
    return {
        "bomFormat": "CycloneDX",
        "specVersion": "1.5",
        "serialNumber": f"urn:uuid:{uuid.uuid5(uuid.NAMESPACE_URL, content)}",
        "version": 1,
        "metadata": {"component": main | {"type": "application"}},
        "components": list(parts.values()),
        "dependencies": depends,
    }


def _plain(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def main(file: Path) -> None:
    """Write the bill of materials."""
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(json.dumps(bill(), indent=2) + "\n")
    print(f"The bill of materials is in {file}.")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
