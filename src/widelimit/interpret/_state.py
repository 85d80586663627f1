r"""The operations of a signal: the vocabulary in which every layer is written.

A layer never asks what is being computed. It says what it does to *a signal*, and the signal (a
state) knows what that means for it:

| state | carries | answers |
|---|---|---|
| `infinite.Pair` | variances, $1\mp\rho$, $\Theta$ | the kernels |
| `infinite.Variances` | variances | how moments are evaluated; what a zero input gives |
| `interpret.Recorded` | another state and a log | the trace |
| `interpret.Facts` | truths about the random function | linear? fresh? homogeneous? |
| `describe.Signal` | Gaussian or not | is the limit known? |
| `describe.Sizes` | numbers of channels | shapes, parameter counts, finite networks |
| `width.Fluctuating` | their spread and shift at finite width | how wide is wide enough? |
| `spectrum.Near`, `Exact`, `Degrees` | an expansion, many digits, parities | kink, eigenvalues |

A new question is a new state; a new layer is one rule (`_interpret.py`) and is then right for all of them.
"""

import abc
import dataclasses
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

from widelimit._base.scalars import Scalar
from widelimit._base.types import Self
from widelimit.activations import Activation
from widelimit.layers import Attention, Layer, LinearMap, Window

if TYPE_CHECKING:
    from jaxtyping import Array, Int

Rule = Callable[[Layer, Any], Any]


def is_zero(number: Scalar) -> bool:
    """Whether a number of the description is exactly 0 now (one that is traced may become so)."""
    return isinstance(number, float) and number == 0


def is_one(number: Scalar) -> bool:
    """Whether a number of the description is exactly 1 now."""
    return isinstance(number, float) and number == 1


class State(abc.ABC):
    r"""A signal inside a network, and what can happen to it.

    Subclasses are frozen dataclasses (Equinox modules where JAX must look inside), the result of every
    operation a new one. An operation without a meaning
    for a state refuses, naming the state's `question`.
    """

    question: ClassVar[str] = "this"

    # --- what layers do to a signal -------------------------------------------------------------

    def weighted(self, width: int | None) -> Self:
        r"""Multiplied by fresh weights: $Wx/\sqrt n$, all entries of $W$ from $N(0,1)$.

        The covariance stays; the output is Gaussian, independent of every other path, and of the given
        width at finite size.
        """
        return self

    @abc.abstractmethod
    def scaled(self, factor: Scalar) -> Self:
        """Multiplied by a number."""

    @abc.abstractmethod
    def biased(self, b_std: Scalar) -> Self:
        r"""Plus $\sigma_bb$, $b\sim N(0,1)$ in each channel, the same for all inputs."""

    def trained(self) -> Self:
        r"""What was drawn since `weighted` is trained: $\Theta'=\Theta+K$."""
        return self

    @abc.abstractmethod
    def activated(self, activation: Activation) -> Self:
        r"""Each channel through $\varphi$."""

    def untrained(self) -> Self:
        """What was drawn since `weighted` stays as it is drawn."""
        return self

    def normalised(self, over: str = "channels", eps: Scalar = 0.0) -> Self:
        r"""Divided by the root of its mean square plus eps: over the channels of each pixel, or over "all"."""
        raise self.refusal("a signal is normalised")

    def centred(self, over: str = "channels") -> Self:
        """Minus its mean over the channels (and pixels); nothing for a Gaussian signal of mean zero."""
        return self

    def dropped(self, keep: Scalar) -> Self:
        """Each entry kept with a probability and divided by it, independently for each input."""
        raise self.refusal("entries are dropped")

    # --- what layers do to pixels ---------------------------------------------------------------

    def windowed(self, window: Window, width: int | None) -> Self:
        r"""Each window multiplied by fresh weights: $\sum_oW_ox_{p(o)}/\sqrt{Fn}$."""
        raise self.refusal("a window slides over pixels")

    def localised(self) -> Self:
        """What was drawn since `windowed` is drawn anew for each pixel: pixels are independent."""
        raise self.refusal("each pixel has weights of its own")

    def mapped(self, pixels: LinearMap) -> Self:
        """A linear map of the pixels, the same for all channels."""
        raise self.refusal("pixels are combined")

    def flattened(self) -> Self:
        """All pixels as channels of one vector."""
        raise self.refusal("pixels become channels")

    def positioned(self, std: Scalar, decay: float | None, *, trained: bool = True) -> Self:
        """Plus trained embeddings of the pixels' positions (`layers.Positions`)."""
        raise self.refusal("positions are added")

    def attended(self, queries: Self, layer: Attention, *, trained: bool = True) -> Self:
        """These values mixed by attention weights, which queries and keys make of a signal; trained or not."""
        raise self.refusal("pixels attend to each other")

    # --- how signals meet -----------------------------------------------------------------------

    def branched(self) -> Self:
        """The same signal at the start of a branch that will be added to it."""
        return self

    @abc.abstractmethod
    def joined(self, skip: Scalar | None, parts: Sequence[Self]) -> Self:
        """A multiple of this signal (None: nothing of it) plus branches that grew out of it.

        The branches are independent of each other and, given this signal, have mean zero.
        """

    def concatenated(self, parts: Sequence[Self], widths: Sequence[int]) -> Self:
        """The channels of branches that grew out of this signal, in these proportions."""
        raise self.refusal("channels are concatenated")

    def multiplied(self, parts: Sequence[Self]) -> Self:
        """The product of independent branches that grew out of this signal."""
        raise self.refusal("branches are multiplied")

    def repeated(self, step: Callable[[Self], Self], times: "int | Int[Array, '']") -> Self:
        """The result of `times` steps, each with weights of its own."""
        state = self
        for _ in range(int(times)):
            state = step(state)
        return state

    # --- for states that watch ------------------------------------------------------------------

    def visited(self, layer: Layer, rule: Rule) -> Self:
        """What the rule of a layer makes of this signal; a state that keeps a log overrides it."""
        return rule(layer, self)

    def refusal(self, event: str) -> ValueError:
        """The error for an operation that has no meaning here."""
        return ValueError(
            f"There is no rule for {self.question} where {event}: the formulas that are built in end there. "
            "Kernels, finite networks and training of this network may exist all the same; ask widelimit.kernels "
            f"with inputs of its shape. (For authors of layers: {type(self).__name__} has no such rule.)"
        )


@dataclasses.dataclass(frozen=True)
class Located(State):
    """A state that knows in which layer it is, for its error messages.

    Attributes:
        inside: The layer that is being interpreted.
        source: The layer that the signal comes from.
    """

    inside: Layer | None = dataclasses.field(default=None, kw_only=True)
    source: Layer | None = dataclasses.field(default=None, kw_only=True)

    def visited(self, layer: Layer, rule: Rule) -> Self:
        """As ever, but the layer is known meanwhile, and remembered as the signal's source."""
        out = rule(layer, dataclasses.replace(self, inside=layer))
        return dataclasses.replace(out, inside=self.inside, source=layer)
