"""Write the results pages from their templates in `recipes/pages` and the stored rows.

A template is Markdown with placeholders that `recipes.measured` fills from rows, so no number in a sentence is typed by
hand. `holds` checks other claims of a sentence, and reports those that are no longer true.
"""

import re
import statistics
from collections.abc import Callable
from pathlib import Path

import jinja2

from papi.errors import UserError
from papi.experiments import SUITES, cpu
from papi.experiments.results import Results
from papi.experiments.suites import Scale, Suite
from recipes import glance, held_out, human_answers, human_votes, measured, overview, page

TEMPLATES = Path(__file__).parent / "pages"
SUMMARY = "results"  # docs/results.md
SETTINGS = "settings"  # docs/results/settings.md, measurements outside all suites
ORDER = (
    "uniform", "instance-dependent", "budget", "forms", "real-world", "other-data", "many-classes", "noise", "ablation",
    "augmentation", "cost", "figures",
)  # fmt: skip
_ABOUT_COLUMNS: tuple[Callable[..., object], ...] = (
    measured.where, measured.names, measured.uniform, measured.won, measured.winners, measured.close, measured.means,
    measured.gaps, measured.leads, measured.mean_leads, measured.gains, measured.ratios, measured.finished,
    measured.average,
)  # fmt: skip


class Writer:
    """Writes pages to the documentation folder."""

    def __init__(self, results: Results, docs: Path) -> None:
        self.results, self.docs = results, docs
        self.untrue: list[str] = []  # claims on pages that the rows contradict
        self._pages = jinja2.Environment(
            loader=jinja2.FileSystemLoader(TEMPLATES),
            undefined=jinja2.StrictUndefined,
            trim_blocks=True,
            lstrip_blocks=True,
            keep_trailing_newline=True,
            finalize=_told,
            autoescape=False,  # Markdown, not HTML
        )
        found = measured.Measured(results)
        asked = (found.column, found.columns, found.merged, found.count, found.hours, *_ABOUT_COLUMNS)
        self._pages.globals |= {function.__name__: function for function in asked}
        self._pages.globals |= {
            "family": lambda name: overview.columns(name, results),
            "default": measured.default_form(),
            "EPOCHS": cpu.EPOCHS,
            "BUDGET": cpu.BUDGET,
            "IMAGES": f"{cpu.IMAGES:,}",
        }
        filters: dict[str, Callable[..., object]] = {
            "in_words": measured.in_words,
            "two": lambda value: f"{value:.2f}",
            "whole": lambda value: f"{value:.0f}",
            "signed": lambda value: f"{value:+.1f}",
            "mean": statistics.mean,
            "enumerated": lambda values: measured.enumerated([_told(value) for value in values]),
        }
        self._pages.filters |= filters

    def suite(self, suite: Suite, scale: Scale) -> Path:
        """Write the page of a suite. Without a template, it has only tables and figures."""
        own = scale == "cpu" and suite.name in SUITES["cpu"]
        file = self.docs / "results" / f"{suite.name if scale == 'cpu' else f'{suite.name}-{scale}'}.md"
        parts = page.parts(suite, scale, self.results, file.parent)
        return self._write(file, suite.name if own else "suite", vars(parts))

    def summary(self) -> list[Path]:
        """Write the pages that cover several suites: the overview, and how settings were chosen."""
        folder = self.docs / "results"
        glance.write(self.results, folder)
        values = {
            "suites": {name: SUITES["cpu"][name] for name in ORDER},
            "table": {name: overview.family(name, self.results) for name in overview.FAMILIES},
            "real_world": overview.real_world(self.results),
            "hidden": glance.hidden(self.results),
            "figure": f"results/{glance.NAME}.svg",
            "one_pass_leads": held_out.one_pass_leads(),
            "held_out": held_out.table(list(held_out.read_rows().values())),
            "votes": _votes(),
            "people": {str(row["table"]): row for row in human_answers.kept()},
        }
        return [
            self._write(self.docs / f"{SUMMARY}.md", SUMMARY, values),
            self._write(folder / f"{SETTINGS}.md", SETTINGS, values),
        ]

    def _write(self, file: Path, template: str, values: dict[str, object]) -> Path:
        try:
            text = self._pages.get_template(f"{template}.md").render(values, holds=self._holds(template))
        except UserError as error:
            raise UserError(f"recipes/pages/{template}.md: {error}") from error
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(re.sub(r"\n{3,}", "\n\n", text).rstrip() + "\n", encoding="utf-8")
        return file

    def _holds(self, template: str) -> Callable[[bool, str], str]:
        def holds(true: bool, claim: str) -> str:
            """Add nothing to the page; record the claim if it is not true."""
            if not true:
                self.untrue.append(f"recipes/pages/{template}.md says that {claim}, but the rows contradict it.")
            return ""

        return holds


def _votes() -> dict[str, float]:
    """Mean test accuracy in % on human votes, with and without the set prior."""
    found: dict[str, list[float]] = {}
    for row in human_votes.kept():
        found.setdefault(str(row["set_prior"]), []).append(100 * float(str(row["test_accuracy"])))
    return {prior: statistics.mean(values) for prior, values in found.items()}


def _told(value: object) -> str:
    """Format a value; floats get one decimal place."""
    return f"{value:.1f}" if isinstance(value, float) else str(value)
