"""What a layer with weights contributes to kernels."""

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

from widelimit._base.scalars import Scalar
from widelimit._base.types import Tensor
from widelimit.layers import Window

Repeated = Scalar | Float[Array, "..."]  # a number, or one for each repetition


class Tap(eqx.Module):
    r"""What a layer $z=c_wWx+c_bb$ contributes to kernels.

    With pixels, $z_p=c_w\sum_oW_ox_{p(o)}+c_bb$: one matrix for all of them, which reads a window.

    Attributes:
        x: Its inputs, shape (points, *pixels, channels); in a scanned loop with a first axis of repetitions.
        z: Its outputs.
        tangent: $(c_w^2, c_b^2)$; the second is 0 without a bias.
        prior: The variances of $c_wW$ and $c_bb$ at initialisation.
        mask: Where its outputs are not there, if anywhere.
        graph: The transposed adjacencies, if there are any.
        window: Which pixels are read; None: the pixel itself.
        local: Whether each pixel has weights and a bias of its own.
        trained: Whether the weights are trained.
    """

    x: Float[Tensor, "..."]
    z: Float[Tensor, "..."] | None
    tangent: tuple[Repeated, Repeated]
    prior: tuple[Repeated, Repeated]
    mask: Bool[Tensor, "..."] | None = None
    graph: Float[Tensor, "..."] | None = None
    window: Window | None = eqx.field(default=None, static=True)
    local: bool = eqx.field(default=False, static=True)
    trained: bool = eqx.field(default=True, static=True)

    @property
    def scanned(self) -> int:
        """How many leading axes count repetitions: those that its numbers have too."""
        return jnp.ndim(self.tangent[0])


def is_tap(node: object) -> bool:
    """Whether a node of a tree is a tap."""
    return isinstance(node, Tap)
