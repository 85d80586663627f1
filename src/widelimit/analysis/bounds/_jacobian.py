r"""Bounds of the input-output Jacobian, as a pass over the network.

The norm of a product is at most the product of the norms. With high probability a Gaussian matrix
of n outputs and m inputs has norm at most $\sqrt n+\sqrt m+t$; with $t=\sqrt n$, n the width, a hidden layer
$\sigma_wW/\sqrt n$ contributes $3\sigma_w$, the first $\sigma_w(1+2\sqrt{n/d})$ and (with $t=\sqrt n-1$) the
output vector $2\sigma_w$. These slacks of order $\sqrt n$ outlive training, which moves a weight matrix by O(1).
"""

import dataclasses
import math
from typing import Any, NamedTuple

from widelimit._base.passes import layer_pass
from widelimit._base.scalars import as_count, concrete
from widelimit.layers import Dense, Identity, Layer, Phi, Repeat, Residual, Scale, Serial, Sum

from ._random_matrix import singular_values


class Factor(NamedTuple):
    """What a part of a network contributes to the bound.

    Attributes:
        layer: The part, as text.
        value: By how much it can stretch a change of its input, at most.
    """

    layer: str
    value: float


@dataclasses.dataclass(frozen=True)
class JacobianBound:
    """A bound of the spectral norm of df/dx; smaller means that f must be smoother.

    Attributes:
        value: The bound; `float(bound)` gives it too. Infinite where float64 cannot hold it.
        log10: Its decimal logarithm, which never overflows.
        probability: With at least this probability over the initial weights.
        failure: One minus the probability, at most; it keeps its digits where that rounds to 1.
        factors: The contributions of the network's parts, input first; their product is the bound.
        width: The width n.
        input_dim: The input dimension d.
        outputs: The number of outputs.
    """

    value: float
    log10: float
    probability: float
    failure: float
    factors: tuple[Factor, ...]
    width: int
    input_dim: int
    outputs: int

    def __float__(self) -> float:
        return self.value


class Stretch(NamedTuple):
    """The state of the pass: how much the layers so far can stretch, and what that rests on.

    Attributes:
        value: The factor.
        log10: Its decimal logarithm.
        width: The number of components of the output.
        failure: The probability that one of the matrices is larger than assumed, at most.
    """

    value: float
    log10: float
    width: int
    failure: float

    def then(self, after: "Stretch") -> "Stretch":
        """One part after another."""
        value, log10 = _times(self.value, after.value), self.log10 + after.log10
        return Stretch(value, log10, after.width, self.failure + after.failure)


class Sizes(NamedTuple):
    """Widths that the network itself does not state.

    Attributes:
        hidden: The width n.
        output: The width of a Dense that ends the network, None inside.
    """

    hidden: int
    output: int | None


def _times(a: float, b: float) -> float:
    return 0.0 if a == 0 or b == 0 else a * b  # 0 * inf is 0 here


def _stretch(value: float, width: int, failure: float = 0.0) -> Stretch:
    return Stretch(value, math.log10(value) if value > 0 else -math.inf, width, failure)


def _number(value: Any, name: str) -> float:
    number = concrete(value)
    if number is None:
        raise TypeError(f"The bounds need concrete numbers, but {name} is being traced by JAX.")
    return abs(number)


@layer_pass("its Jacobian is bounded")
def stretch(layer: Layer, width: int, sizes: Sizes) -> Any:
    """How much the layer can stretch a change of its input of the given width, at most."""


@stretch.register
def _stretch_dense(layer: Dense, width: int, sizes: Sizes) -> Stretch:
    ends = sizes.output is not None
    out = layer.width or (sizes.output if ends else sizes.hidden) or 1
    # At the output the slack is that of a single vector: 1 + sqrt(n) + t = 2 sqrt(n).
    t = math.sqrt(width) - 1 if ends else math.sqrt(sizes.hidden)
    lemma = singular_values(out, width, t=t)
    value = _number(layer.w_std, "w_std") * (lemma.high / math.sqrt(width))
    return _stretch(value, out, lemma.failure)


@stretch.register
def _stretch_phi(layer: Phi, width: int, sizes: Sizes) -> Stretch:
    if layer.activation.lipschitz is None:
        raise ValueError(
            f"The activation {layer.activation.name!r} has no finite Lipschitz constant, or none is "
            "declared, so no Jacobian bound exists. If sup|phi'| is finite, declare it: "
            f"Activation({layer.activation.name!r}, fn, lipschitz=...)."
        )
    return _stretch(layer.activation.lipschitz, width)


