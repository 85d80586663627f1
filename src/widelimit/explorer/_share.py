"""From a network and data to the page's address: the part behind `#`, short and versioned."""

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from widelimit._base.scalars import concrete
from widelimit.layers import Dense, Layer, Phi, Repeat, Residual, Serial, mlp, resnet

_LIMITS = {"depth": (1, 100), "w": (0.0, 3.0), "b": (0.0, 2.0), "alpha": (0.001, 2.0)}
_CLOSED = {"relu", "leaky_relu(0.1)", "abs", "erf", "gelu", "gaussian", "sin", "cos", "identity"}
_TABLES = {"tanh", "sigmoid", "silu", "softplus"}
_TALLEST = 3.0  # targets beyond leave the page's picture
MOST_POINTS = 500


class Data(NamedTuple):
    """Data as the page holds them.

    Attributes:
        tab: "circle", "line" or "sphere".
        points: Rows of (angle, y), (position, y) or (longitude, latitude, y).
        variance: |x|^2/d of the inputs.
    """

    tab: str
    points: list[list[float]]
    variance: float


def as_data(x: ArrayLike, y: ArrayLike) -> Data:
    """Data that lie on a circle, on the line (u, 1) of the plane, or on a sphere.

    Args:
        x: Angles, shape (n,); or points, shape (n, 2) or (n, 3), all of one norm; or shape (n, 2) with a second
            column of ones.
        y: Targets, shape (n,).

    Returns:
        What the page shows; positions and targets are rounded to four decimals there.

    Example:
        >>> as_data([[0.0, 2.0], [-2.0, 0.0]], [1.0, -1.0])
        Data(tab='circle', points=[[1.5708, 1.0], [3.1416, -1.0]], variance=2.0)
    """
    inputs, targets = np.asarray(x, dtype=np.float64), np.asarray(y, dtype=np.float64)
    if inputs.ndim == 1:
        inputs = np.stack([np.cos(inputs), np.sin(inputs)], 1)
    if inputs.ndim != 2 or inputs.shape[1] not in (2, 3) or targets.shape != inputs.shape[:1]:
        raise ValueError(
            "The explorer shows one target for each point of a circle, a line or a sphere: x of shape (n,), (n, 2) "
            f"or (n, 3) and y of shape (n,). Got {np.shape(x)} and {np.shape(y)}."
        )
    if len(inputs) > MOST_POINTS:
        raise ValueError(
            f"The explorer holds {MOST_POINTS} points, got {len(inputs)}: take a part."
        )
    if not (np.isfinite(inputs).all() and np.isfinite(targets).all()):
        raise ValueError("x or y contains NaN or infinite values.")
    if np.abs(targets).max(initial=0.0) > _TALLEST:
        raise ValueError(f"Targets beyond ±{_TALLEST:g} leave the picture. Standardise y first.")
    square, d = np.sum(inputs**2, axis=1), inputs.shape[1]
    low, high = float(square.min(initial=math.inf)), float(square.max(initial=0.0))
    rounded = lambda *columns: np.stack([*columns, targets], 1).round(4).tolist()
    if len(inputs) == 0 or high - low <= 1e-6 * high:
        if high == 0 and len(inputs):
            raise ValueError("All points of x are 0; they have no direction.")
        angle = np.arctan2(inputs[:, 1], inputs[:, 0])
        variance = high / d if len(inputs) else 1 / d
        if d == 2:
            return Data("circle", rounded(angle), variance)
        return Data("sphere", rounded(angle, np.arcsin(inputs[:, 2] / np.sqrt(square))), variance)
    if d == 2 and np.all(inputs[:, 1] == 1) and np.abs(inputs[:, 0]).max() <= 3:
        return Data("line", rounded(inputs[:, 0]), 0.5)
    raise ValueError(
        f"The points of x have norms from {low**0.5:.3g} to {high**0.5:.3g}. The explorer shows points of one norm "
        "(a circle, a sphere), or the line (u, 1) with |u| ≤ 3: x = np.stack([u, np.ones(len(u))], 1)."
    )


def as_sliders(net: Layer) -> str | None:
    """The network in the page's words, or None where it is outside of the sliders' family.

    Example:
        >>> import widelimit as wl
        >>> as_sliders(wl.resnet(depth=5, alpha=0.1))
        'r,relu,5,1,0,0.1'
        >>> as_sliders(wl.Dense() >> wl.Phi("relu") >> wl.Dense(w_std=2.0)) is None
        True
    """
    return next((code for code in map(_code, _guesses(net)) if code is not None), None)


