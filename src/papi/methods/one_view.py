"""What the methods that learn from a single view of each image share: the choice of that view."""

from dataclasses import dataclass
from typing import Annotated, Literal

from papi.methods.base import Method
from papi.methods.config import MethodConfig
from papi.methods.ranges import Among


@dataclass(frozen=True)
class OneViewConfig(MethodConfig):
    """Settings of every method with one view."""

    view: Annotated[Literal["weak", "plain"], Among(("weak", "plain"))] = "weak"
    """What it learns from: `weak` mirrors and shifts each image as PaPi does, so that a comparison is fair; `plain`
    leaves images untouched, as the releases of these methods do."""

    @property
    def view_names(self) -> tuple[str, ...]:
        """The one view that was chosen."""
        return (self.view,)


class OneView(Method):
    """A method whose batches hold one view, `batch.views[0]`."""

    Config = OneViewConfig
