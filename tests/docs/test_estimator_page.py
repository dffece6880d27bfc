"""The page on the estimator explains every setting."""

from pages import DOCS
from papi import PartialLabelClassifier

PAGE = (DOCS / "estimator.md").read_text()


def test_every_setting_is_explained() -> None:
    for name in PartialLabelClassifier().get_params():
        assert f"`{name}" in PAGE, name
