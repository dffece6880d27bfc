"""The page: what the numbers, charts and pictures of a run look like, put into one file that needs nothing else."""

import base64
import hashlib
from collections.abc import Sequence
from functools import cache
from importlib.resources import files

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from papi import __version__
from papi.report import charts, pairs_of_runs, showcase, tables
from papi.report.comparison import differences, standings
from papi.report.mistakes import find_reliability
from papi.report.pictures import small_images
from papi.report.run import Run

# Names may hold control characters, which HTML does not allow, and surrogates, which no file can hold: a folder whose
# name is no UTF-8 has them. The page shows that there is one.
_FORBIDDEN = (*range(0x20), *range(0x7F, 0xA0), *range(0xD800, 0xE000))
_SHOWN_AS = {code: "\ufffd" for code in _FORBIDDEN if chr(code) not in "\n\t"}


def run_page(run: Run) -> str:
    """One run as a page."""
    headings, epochs = tables.epochs(run)
    reliability = find_reliability(run)
    return _render(
        "run.html.j2",
        title=f"{run.name}: what was learned from ambiguous labels",
        run=run,
        facts=tables.headline(run),
        meaning=tables.meaning(run),
        truth=tables.truth(run),
        strip=showcase.strip(run),
        desk=showcase.desk(run),
        learning=charts.learning(run),
        sharpening=charts.sharpening(run),
        mistakes=showcase.mistakes(run),
        grouping=charts.grouping(run),
        trust=None if reliability is None else charts.trust(reliability),
        certainty=[] if reliability is None else reliability.table,
        choices=tables.choices(run),
        held_out=tables.has_held_out(run),
        small_images=small_images([run]),
        epoch_headings=headings,
        epochs=epochs,
        command=tables.command(run),
        parent=tables.parent(run),
        fix_command=tables.fix_command(run),
        settings=tables.settings(run),
        versions=tables.versions(run),
    )


def comparison_page(runs: Sequence[Run]) -> str:
    """Several runs on one page."""
    headings, rows = standings(runs)
    apart = differences(rows)
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
        small_images=small_images(runs),
    )


def _render(template: str, **values: object) -> str:
    """Fill in a template. The policy lets the page's own script run and lets nothing be fetched from anywhere."""
    script = _part("decide.js")
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    page = (
        _environment()
        .get_template(template)
        .render(
            **values,
            version=__version__,
            style=Markup(_part("style.css")),  # our own files are the only text that is not escaped  # nosec B704
            script=Markup(script),  # nosec B704
            policy=f"default-src 'none'; img-src data:; style-src 'unsafe-inline'; script-src 'sha256-{digest}'",
        )
    )
    return page.translate(_SHOWN_AS)


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
