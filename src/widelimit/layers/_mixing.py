"""Normalisation, noise, and the ways in which branches meet other than by a sum."""

from typing import Any, ClassVar

import equinox as eqx

from widelimit._base.names import unknown
from widelimit._base.scalars import Scalar, as_count, as_scalar, check_scalar, concrete

from ._layer import Layer, as_layer


def _as_over(value: Any) -> str:
    if value not in ("channels", "all"):
        raise ValueError(
            unknown("choice of axes over which to normalise", value, ("channels", "all"))
            + " The channels are always among them: without them the limit is not known."
        )
    return value


class LayerNorm(Layer):
    r"""$(z-\mathrm{mean})/\sqrt{\mathrm{variance}+\epsilon}$, without trained scale and shift.

    Attributes:
        over: "channels" (at each pixel), or "all" (channels and pixels together).
        eps: $\epsilon\ge0$.

    Reference:
        Yang (2019), Wide feedforward or recurrent neural networks of any architecture are Gaussian processes.
    """

    cites: ClassVar[tuple[str, ...]] = ("yang2019wide",)

    over: str = eqx.field(default="channels", static=True, converter=_as_over)
    eps: Scalar = eqx.field(default=0.0, converter=as_scalar)

    def __check_init__(self) -> None:
        check_scalar(self.eps, "eps")


class Dropout(Layer):
    r"""Keeps each entry with probability $\kappa$, divided by it; the others become 0.

    Each input has choices of its own, so kernels change only where an input meets itself at one pixel:
    there they are divided by $\kappa$. `x2=None` marks inputs that meet themselves; equal values do not.

    Attributes:
        keep: $\kappa$, in (0, 1].

    Reference:
        Novak et al. (2020), Neural tangents: fast and easy infinite neural networks in Python.
    """

    cites: ClassVar[tuple[str, ...]] = ("novak2020neural",)

    keep: Scalar = eqx.field(converter=as_scalar)

    def __check_init__(self) -> None:
        keep = concrete(self.keep)
        if keep is not None and not 0 < keep <= 1:
            raise ValueError(
                f"keep is the probability that an entry is kept, in (0, 1], got {keep:g}. For a dropout "
                "rate p write keep = 1 - p."
            )


def _branches(branches: tuple[Layer, ...], name: str) -> tuple[Layer, ...]:
    if len(branches) < 1:
        raise ValueError(f"{name} needs at least one branch.")
    return tuple(map(as_layer, branches))


class Concat(Layer):
    r"""The channels of all branches, one after another: $K'=\sum_iw_iK_i/\sum_iw_i$.

    A `Dense` or `Conv` must follow before the next activation.

    Attributes:
        branches: Layers that see the same input.
        widths: The proportions $w_i$ of their numbers of channels; None: all equal.
    """

    branches: tuple[Layer, ...]
    widths: tuple[int, ...] | None = eqx.field(default=None, static=True)

    def __init__(self, *branches: Layer, widths: tuple[int, ...] | None = None):
        self.branches = _branches(branches, "Concat")
        self.widths = (
            None if widths is None else tuple(as_count(w, "widths", minimum=1) for w in widths)
        )
        if self.widths is not None and len(self.widths) != len(branches):
            raise ValueError(f"{len(branches)} branches were given, but {len(self.widths)} widths.")

    def __repr__(self) -> str:
        tail = [] if self.widths is None else [f"widths={self.widths!r}"]
        return f"Concat({', '.join([*map(repr, self.branches), *tail])})"

    @property
    def proportions(self) -> tuple[int, ...]:
        """The widths, 1 for each branch unless stated."""
        return self.widths or (1,) * len(self.branches)


class Product(Layer):
    r"""The entrywise product of branches that are independent: $K'=\prod_iK_i$.

    $\Theta'=\sum_i\Theta_i\prod_{j\ne i}K_j$. A `Dense` or `Conv` must follow before the next activation.

    Attributes:
        branches: Layers that see the same input; all but one have weights of their own.
    """

    branches: tuple[Layer, ...]

    def __init__(self, *branches: Layer):
        self.branches = _branches(branches, "Product")

    def __repr__(self) -> str:
        return f"Product({', '.join(map(repr, self.branches))})"


class Frozen(Layer):
    r"""A layer whose weights are drawn, but not trained.

    The NNGP kernel is that of the layer; its own weights add nothing to the tangent kernel.

    Attributes:
        body: The layer, or several.

    Example:
        >>> import widelimit as wl
        >>> x = [[1.0, 0.0], [0.6, 0.8]]
        >>> features = wl.Frozen(wl.Dense() >> wl.Phi("relu")) >> wl.Dense()  # only the last layer learns
        >>> bool((wl.ntk(features, x) == wl.nngp(features, x)).all())
        True
    """

    body: Layer = eqx.field(converter=as_layer)
