"""Layers without weights that move or forget pixels."""

from typing import Any, ClassVar

import equinox as eqx

from widelimit._base.names import unknown
from widelimit._base.scalars import as_count

from ._conv import as_extent, as_padding
from ._layer import Layer
from ._maps import LinearMap, Neighbours, Pool, Resized, Whole
from ._windows import Extent, Sites, Window


def _as_stride(value: Any) -> Extent | None:
    return None if value is None else as_extent("stride")(value)


class AvgPool(Layer):
    """The average of the pixels in a window.

    Attributes:
        window: Its size; one number means the same along all axes.
        stride: How far it moves; None: by its size.
        padding: "valid", "same" or "circular".
        normalise_edges: Whether, where padding is read, the sum is divided by the number of pixels that
            exist instead of the window's.

    Reference:
        Li et al. (2019), Enhanced convolutional neural tangent kernels.
    """

    cites: ClassVar[tuple[str, ...]] = ("li2019enhanced",)

    window: Extent = eqx.field(static=True, converter=as_extent("window"))
    stride: Extent | None = eqx.field(default=None, static=True, converter=_as_stride)
    padding: str = eqx.field(default="valid", static=True, converter=as_padding)
    normalise_edges: bool = eqx.field(default=False, static=True)

    def __check_init__(self) -> None:
        if not isinstance(self.normalise_edges, bool):
            raise TypeError(f"normalise_edges must be True or False, got {self.normalise_edges!r}.")

    @property
    def map(self) -> LinearMap:
        """What it does to pixels."""
        window = Window(self.window, self.stride or self.window, self.padding)
        return LinearMap.of(Pool(window, True, self.normalise_edges))


class SumPool(Layer):
    """The sum of the pixels in a window; the fields of `AvgPool`.

    Attributes:
        window: Its size.
        stride: How far it moves; None: by its size.
        padding: "valid", "same" or "circular".
    """

    cites: ClassVar[tuple[str, ...]] = ("li2019enhanced",)

    window: Extent = eqx.field(static=True, converter=as_extent("window"))
    stride: Extent | None = eqx.field(default=None, static=True, converter=_as_stride)
    padding: str = eqx.field(default="valid", static=True, converter=as_padding)

    @property
    def map(self) -> LinearMap:
        """What it does to pixels."""
        return LinearMap.of(
            Pool(Window(self.window, self.stride or self.window, self.padding), False)
        )


class GlobalAvgPool(Layer):
    """The average of all pixels: the output is a vector."""

    cites: ClassVar[tuple[str, ...]] = ("novak2019bayesian", "arora2019exact")

    @property
    def map(self) -> LinearMap:
        """What it does to pixels."""
        return LinearMap.of(Whole(average=True))


class GlobalSumPool(Layer):
    """The sum of all pixels: the output is a vector."""

    cites: ClassVar[tuple[str, ...]] = ("novak2019bayesian", "arora2019exact")

    @property
    def map(self) -> LinearMap:
        """What it does to pixels."""
        return LinearMap.of(Whole(average=False))


def _as_shape(value: Any) -> Sites:
    sizes = value if isinstance(value, tuple | list) else (value,)
    if not 1 <= len(sizes) <= 3:
        raise ValueError(f"shape has 1 to 3 axes, got {value!r}.")
    return tuple(as_count(v, "shape", minimum=1) for v in sizes)


def _as_method(value: Any) -> str:
    if value not in ("linear", "nearest"):
        raise ValueError(unknown("method", value, ("linear", "nearest")))
    return value


class Resize(Layer):
    """Interpolates to another number of pixels, as `jax.image.resize` does.

    Attributes:
        shape: The new size of each spatial axis.
        method: "linear" or "nearest".
    """

    shape: Sites = eqx.field(static=True, converter=_as_shape)
    method: str = eqx.field(default="linear", static=True, converter=_as_method)

    @property
    def map(self) -> LinearMap:
        """What it does to pixels."""
        return LinearMap.of(Resized(self.shape, self.method))


class Aggregate(Layer):
    r"""The sum over the neighbours in each input's own graph: $y_p=\sum_aA_{ap}x_a$ (inputs are `Graphs`).

    Reference:
        Du et al. (2019), Graph neural tangent kernel.
    """

    cites: ClassVar[tuple[str, ...]] = ("du2019graph",)

    @property
    def map(self) -> LinearMap:
        """What it does to nodes."""
        return LinearMap.of(Neighbours())


class Flatten(Layer):
    r"""All pixels as channels of one vector: $K'=\frac1P\sum_pK(p,p)$."""

    cites: ClassVar[tuple[str, ...]] = ("novak2019bayesian",)
