r"""Bounds of the input-output Jacobian, as a state.

The norm of a product is at most the product of the norms. With high probability a Gaussian matrix
of n outputs and m inputs has norm at most $\sqrt n+\sqrt m+t$; with $t=\sqrt n$, n the width, a hidden layer
$\sigma_wW/\sqrt n$ contributes $3\sigma_w$, the first $\sigma_w(1+2\sqrt{n/d})$ and (with $t=\sqrt n-1$) the
output vector $2\sigma_w$. These slacks of order $\sqrt n$ outlive training, which moves a weight matrix by O(1).
"""

import dataclasses
import math
from collections.abc import Callable, Sequence
from typing import ClassVar, NamedTuple

from widelimit._base.scalars import Scalar, as_count, concrete
from widelimit._base.types import Self
from widelimit.activations import Activation
from widelimit.describe import expect_network, infer
from widelimit.interpret import State, interpret
from widelimit.layers import Layer, Serial

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


def lipschitz(act: Activation) -> float:
    r"""The declared constant $\sup|\varphi'|$, or an error."""
    if act.lipschitz is None:
        raise ValueError(
            f"The activation {act.name!r} has no finite Lipschitz constant, or none is declared, "
            "so no Jacobian bound exists. If sup|phi'| is finite, declare it: "
            f"Activation({act.name!r}, fn, lipschitz=...)."
        )
    return act.lipschitz


class Size(NamedTuple):
    """A factor that holds with high probability.

    Attributes:
        value: The factor.
        log10: Its decimal logarithm, which never overflows.
        failure: The probability that one of the matrices is larger than assumed, at most.
    """

    value: float = 1.0
    log10: float = 0.0
    failure: float = 0.0

    def times(self, factor: float, failure: float = 0.0) -> "Size":
        """This factor and then another one."""
        value = 0.0 if self.value == 0 or factor == 0 else self.value * factor  # also 0 * inf
        log10 = self.log10 + math.log10(factor) if factor > 0 else -math.inf
        return Size(value, log10, self.failure + failure)

    def then(self, after: "Size") -> "Size":
        """This factor and then another one, each with its failures."""
        value = 0.0 if self.value == 0 or after.value == 0 else self.value * after.value
        return Size(value, self.log10 + after.log10, self.failure + after.failure)

    def power(self, times: int) -> "Size":
        """This factor several times."""
        try:
            value = self.value**times
        except OverflowError:
            value = math.inf
        return Size(value, times * self.log10, times * self.failure)


@dataclasses.dataclass(frozen=True)
class Stretch(State):
    """How much the layers so far can stretch a change of the input.

    Attributes:
        inside: The factor if further weights follow.
        output: The factor if this signal is the output: its last matrix then has less slack.
        width: The number of components of the signal.
        hidden: The width n of hidden layers, whose root is their slack.
        widths: Those of the weight matrices that are still to come; all signals share them.
    """

    question: ClassVar[str] = "a Jacobian bound"

    inside: Size
    output: Size
    width: int
    hidden: int
    widths: list[int]

    def weighted(self, width: int | None) -> Self:
        out = self.widths.pop(0)
        # At the output the slack is that of a single vector: 1 + sqrt(n) + t = 2 sqrt(n).
        inside = self._by_matrix(out, math.sqrt(self.hidden))
        output = self._by_matrix(out, math.sqrt(self.width) - 1)
        return type(self)(inside, output, out, self.hidden, self.widths)

    def _by_matrix(self, out: int, slack: float) -> Size:
        lemma = singular_values(out, self.width, t=slack)
        return self.inside.times(lemma.high / math.sqrt(self.width), lemma.failure)

    def _times(self, factor: float) -> Self:
        inside, output = self.inside.times(factor), self.output.times(factor)
        return dataclasses.replace(self, inside=inside, output=output)

    def scaled(self, factor: Scalar) -> Self:
        number = concrete(factor)
        if number is None:
            raise TypeError("The bounds need concrete numbers, but one is being traced by JAX.")
        return self._times(abs(number))

    def biased(self, b_std: Scalar) -> Self:
        return self

    def activated(self, activation: Activation) -> Self:
        return self._times(lipschitz(activation))

    def branched(self) -> Self:
        return dataclasses.replace(self, inside=Size(), output=Size())

    def joined(self, skip: Scalar | None, parts: Sequence[Self]) -> Self:
        if skip is not None:
            through = self.branched().scaled(skip)
            inside = self.inside.times(*_added([through.inside, *(p.inside for p in parts)]))
            return dataclasses.replace(self, inside=inside, output=inside)
        inside = self.inside.times(*_added([part.inside for part in parts]))
        output = self.inside.times(*_added([part.output for part in parts]))
        return dataclasses.replace(self, inside=inside, output=output, width=parts[0].width)

    def repeated(self, step: Callable[[Self], Self], times: int) -> Self:
        """Rounds that do not change the width are all alike, but for the last one."""
        state, left = self, times
        while left > 1:
            before = len(self.widths)
            once = step(state.branched())
            if once.width != state.width:
                state = dataclasses.replace(once, inside=state.inside.then(once.inside))
                left -= 1
                continue
            del self.widths[: (left - 2) * (before - len(self.widths))]
            inside = state.inside.then(once.inside.power(left - 1))
            state, left = dataclasses.replace(state, inside=inside, output=inside), 1
        return step(state) if left else state


def _added(sizes: list[Size]) -> tuple[float, float]:
    return sum(size.value for size in sizes), sum(size.failure for size in sizes)


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
    expect_network(net)
    width = as_count(width, "width", minimum=1)
    input_dim = as_count(input_dim, "input_dim", minimum=1)
    outputs = as_count(outputs, "outputs", minimum=1)
    widths = [*infer(net, input_dim, width, outputs).widths]
    state, total, factors = Stretch(Size(), Size(), input_dim, width, widths), Size(), []
    for part in net.layers if isinstance(net, Serial) else (net,):
        state = interpret(part, state.branched())
        size = state.inside if widths else state.output
        factors.append(Factor(repr(part), size.value))
        total = total.then(size)
    failure = min(1.0, total.failure)
    return JacobianBound(
        total.value, total.log10, 1 - failure, failure, tuple(factors), width, input_dim, outputs
    )
