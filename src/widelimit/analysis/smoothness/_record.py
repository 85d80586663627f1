"""What a measure returns: a number that knows its direction and its resolution."""

import dataclasses

import numpy as np
from jaxtyping import Float

SMALLER = "smaller is smoother"
LARGER = "larger is smoother"


@dataclasses.dataclass(frozen=True, eq=False)
class Measure:
    """A measure of smoothness with everything that its value depends on.

    Attributes:
        value: The number; `float(measure)` gives it too.
        name: Which measure it is.
        direction: "smaller is smoother" or "larger is smoother".
        points: The number of grid points along each axis; values of different N are not comparable.
        floor: The floor of the eigenvalues, relative to the largest, where there is one.
        band: The highest harmonic that was used, where there is a limit.
        source: Where the numbers come from ("grid values", "exact coefficients", ...).
        noise: What the rounding of the values alone adds; below it the measure says nothing.
        each: The single values where `value` is their mean, as over several lines.
    """

    value: float
    name: str
    direction: str
    points: tuple[int, ...] = ()
    floor: float | None = None
    band: int | None = None
    source: str = "grid values"
    noise: float = 0.0
    each: Float[np.ndarray, " lines"] | None = None

    @property
    def N(self) -> int | tuple[int, ...]:
        """The number of points: an integer in one dimension, a tuple in several."""
        return self.points[0] if len(self.points) == 1 else self.points

    def smoother_than(self, other: "Measure") -> bool:
        """Compare in the right direction, and refuse what cannot be compared.

        Args:
            other: A value of the same measure at the same resolution.

        Returns:
            Whether this function is the smoother one.
        """
        mine = (self.name, self.points, self.floor, self.band)
        others = (other.name, other.points, other.floor, other.band)
        if mine != others:
            raise ValueError(
                f"These values cannot be compared: {self} against {other}. The measure depends on "
                "its grid, floor and band; compute both with the same settings."
            )
        return self.value < other.value if self.direction == SMALLER else self.value > other.value

    def __float__(self) -> float:
        return float(self.value)

    def __str__(self) -> str:
        settings = [self.direction]
        if self.points:
            settings.append("N = " + " x ".join(map(str, self.points)))
        if self.floor is not None:
            settings.append(f"floor = {self.floor:g}")
        if self.band is not None:
            settings.append(f"|k| <= {self.band}")
        return f"{self.name} = {self.value:.6g} ({', '.join(settings)})"
