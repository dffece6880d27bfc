"""The programs of the page on the estimator run, one after another, as a reader would run them."""

import pytest
from sklearn.model_selection import GridSearchCV

from pages import DOCS, blocks
from papi import PartialLabelClassifier

PAGE = (DOCS / "estimator.md").read_text()


def test_the_programs_of_the_page(capsys: pytest.CaptureFixture[str]) -> None:
    names: dict[str, object] = {}
    for program in blocks(PAGE, "python"):
        exec(program, names)
    fitted, search = names["clf"], names["search"]
    assert isinstance(fitted, PartialLabelClassifier)
    assert isinstance(search, GridSearchCV)
    assert str(search.best_params_) in capsys.readouterr().out
    assert len(fitted.labels_) == len(fitted.confidence_) == 200


def test_every_setting_is_explained() -> None:
    for name in PartialLabelClassifier().get_params():
        assert f"`{name}" in PAGE, name
