"""One page that shows what a run, or several, learned. Reads run folders; needs no torch and no network."""

from papi.report.page import comparison_page, run_page
from papi.report.reading import Run, read_run

__all__ = ["Run", "comparison_page", "read_run", "run_page"]
