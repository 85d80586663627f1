"""How far the tangent kernel moves in training, to first order in 1/width."""

import math
from typing import NamedTuple

import numpy as np
from jaxtyping import Float
from numpy.typing import ArrayLike

from widelimit._base.arrays import as_array, as_inputs, is_traced
from widelimit._base.scalars import as_float
from widelimit.infinite import prepare
from widelimit.interpret import facts, interpret
from widelimit.layers import Dense, Layer, Phi, Repeat, Serial

from ._covered import expect_derived
from ._moving import Moving
from ._sized import with_widths

Square = Float[np.ndarray, "m m"]
Tensor4 = Float[np.ndarray, "m m m m"]


class DriftTensors(NamedTuple):
    r"""How the tangent kernel of one or two inputs responds to training.

    Attributes:
        nngp: The limit $K$.
        ntk: The limit $\Theta$.
        o3: $\lim nE[(\nabla\hat\Theta_{ab}\cdot\nabla f_c)f_d]$, shape (m, m, m, m).
        o4: $\lim nE[\nabla(\nabla\hat\Theta_{ab}\cdot\nabla f_c)\cdot\nabla f_d]$.
    """

    nngp: Square
    ntk: Square
    o3: Tensor4
    o4: Tensor4


def drift_tensors(net: Layer, x: ArrayLike) -> DriftTensors:
    """The tensors behind `ntk_drift`.

    Args:
        net: The network, with activations without kinks.
        x: One or two points, shape (m, d).

    Returns:
        The limits and the tensors, in float64.
    """
    expect_derived(net)
    _expect_smooth(net)
    if not with_widths(net, None).equal:
        raise ValueError("The drift is derived for layers of one width; state none, or equal ones.")
    points = np.asarray(as_array(x, "x", rank=2, layout="(points, features)"), np.float64)
    m = len(points)
    if m > 2:
        raise ValueError(
            f"The drift is derived for at most two training inputs, got {m}: more need expectations over four "
            "different inputs."
        )
    pair = points[[0, -1]]
    out = interpret(net, Moving(pair @ pair.T / pair.shape[1], np.zeros((2, 2))))
    p, q, r, s, t, u = out.six
    turned = lambda tensor, order: np.einsum(f"{order}->abcd", tensor)
    h = p + q + turned(q, "acbd")
    k1, k2 = r + turned(r, "acbd") + turned(r, "adbc"), s + t + u
    o3 = h + turned(h, "bacd")
    o4 = k1 + turned(k1, "bacd") + k2 + turned(k2, "bacd") + turned(k2, "acbd") + turned(k2, "bcad")
    few = (slice(0, m),) * 4
    return DriftTensors(out.s[:m, :m], out.theta[:m, :m], o3[few], o4[few])


def ntk_drift(net: Layer, x: ArrayLike, y: ArrayLike, t: float = math.inf) -> Square:
    r"""$\lim n\,E[\Theta_t-\Theta_0]$ on one or two training inputs, under gradient flow of $\frac12\sum(f-y)^2$.

    With $I_1=\Theta^{-1}(1-e^{-\Theta t})$ and $I_2=\int_0^te^{-\Theta s}(K+yy^\top)I_1(s)\,ds$ it is
    $-\sum o^3_{ab,cd}(I_1)_{cd}+\sum o^4_{ab,cd}(I_2)_{cd}$: the kernel's derivative along the gradients, correlated
    with the initial function, and its second derivative.

    Args:
        net: The network, in NTK parameterisation; activations without kinks, residual branches of the form
            `Dense() >> Phi(...) >> Dense()`, layers of one width.
        x: One or two training points, shape (m, d).
        y: Their targets, shape (m,).
        t: The time, learning rate times steps; by default training is finished.

    Returns:
        The drift times n, shape (m, m). The next order is felt early: divide by widths of 100 and more.

    Example:
        >>> import numpy as np, widelimit as wl
        >>> x, net = np.array([[1.0, 0.5, -0.3], [0.2, 1.1, 0.7]]), wl.mlp(2, "tanh", w_std=1.3, b_std=0.2)
        >>> wl.ntk_drift(net, x, [1.0, -0.5]).round(4)
        array([[-1.5076, -0.9236],
               [-0.9236,  0.9737]])

    Reference:
        Roberts, Yaida and Hanin (2022), The principles of deep learning theory, chapter 11; Dyer and Gur-Ari
        (2020), Asymptotics of wide networks from Feynman diagrams.
    """
    found = drift_tensors(net, x)
    targets = _targets(y, len(found.ntk))
    time = _time(t)
    values, vectors = np.linalg.eigh(found.ntk)
    if values[0] <= 1e-12 * values[-1]:
        raise ValueError(
            "The tangent kernel of the training inputs is singular (parallel or equal points), so the flow has "
            "no limit on them. Remove one of the two."
        )
    start = vectors.T @ (found.nngp + np.outer(targets, targets)) @ vectors
    fall = lambda rate: -np.expm1(-rate * time) / rate
    total = values[:, None] + values[None, :]
    first = vectors @ np.diag(fall(values)) @ vectors.T
    second = start / values[None, :] * (fall(values)[:, None] - fall(total))
    second = vectors @ second @ vectors.T
    return np.einsum("abcd,cd->ab", found.o4, second) - np.einsum("abcd,cd->ab", found.o3, first)


