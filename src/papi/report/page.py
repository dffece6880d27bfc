"""Renders the numbers, charts and pictures of a run as a single self-contained HTML file."""

import base64
import hashlib
from collections.abc import Sequence
from functools import cache
from importlib.resources import files
from pathlib import Path

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from papi import __version__
from papi.report import charts, pairs_of_runs, showcase, standins, tables
from papi.report.comparison import differences, standings
from papi.report.desk import desk
from papi.report.mistakes import find_reliability
from papi.report.pictures import small_images
from papi.report.run import Run

# Names may contain control characters, which HTML does not allow, and surrogates (if a folder name is not UTF-8), which
# no file can contain. The page shows a replacement character.
SCRIPTS = ("store", "estimate", "pictures", "one", "grid", "start")
_FORBIDDEN = (*range(0x20), *range(0x7F, 0xA0), *range(0xD800, 0xE000))
_SHOWN_AS = {code: "\ufffd" for code in _FORBIDDEN if chr(code) not in "\n\t"}


_SECTIONS = (
    ("look", "desk", "Images to review"),
    ("result", "facts", "Results"),
    ("labels", "strip", "Resolved labels"),
    ("standins", "standins", "Labels that occur together"),
    ("learning", "learning", "Learning curves"),
    ("sure", "sharpening", "Confidence"),
    ("mistakes", "mistakes", "Confused classes"),
    ("groups", "grouping", "Embedding"),
    ("trust", "trust", "Calibration"),
    ("choice", "choices", "Choosing an epoch"),
)
"""Sections in their order: the anchor, the value that is shown, and the title in the menu. Sections without a value are
omitted."""


def run_page(run: Run, folder: Path | None = None, served: bool = False) -> str:
    """Render the page of one run, for a file in a folder or for a server that saves decisions."""
    headings, epochs = tables.epochs(run)
    reliability = find_reliability(run)
    outcomes, mistakes = standins.outcomes(run), showcase.mistakes(run)
    values = {
        "desk": desk(run, folder, served),
        "facts": tables.headline(run),
        "strip": showcase.strip(run),
        "standins": standins.standins(run),
        "learning": charts.learning(run),
        "sharpening": charts.sharpening(run),
        "mistakes": mistakes,
        "grouping": charts.grouping(run),
        "trust": None if reliability is None else charts.trust(reliability),
        "choices": tables.choices(run),
    }
    menu = [(place, title) for place, value, title in _SECTIONS if values[value]]
    if mistakes is not None:
        menu = [(place, mistakes.heading if place == "mistakes" else title) for place, title in menu]
    return _render(
        "run.html.j2",
        **values,
        menu=[*menu, ("run", "This run")],
        title=f"{run.name}: PaPi report",
        run=run,
        meaning=tables.meaning(run),
        truth=tables.truth(run),
        outcomes=outcomes,
        vanished=standins.vanished(outcomes),
        certainty=[] if reliability is None else reliability.table,
        small_images=small_images([run]),
        epoch_headings=headings,
        epochs=epochs,
        command=tables.command(run),
        parent=tables.parent(run),
        fix_command=tables.fix_command(run, served),
        settings=tables.settings(run),
        versions=tables.versions(run),
    )


def comparison_page(runs: Sequence[Run], folder: Path | None = None) -> str:
    """Render the comparison of several runs. It lets a person decide between the two that differ most."""
    headings, rows = standings(runs)
    apart = differences(rows)
    most = next((each for each in apart if len(each.rows)), None)
    return _render(
        "comparison.html.j2",
        title=f"{len(runs)} runs compared",
        headings=headings,
        rows=rows,
        tasks=list(dict.fromkeys(row.task for row in rows)),
        overlaid=charts.overlaid(rows),
        against=charts.against(rows),
        differences=apart,
        pictured=pairs_of_runs.pictured(apart),
        desk=None if most is None else pairs_of_runs.between(most, folder),
        most=most,
        fix_command="" if most is None else tables.fix_command(most.a.run),
        small_images=small_images(runs),
    )


def _render(template: str, **values: object) -> str:
    """Render a template. The policy allows only the page's own script and no requests to other machines."""
    script = _script()
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    page = (
        _environment()
        .get_template(template)
        .render(
            **values,
            version=__version__,
            style=Markup(_part("style.css") + _part("desk/desk.css")),  # only our own files are not escaped  # nosec B704
            script=Markup(script),  # nosec B704
            # Photos next to the page, or from the server of the page.
            policy=(
                "default-src 'none'; img-src data: 'self' file:; connect-src 'self'; style-src 'unsafe-inline'; "
                f"script-src 'sha256-{digest}'; base-uri 'none'; form-action 'none'"
            ),
        )
    )
    return page.translate(_SHOWN_AS)


@cache
def _script() -> str:
    """Return the script of the review section as one function without global names."""
    parts = "\n".join(_part(f"desk/{name}.js") for name in SCRIPTS)
    return f'"use strict";\n(() => {{\n{parts}}})();\n'


@cache
def _environment() -> Environment:
    environment = Environment(
        loader=PackageLoader("papi.report"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters["percent"] = tables.percent
    return environment


def _part(name: str) -> str:
    return files("papi.report").joinpath("templates").joinpath(name).read_text(encoding="utf-8")
