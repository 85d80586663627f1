"""Slow and obvious: the recursions of the papers in many digits, for MLPs and ResNets."""

from typing import Any

from widelimit.activations import Activation, exact_dual, get


def mpmath_ntk(
    x: Any,
    y: Any,
    *,
    depth: int,
    activation: str | Activation = "relu",
    w_std: float = 1.0,
    b_std: float = 0.0,
    alpha: float | None = None,
    v_std: float = 1.0,
    digits: int = 50,
) -> tuple[float, float]:
    r"""NNGP and NTK of one pair of inputs, straight from the recursions, in `digits` digits.

    Args:
        x: The first input.
        y: The second input.
        depth: L.
        activation: One whose moments are elementary, such as "relu", "erf", "gelu" or "monomial(3)".
        w_std: $\sigma_w$.
        b_std: $\sigma_b$ (MLP).
        alpha: None for an MLP, the attenuation for a ResNet.
        v_std: $\sigma_v$ (ResNet).
        digits: Working precision.

    Returns:
        The two kernels, rounded to float.
    """
    import mpmath as mp

    with mp.workdps(digits):
        dual = exact_dual(get(activation))
        dot = lambda u, v: sum(
            mp.mpf(float(s)) * mp.mpf(float(t)) for s, t in zip(u, v, strict=True)
        )
        w2, b2 = mp.mpf(w_std) ** 2, mp.mpf(b_std) ** 2
        a, b, c = (w2 * dot(u, v) / len(x) + b2 for u, v in ((x, x), (y, y), (x, y)))
        if alpha is None:
            theta = c
            for _ in range(depth):
                t, t_dot = dual(a, b, c)
                a, b = w2 * dual(a, a, a)[0] + b2, w2 * dual(b, b, b)[0] + b2
                c = w2 * t + b2
                theta = c + w2 * t_dot * theta
            return float(c), float(theta)
        g = mp.mpf(alpha) ** 2 * mp.mpf(v_std) ** 2 * w2
        psi = c
        for _ in range(depth):
            t, t_dot = dual(a, b, c)
            psi = psi * (1 + g * t_dot) + g * (t + c * t_dot)
            a, b, c = a + g * dual(a, a, a)[0], b + g * dual(b, b, b)[0], c + g * t
        return float(c), float(c + psi)
