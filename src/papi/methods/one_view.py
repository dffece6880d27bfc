"""The base class of methods that learn from a single view of each image, with the choice of that view."""

from dataclasses import dataclass
from typing import Annotated, Literal

from papi.methods.base import Method
from papi.methods.config import MethodConfig
from papi.methods.ranges import Among


@dataclass(frozen=True)
class OneViewConfig(MethodConfig):
    """Settings of every method with one view."""

    view: Annotated[Literal["weak", "plain"], Among(("weak", "plain"))] = "weak"
    """The view to train on: `weak` flips and shifts each image as PaPi does, for a fair comparison; `plain` leaves
    images unchanged, as the releases of these methods do."""

    @property
    def view_names(self) -> tuple[str, ...]:
        """The chosen view."""
        return (self.view,)


class OneView(Method):
    """A method whose batches hold one view, `batch.views[0]`."""

    Config = OneViewConfig
