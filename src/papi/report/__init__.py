"""The page that shows what a run learned, or how several runs compare.

Reads run folders; needs neither torch nor a network connection. Imports `config`, `data`, `runs`, `setup.data` and
`training.metrics`.
"""

from papi.report.page import comparison_page, run_page
from papi.report.reading import read_run
from papi.report.run import Run

__all__ = ["Run", "comparison_page", "read_run", "run_page"]