def kink_drift(net: Layer, x: ArrayLike, y: ArrayLike, t: float = math.inf) -> float:
    r"""$\lim\sqrt n\,E[\Theta_t-\Theta_0]$ of a ReLU network with one hidden layer on one training input.

    $-\sigma_w^3K_1^{3/2}/\pi\cdot I_1(t)\,E|f_0-y|$: active neurons move, dead ones do not, so neurons die at the
    kink, $n^{1/2}$ of them; $\sigma_w$ is that of the output layer, $K_1$ the variance of the pre-activations. It is
    larger than the smooth drift of order 1/n (`ntk_drift`), and for deeper networks not known.

    Args:
        net: `Dense() >> Phi("relu") >> Dense()`, or `mlp(depth=1)`.
        x: One point, shape (1, d).
        y: Its target.
        t: The time; by default training is finished.

    Returns:
        The drift times the root of n.

    Example:
        >>> import widelimit as wl
        >>> x = [[1.0, 0.5, -0.3]]
        >>> round(float(kink_drift(wl.mlp(1, w_std=2**0.5), x, 2.0, t=3.0)), 4)
        -0.8519
    """
    expect_derived(net)
    found = facts(net)
    if found.evaluated != 1 or [act.name for act in found.activations] != ["relu"]:
        raise ValueError(
            "The drift at a kink is known for one hidden layer of ReLUs: mlp(depth=1). Deeper networks drift "
            "by the same order with constants that are not known."
        )
    inputs = as_inputs(x)
    if len(inputs.x1) != 1 or is_traced(inputs.x1):
        raise ValueError(
            f"The drift at a kink is known for one training input, got {len(inputs.x1)}."
        )
    point = np.asarray(inputs.x1, np.float64)
    target, time = float(_targets(y, 1)[0]), _time(t)
    kernels = prepare(net, "ntk").both(point, None)
    k, theta = float(kernels.nngp[0, 0]), float(kernels.ntk[0, 0])
    hidden, last = _two_layers(net, point)
    near = math.sqrt(2 * k / math.pi) * math.exp(-(target**2) / (2 * k))
    distance = near + target * math.erf(target / math.sqrt(2 * k))  # E|f - y|, f ~ N(0, k)
    fall = -math.expm1(-theta * time) / theta
    return -(last**3) * hidden**1.5 / math.pi * fall * distance


def _two_layers(net: Layer, point: Float[np.ndarray, "1 d"]) -> tuple[float, float]:
    """The variance of the hidden pre-activations, and the last layer's standard deviation of weights."""
    parts = net.layers if isinstance(net, Serial) else (net,)
    if parts and isinstance(parts[0], Repeat) and parts[0].times == 1:
        parts = (*Serial(parts[0].body).layers, *parts[1:])
    first, last = parts[0], parts[-1]
    three = len(parts) == 3 and isinstance(parts[1], Phi)
    if not (three and isinstance(first, Dense) and isinstance(last, Dense)):
        raise ValueError(f"Expected Dense() >> Phi('relu') >> Dense(), got {net}.")
    size = float(np.sum(point**2) / point.shape[1])
    return float(first.w_std) ** 2 * size + float(first.b_std) ** 2, float(last.w_std)


def _expect_smooth(net: Layer) -> None:
    for act in facts(net).activations:
        if act.breaks:
            raise ValueError(
                f"{act.name!r} has kinks (at {', '.join(f'{b:g}' for b in act.breaks)}). Neurons that cross one in "
                "training change the tangent kernel by n^(-1/2), not 1/n, and the constant is known for one "
                "hidden layer of ReLUs and one training input only: widelimit.width.kink_drift. Use a smooth "
                "activation ('erf', 'tanh', 'gelu')."
            )


def _targets(y: ArrayLike, many: int) -> Float[np.ndarray, " m"]:
    targets = np.asarray(y, np.float64).reshape(-1)
    if len(targets) != many or not np.isfinite(targets).all():
        raise ValueError(
            f"y must be {many} finite numbers, one for each training input; got {y!r}."
        )
    return targets


def _time(t: float) -> float:
    time = as_float(t, "t")
    if not time >= 0:
        raise ValueError(f"t is a time and must not be negative, got {time:g}.")
    return time
