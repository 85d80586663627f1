r"""How far single precision is to be trusted behind maps of pixels.

Behind a pool $1-\rho$ of similar inputs is a small difference of rounded sums, so the angle is uncertain. What follows
makes of that an uncertainty of the kernels: smooth activations hardly any, kinks one of the tangent kernel in
proportion to the angle, and activations that drive angles apart (steep ones, jumps) one of both. It is followed along
with the kernels, on some pixels of the first inputs, each with the same one of the second and with the one beside it,
and in double precision: as many pixels for all layers, so that one program serves them.
"""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int

from widelimit._base.compile import small_jit
from widelimit._base.trees import as_tree
from widelimit._base.types import Self, Tensor
from widelimit.activations import Activation

from ._pair import Pair

_SOME = 32  # pixels
_BESIDE = (
    1 / 8
)  # of pixels beside each other there are many kinds, and each is a small part of what is summed
PerPair = Float[Array, "pairs 2"]  # same pixels; pixels beside each other


@as_tree()
@dataclasses.dataclass(frozen=True)
class Doubt:
    """What rounding may have done to each pair of inputs; of pixels the mean, whose errors are independent.

    Attributes:
        angle: By how much angles are moved.
        tangent: Relative errors of the tangent kernel.
        kernel: Errors of correlations.
    """

    angle: PerPair
    tangent: PerPair
    kernel: PerPair

    @staticmethod
    def of(
        minus: Float[Array, "pairs p p"],
        before: Float[Array, "pairs p p"],
        same: Bool[Tensor, " pairs"],
    ) -> "Doubt":
        r"""Behind a map: $1-\rho$ is the small difference of numbers of the size `before`.

        It is 0, and certain, where a pixel of an input meets itself: `same` are the pairs of one input.
        """
        here, size = _some(minus), jnp.finfo(minus.dtype)
        lost = size.eps * _some(before)
        moved = lost / jnp.sqrt(2 * here + lost + size.tiny)
        angle = _mean(moved, minus.shape[1])
        angle = jnp.where(same[:, None] & np.array([[True, False]]), 0, angle)
        return Doubt(angle, jnp.zeros_like(angle), jnp.zeros_like(angle))

    def joined(self, other: "Doubt | None") -> Self:
        """That of signals which meet, or of one that is mapped again."""
        return self if other is None else jax.tree.map(jnp.add, self, other)

    def activated(self, block: Pair, activation: Activation) -> Self:
        """What an activation makes of it, whose input is this block."""
        return self._activated(activation, _some_pixels((), block), float(block.minus.shape[1]))

    def activated_apart(self, block: Pair, activation: Activation) -> Self:
        """The same by programs of its own, one of which serves all sizes."""
        return _activated(activation, self, _pixels((), block), float(block.minus.shape[1]))

    def _activated(
        self, activation: Activation, some: Pair, pixels: float | Float[Array, ""]
    ) -> Self:
        with jax.enable_x64(True):
            moved = self.angle[:, :, None].astype(jnp.float64) * jnp.sqrt(pixels)
            sine = jnp.sqrt(some.minus * jnp.maximum(2 - some.minus, 0))
            minus = jnp.clip(some.minus + moved * (sine + moved / 2), 0, 2)
            above = None if some.above is None else 2 - minus
            away = dataclasses.replace(some, minus=minus, above=above)
            here, there = some.activated(activation), away.activated(activation)
            change = jnp.zeros_like(minus)
            if activation.has_ntk:
                most = jnp.max(jnp.abs(here.ntk), axis=(1, 2), keepdims=True)
                change = (there.ntk - here.ntk) / most
            differ = _angle(there) - _angle(here), change, there.rho - here.rho
            turned, changed, lost = (_mean(d, pixels).astype(self.angle.dtype) for d in differ)
            return type(self)(turned, self.tangent + changed, lost)

    @property
    def each(self) -> Float[np.ndarray, " pairs"]:
        """What the kernels of each pair may be off by, relative to them."""
        both = np.maximum(self.tangent, self.kernel)
        return np.maximum(both[:, 0], _BESIDE * both[:, 1])


_activated = small_jit(
    lambda activation, doubt, some, pixels: doubt._activated(activation, some, pixels)
)


def _mean(values: Float[Array, "pairs 2 some"], pixels: float | Float[Array, ""]) -> PerPair:
    """The root of the mean square over pixels, divided by that of their number."""
    return jnp.sqrt(jnp.mean(values**2, axis=2) / pixels)


def _places(pixels: int) -> tuple[Int[np.ndarray, " some"], Int[np.ndarray, " some"]]:
    here = np.arange(_SOME) * pixels // _SOME
    return here, (here + 1) % pixels


def _some(matrix: Float[Array, "pairs p p"]) -> Float[Array, "pairs 2 some"]:
    here, beside = _places(matrix.shape[1])
    return jnp.stack([matrix[:, here, other] for other in (here, beside)], axis=1)


def _some_pixels(_: tuple[()], block: Pair) -> Pair:
    """Some pixels of a block, in float64."""
    here, beside = _places(block.minus.shape[1])
    wide = lambda a: None if a is None else _some(a).astype(jnp.float64)
    q1, q2 = block.q1[:, None, here, 0], block.q2[:, 0, :]
    q2 = jnp.stack([q2[:, here], q2[:, beside]], axis=1)
    minus = _some(block.minus).astype(jnp.float64)
    return Pair(q1, q2, minus, wide(block.above), jnp.ones_like(minus), block.how)


_pixels = small_jit(_some_pixels)


def _angle(block: Pair) -> Float[Array, "pairs 2 some"]:
    """The angle, near enough."""
    return jnp.sqrt(2 * jnp.maximum(block.minus, 0)) * (1 + block.minus / 12)
