"""Which questions can a layer of one's own not answer yet?"""

from collections.abc import Callable
from typing import NamedTuple

import jax
import numpy as np

from widelimit.analysis import bounds, spectrum
from widelimit.describe import check, infer, latex, shape
from widelimit.finite import finite
from widelimit.infinite import ntk, trace
from widelimit.interpret import facts
from widelimit.layers import Dense, Layer


class Missing(NamedTuple):
    """A question without an answer.

    Attributes:
        question: What was asked.
        reason: What is missing, and what to write.
    """

    question: str
    reason: str

    def __str__(self) -> str:
        return f"{self.question}: {self.reason}"


def _points() -> np.ndarray:
    return np.random.default_rng(0).standard_normal((3, 4))


def _weights(net: Layer) -> object:
    return finite(net, 8).init(0, 4)


def _outputs(net: Layer) -> object:
    network = finite(net, 8)
    return network.apply(jax.tree.map(np.asarray, _weights(net)), _points())


QUESTIONS: dict[str, Callable[[Layer], object]] = {
    "facts (is it linear, fresh, homogeneous?)": facts,
    "check (is the limit known?)": check,
    "kernels": lambda net: ntk(net, _points()),
    "trace": lambda net: trace(net, _points()),
    "LaTeX": latex,
    "widths": lambda net: infer(net, 4, 8),
    "parameter count": lambda net: shape(net, 4, 8),
    "kink and signal propagation": spectrum.kink,
    "zeros of the spectrum": lambda net: spectrum.circle(net, degrees=4),
    "digits beyond float64": lambda net: spectrum.circle(net, degrees=4, digits=30),
    "Jacobian bound": lambda net: bounds.jacobian(net, width=8, input_dim=4),
    "weights of a finite network": _weights,
    "outputs of a finite network": _outputs,
}


def missing_rules(layer: Layer) -> list[Missing]:
    """Ask everything of a layer, between two `Dense`, and list what it cannot answer.

    Args:
        layer: One of your own, with its numbers.

    Returns:
        Questions with what to write; empty if nothing is missing. Print them.

    Example:
        >>> from widelimit import Scale
        >>> missing_rules(Scale(2.0))
        []
    """
    net = Dense() >> layer >> Dense()
    found = []
    for question, ask in QUESTIONS.items():
        try:
            ask(net)
        except (TypeError, ValueError, NotImplementedError) as error:
            found.append(Missing(question, str(error)))
    return found
