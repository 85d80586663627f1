"""Convolutions: windows with fresh weights."""

from typing import Any, ClassVar

import equinox as eqx

from widelimit._base.names import unknown
from widelimit._base.scalars import Scalar, as_count, as_scalar, check_scalar

from ._layer import Layer
from ._nodes import as_width
from ._windows import PADDINGS, Extent, Window


def as_extent(name: str) -> Any:
    """A converter: a positive integer, or a tuple of them, one for each axis."""

    def convert(value: Any) -> Extent:
        if isinstance(value, tuple | list):
            if not 1 <= len(value) <= 3:
                raise ValueError(f"{name} has 1 to 3 axes, got {value!r}.")
            return tuple(as_count(v, name, minimum=1) for v in value)
        return as_count(value, name, minimum=1)

    return convert


def as_padding(value: Any) -> str:
    """One of the three paddings, in any case of letters."""
    if isinstance(value, str) and value.lower() in PADDINGS:
        return value.lower()
    raise ValueError(unknown("padding", value, PADDINGS))


class _Window(Layer):
    """The fields of the three convolutions."""

    cites: ClassVar[tuple[str, ...]] = ("novak2019bayesian", "arora2019exact")

    window: Extent = eqx.field(static=True, converter=as_extent("window"))
    width: int | None = eqx.field(default=None, static=True, converter=as_width)
    stride: Extent = eqx.field(default=1, static=True, converter=as_extent("stride"))
    padding: str = eqx.field(default="same", static=True, converter=as_padding)
    w_std: Scalar = eqx.field(default=1.0, converter=as_scalar)
    b_std: Scalar = eqx.field(default=0.0, converter=as_scalar)

    def __check_init__(self) -> None:
        check_scalar(self.w_std, "w_std")
        check_scalar(self.b_std, "b_std")
        axes = {len(given) for given in (self.window, self.stride) if isinstance(given, tuple)}
        if len(axes) > 1:
            raise ValueError(
                f"window {self.window} and stride {self.stride} have different numbers of axes."
            )

    @property
    def reads(self) -> Window:
        """Which pixels are read."""
        return Window(self.window, self.stride, self.padding)


class Conv(_Window):
    r"""A convolution in NTK parameterisation, over 1 to 3 spatial axes.

    $z_p=\frac{\sigma_w}{\sqrt{Fn}}\sum_oW_ox_{p(o)}+\sigma_bb$ with $F$ taps $o$, $n$ channels, all entries of
    $W$ and $b$ from $N(0,1)$; the bias is shared by the pixels. Division is by $\sqrt{Fn}$ also where padding is
    read. Kernels: $K'(p,r)=\frac{\sigma_w^2}F\sum_oK(p(o),r(o))+\sigma_b^2$, $\Theta'$ likewise plus $K'$.

    Attributes:
        window: The number of taps along each axis; one number means the same along all.
        width: The number of output channels of a finite network; unused at infinite width.
        stride: How far the window moves.
        padding: "same" (zeros, the odd one behind), "valid" (none) or "circular".
        w_std: $\sigma_w\ge0$.
        b_std: $\sigma_b\ge0$; 0 means that the layer has no bias.

    Reference:
        Novak et al. (2019), Bayesian deep convolutional networks with many channels are Gaussian processes.
    """


class ConvLocal(_Window):
    """A convolution with weights and biases of its own at each output position.

    As `Conv` at equal positions; signals at different ones are independent. The fields are those of `Conv`.

    Reference:
        Novak et al. (2019).
    """


class ConvTranspose(_Window):
    r"""The transposed convolution: pixels are spread out with zeros between them, then convolved.

    $z_q=\frac{\sigma_w}{\sqrt{Fn}}\sum_oW_o\,d_{q+o-a}+\sigma_bb$, $d$ the input with stride - 1 zeros between pixels
    (`jax.lax.conv_transpose`). The fields are those of `Conv`.
    """

    @property
    def reads(self) -> Window:
        """Which pixels are read."""
        return Window(self.window, self.stride, self.padding, transposed=True)