class _Guess(NamedTuple):
    net: Layer
    kind: str
    act: str
    depth: int
    numbers: tuple[float | None, ...]  # w, b, alpha


def _guesses(net: Layer) -> list[_Guess]:
    """What the network would be if it were one of the family; whether it is, is decided by comparing."""
    parts = net.layers if isinstance(net, Serial) else ()
    found = []
    for loop in (p for p in parts if isinstance(p, Repeat)):
        body, alpha = loop.body, 1.0
        if isinstance(body, Residual):
            body, alpha = body.body, body.alpha
        inner = body.layers if isinstance(body, Serial) else ()
        dense = next((p for p in inner if isinstance(p, Dense)), None)
        phi = next((p for p in inner if isinstance(p, Phi)), None)
        if dense is None or phi is None or loop.times < 1:
            continue
        numbers = concrete(dense.w_std), concrete(dense.b_std), concrete(alpha)
        name, depth = phi.activation.name, loop.times
        found += [_Guess(net, kind, name, depth, numbers) for kind in "mr"]
    return found


def _code(guess: _Guess) -> str | None:
    w, b, alpha = guess.numbers
    if w is None or b is None or alpha is None or guess.act not in _CLOSED | _TABLES:
        return None
    alpha = alpha if guess.kind == "r" else 0.1
    values = {"depth": guess.depth, "w": w, "b": b, "alpha": alpha}
    if not all(low <= values[name] <= high for name, (low, high) in _LIMITS.items()):
        return None
    if round(w, 4) != w or round(b, 4) != b or float(f"{alpha:.4g}") != alpha:
        return None
    if guess.net != _family(guess.kind, guess.act, guess.depth, w, b, alpha):
        return None
    act = guess.act.replace("(0.1)", "")
    return f"{guess.kind},{act},{guess.depth},{w:.6g},{b:.6g},{alpha:.6g}"


def _family(kind: str, act: str, depth: int, w: float, b: float, alpha: float) -> Layer:
    if kind == "m":
        return mlp(depth, act, w, b)
    if b == 0:
        return resnet(depth, alpha, act, w)
    block = Residual(Dense(w_std=w, b_std=b) >> Phi(act) >> Dense(), alpha=alpha)
    return Dense() >> Repeat(block, depth) >> Dense(w_std=w, b_std=b)


def link(net: Layer, x: ArrayLike, y: ArrayLike) -> str:
    """The part of the page's address that opens it on a network and data.

    Args:
        net: A network of the sliders' family: `mlp` or `resnet` with numbers in the sliders' range.
        x: As for `explore`, of norm 1.
        y: Targets, shape (n,).

    Returns:
        Text that begins with `#`.

    Example:
        >>> import widelimit as wl
        >>> link(wl.mlp(depth=3), [0.0, 1.0], [0.5, -0.5])
        '#1!c!ntk!m,relu,3,1,0,0.1!!inf!0.0,0.5_1.0,-0.5!0,1!3,1,128'
    """
    data, code = as_data(x, y), as_sliders(net)
    if code is None or not _unit(data):
        raise ValueError(
            "A link holds networks of the sliders' family on inputs of norm 1: mlp or resnet with depth up to 100, "
            "w_std up to 3, b_std up to 2, alpha from 0.001 to 2. For others use explore in a notebook."
        )
    return address(data, code)


def _unit(data: Data) -> bool:
    expected = 1 / 3 if data.tab == "sphere" else 1 / 2
    return math.isclose(data.variance, expected, rel_tol=1e-6)


def address(data: Data, code: str) -> str:
    """The address of checked data and a network's code."""
    points = "_".join(",".join(map(str, row)) for row in data.points)
    return f"#1!{data.tab[0]}!ntk!{code}!!inf!{points}!0,1!3,1,128"


def as_message(net: Layer, data: Data) -> dict[str, Any]:
    """What the page is told: sliders where they serve, otherwise a profile of the network's kernels."""
    code = as_sliders(net)
    if code is not None and _unit(data):
        return {"hash": address(data, code), "profile": ""}
    if data.tab == "line":
        raise ValueError(
            "On the line inputs have different norms, and only mlp and resnet with numbers in the sliders' range are "
            "computed in the page. Use points of one norm."
        )
    from widelimit.infinite import profile

    return {
        "hash": address(data, "m,relu,3,1,0,0.1"),
        "profile": profile(net, data.variance).to_json(),
    }