@stretch.register
def _stretch_identity(layer: Identity, width: int, sizes: Sizes) -> Stretch:
    return _stretch(1.0, width)


@stretch.register
def _stretch_scale(layer: Scale, width: int, sizes: Sizes) -> Stretch:
    return _stretch(_number(layer.factor, "factor"), width)


@stretch.register
def _stretch_serial(layer: Serial, width: int, sizes: Sizes) -> Stretch:
    total = _stretch(1.0, width)
    for part, part_sizes in _with_sizes(layer, sizes):
        total = total.then(stretch(part, total.width, part_sizes))
    return total


def _with_sizes(layer: Serial, sizes: Sizes) -> list[tuple[Layer, Sizes]]:
    """The last part that sets a width is the output layer; elementwise parts may follow it."""
    inner = Sizes(sizes.hidden, None)
    setters = [i for i, p in enumerate(layer.layers) if not isinstance(p, Phi | Scale | Identity)]
    last = setters[-1] if setters else -1
    return [(p, sizes if i == last else inner) for i, p in enumerate(layer.layers)]


@stretch.register
def _stretch_repeat(layer: Repeat, width: int, sizes: Sizes) -> Stretch:
    total = _stretch(1.0, width)
    inner = Sizes(sizes.hidden, None)
    rounds = layer.times - 1 if sizes.output is not None else layer.times
    for done in range(max(rounds, 0)):
        part = stretch(layer.body, total.width, inner)
        if part.width == total.width:  # widths are settled: the remaining rounds are all alike
            total = total.then(_power(part, rounds - done))
            break
        total = total.then(part)
    if rounds < layer.times:
        total = total.then(stretch(layer.body, total.width, sizes))
    return total


def _power(part: Stretch, times: int) -> Stretch:
    try:
        value = part.value**times
    except OverflowError:
        value = math.inf
    log10 = part.log10 * times if times else 0.0
    return Stretch(value, log10, part.width, part.failure * times)


@stretch.register
def _stretch_residual(layer: Residual, width: int, sizes: Sizes) -> Stretch:
    body = stretch(layer.body, width, Sizes(sizes.hidden, None))
    value = 1 + _times(_number(layer.alpha, "alpha"), body.value)
    return _stretch(value, width, body.failure)


@stretch.register
def _stretch_sum(layer: Sum, width: int, sizes: Sizes) -> Stretch:
    parts = [stretch(branch, width, sizes) for branch in layer.branches]
    failure = sum(part.failure for part in parts)
    return _stretch(sum(part.value for part in parts), parts[-1].width, failure)


def jacobian(net: Layer, *, width: int, input_dim: int, outputs: int = 1) -> JacobianBound:
    r"""A bound of $\|\partial f/\partial x\|$ for a finite network in the NTK regime, with high probability.

    MLP: $2C\sigma_w^2(1+2\sqrt{n/d})(3C\sigma_w)^{L-1}$.
    ResNet: $2\sigma_w(1+2\sqrt{n/d})(1+9\alpha C\sigma_v\sigma_w)^L$. Here $C=\sup|\varphi'|$.
    Any other network of `Dense`, `Phi`, `Residual`, `Repeat`, `Serial`, `Sum`: the product of its
    parts, a residual block counting $1+|\alpha|\cdot$branch.

    Args:
        net: The network. Where a `Dense` states its width, that width holds.
        width: n, the width of all other hidden layers.
        input_dim: d.
        outputs: The number of outputs.

    Returns:
        The bound with its factors and its probability.

    Example:
        >>> import widelimit as wl
        >>> float(jacobian(wl.mlp(depth=5), width=2000, input_dim=2))
        10407.77961894...
        >>> float(jacobian(wl.resnet(depth=5, alpha=0.1), width=2000, input_dim=2))
        3181.567...

    Reference:
        Tirer, Bruna and Giryes (2022), equations 16 to 21.
    """
    if not isinstance(net, Layer):
        raise TypeError(f"A network was expected, got {net!r} ({type(net).__name__}).")
    width = as_count(width, "width", minimum=1)
    input_dim = as_count(input_dim, "input_dim", minimum=1)
    sizes = Sizes(width, as_count(outputs, "outputs", minimum=1))
    whole = net if isinstance(net, Serial) else Serial(net)
    total, factors = _stretch(1.0, input_dim), []
    for part, part_sizes in _with_sizes(whole, sizes):
        step = stretch(part, total.width, part_sizes)
        factors.append(Factor(repr(part), step.value))
        total = total.then(step)
    failure = min(1.0, total.failure)
    return JacobianBound(
        total.value, total.log10, 1 - failure, failure, tuple(factors), width, input_dim, outputs
    )
