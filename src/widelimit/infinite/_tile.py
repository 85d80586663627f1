"""What evaluates a tile of a kernel matrix: polynomials in the angle, or the layers."""

from typing import Any, NamedTuple, Protocol, runtime_checkable

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int

from ._correlation import Points
from ._layered import ByLayers
from ._pair import sizes
from ._plan import Numbers, Plan, join
from ._powers import AllPowers
from ._profile import Profiles

Counts = tuple[int | Int[Array, ""], int | Int[Array, ""]]


class Extra(NamedTuple):
    """What a program is given beside the network's numbers and the inputs.

    Attributes:
        vanishes: Whether a zero input has a kernel of zero.
        profiles: The profiles, if they are used and known beforehand.
        counts: How many rows of each input are points, if the others only fill up.
        powers: The profiles of the wanted kernels in powers, where all of them can be.
    """

    vanishes: bool | Bool[Array, ""]
    profiles: Profiles | None = None
    counts: Counts | None = None
    powers: AllPowers = None


class ByProfile(NamedTuple):
    """Evaluate a tile by polynomials in the angle."""

    plan: Plan
    profiles: Profiles
    vanishes: Bool[Array, ""]
    powers: AllPowers = None

    def sizes(self, points: Points) -> Float[Array, " n"]:
        """sqrt(K(x, x)) for each input, 0 where the kernel vanishes."""
        with jax.enable_x64(True):
            stretch = 1.0
            if self.plan.degree is not None:
                stretch = jnp.sqrt(points.q / self.profiles.variance) ** self.plan.degree
            size = jnp.sqrt(self.profiles.scale) * stretch
            return jnp.where(points.zero & self.vanishes, 0, size)

    def diagonal(self, points: Points) -> dict[str, Float[Array, " n"]]:
        """The kernels of each input with itself, in float64."""
        with jax.enable_x64(True):
            nngp = self.sizes(points) ** 2
            return {"nngp": nngp, "ntk": nngp * self.profiles.peak}

    def tile(
        self,
        minus: Float[Array, "r c"],
        plus: Float[Array, "r c"],
        edge1: Float[Array, " r"],
        edge2: Float[Array, " c"],
    ) -> tuple[Float[Array, "r c"], ...]:
        """The wanted kernels of one tile."""
        size = sizes(edge1[:, None], edge2[None, :], minus)
        return tuple(size * value for value in self.normalised(minus, plus))

    def normalised(
        self, minus: Float[Array, "r c"], plus: Float[Array, "r c"]
    ) -> tuple[Float[Array, "r c"], ...]:
        """The same divided by the sizes of both inputs."""
        if self.powers is not None:
            return tuple(p.at(minus, plus) for p in self.powers)
        terms = self.plan.terms or (None,) * len(self.plan.wanted)
        pick = zip(self.plan.wanted, terms, strict=True)
        return tuple(getattr(self.profiles, w).at(minus, plus, t) for w, t in pick)


@runtime_checkable
class Evaluator(Protocol):
    """What evaluates tiles: layer by layer, or by the profile."""

    def sizes(self, points: Points) -> Any:
        """What the tiles need to know of each input."""
        ...

    def diagonal(self, points: Points) -> dict[str, Float[Array, " n"]]:
        """The kernels of each input with itself, in float64."""
        ...

    def tile(
        self, minus: Float[Array, "r c"], plus: Float[Array, "r c"], edge1: Any, edge2: Any
    ) -> tuple[Float[Array, "r c"], ...]:
        """The wanted kernels of one tile."""
        ...


def evaluator(plan: Plan, numbers: Numbers, extra: Extra) -> Evaluator:
    """What evaluates a tile on the path that was chosen beforehand."""
    vanishes = jnp.asarray(extra.vanishes)
    if plan.path == "profile":
        assert extra.profiles is not None
        return ByProfile(plan, extra.profiles, vanishes, extra.powers)
    return ByLayers(join(plan.form, numbers), plan, vanishes)
