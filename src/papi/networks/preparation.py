"""How a photo becomes the input of an encoder. Does not import torch, so what decodes photos can use it."""

import math
from dataclasses import asdict, dataclass
from typing import Literal, get_args

Interpolation = Literal["nearest", "bilinear", "bicubic", "lanczos", "box", "hamming"]  # the names that Pillow has
INTERPOLATIONS: tuple[Interpolation, ...] = get_args(Interpolation)
LARGEST_SIZE = 2048
_LARGE = 1e30  # what float32 can divide by


@dataclass(frozen=True)
class Preparation:
    """What a pretrained encoder expects: it saw photos of this size, with these statistics, resized in this way."""

    size: int = 224  # side of the square that it sees
    mean: tuple[float, float, float] = (0.485, 0.456, 0.406)  # of pixel values in [0, 1], by channel
    std: tuple[float, float, float] = (0.229, 0.224, 0.225)
    interpolation: Interpolation = "bicubic"

    def __post_init__(self) -> None:
        """Every value is of the kind it must be: they come from files of other people."""
        if type(self.size) is not int or not 1 <= self.size <= LARGEST_SIZE:
            raise ValueError(f"its input size is {self.size}: a whole number up to {LARGEST_SIZE} is needed")
        for name, numbers in (("mean", self.mean), ("std", self.std)):
            if len(numbers) != 3 or not all(type(number) in (int, float) for number in numbers):
                raise ValueError(f"its {name} is {numbers}: three numbers are needed")
        if not all(abs(number) < _LARGE for number in self.mean):
            raise ValueError(f"its mean is {self.mean}: finite numbers are needed")
        if not all(1 / _LARGE < number < _LARGE for number in self.std):
            raise ValueError(f"its std is {self.std}: numbers above zero are needed")
        if self.interpolation not in INTERPOLATIONS:
            raise ValueError(f"its interpolation is {self.interpolation}: known are {', '.join(INTERPOLATIONS)}")

    @property
    def kept(self) -> int:
        """Shorter side at which photos are kept: 8/7 of the size, so that the square in the middle is the photo's."""
        return math.ceil(self.size * 8 / 7)

    @property
    def shape(self) -> tuple[int, int, int]:
        """Of one prepared photo."""
        return (3, self.size, self.size)

    def to_json(self) -> dict[str, object]:
        """As values of JSON."""
        return asdict(self) | {"mean": list(self.mean), "std": list(self.std)}

    @classmethod
    def from_json(cls, values: object) -> "Preparation":
        """The inverse of `to_json`. What does not fit raises ValueError."""
        match values:
            case {"size": size, "mean": [*mean], "std": [*std], "interpolation": str(how), **others} if not others:
                return cls(size, tuple(mean), tuple(std), how)  # type: ignore[arg-type]
        raise ValueError("it does not say how photos are prepared")
