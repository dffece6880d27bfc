"""How a photo becomes the input of an encoder. Does not import torch, so that photo decoders can use it."""

import math
from dataclasses import asdict, dataclass
from typing import Literal, get_args

Interpolation = Literal["nearest", "bilinear", "bicubic", "lanczos", "box", "hamming"]  # names in Pillow
INTERPOLATIONS: tuple[Interpolation, ...] = get_args(Interpolation)
LARGEST_SIZE = 2048
_LARGE = 1e30  # largest divisor for float32


@dataclass(frozen=True)
class Preparation:
    """The input that a pretrained encoder expects: size, pixel statistics and interpolation of its photos."""

    size: int = 224  # side of its square input
    mean: tuple[float, float, float] = (0.485, 0.456, 0.406)  # of pixel values in [0, 1], by channel
    std: tuple[float, float, float] = (0.229, 0.224, 0.225)
    interpolation: Interpolation = "bicubic"

    def __post_init__(self) -> None:
        """Check the type of every value, because they may come from untrusted files."""
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
            raise ValueError(
                f"its interpolation is {self.interpolation}: it must be one of {', '.join(INTERPOLATIONS)}"
            )

    @property
    def kept(self) -> int:
        """Shorter side at which photos are stored: 8/7 of the size, of which the encoder sees the centre square."""
        return math.ceil(self.size * 8 / 7)

    @property
    def shape(self) -> tuple[int, int, int]:
        """The shape of one prepared photo."""
        return (3, self.size, self.size)

    def to_json(self) -> dict[str, object]:
        """Return JSON values."""
        return asdict(self) | {"mean": list(self.mean), "std": list(self.std)}

    @classmethod
    def from_json(cls, values: object) -> "Preparation":
        """The inverse of `to_json`. Invalid values raise ValueError."""
        match values:
            case {"size": size, "mean": [*mean], "std": [*std], "interpolation": str(how), **others} if not others:
                return cls(size, tuple(mean), tuple(std), how)  # type: ignore[arg-type]
        raise ValueError("it does not say how photos are prepared")
