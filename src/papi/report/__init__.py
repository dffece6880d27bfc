"""The HTML report on one run or a comparison of several runs.

Reads run folders and needs neither torch nor a network connection. Imports `config`, `data`, `runs`, `setup.data` and
`training.metrics`.
"""

from papi.report.page import comparison_page, run_page
from papi.report.reading import read_run
from papi.report.run import Run

__all__ = ["Run", "comparison_page", "read_run", "run_page"]
