"""The second-derivative measure: smaller is smoother."""

import functools
import warnings

import numpy as np
from jaxtyping import Float
from numpy.typing import ArrayLike

from ._record import SMALLER, Measure
from ._sampling import Evaluable, Grid, Points, sample


def second_derivative(
    f: ArrayLike | Evaluable,
    *,
    on: str | None = None,
    points: Points = None,
    grid: Grid = None,
    check: bool = True,
) -> Measure:
    r"""The norm of the second derivative of a periodic function of unit size; smaller is smoother.

    $\mu=\frac1N\sqrt{\sum_k k^4|\mathrm{DFT}(\bar f)(k)|^2}$, $\bar f=f/\mathrm{rms}(f)$, $k=-N/2,\dots,N/2-1$;
    in two dimensions $k^4$ becomes $(k_1k_2)^4$, the mixed derivative
    $\partial^4/\partial b^2\partial\xi^2$. A function with kinks, such as an interpolant of a ReLU kernel,
    has no second derivative: $\mu$ then grows like $\sqrt N$, and values of different N must not be
    compared (`Measure.smoother_than` refuses). For smooth functions it converges.

    Args:
        f: Values on an equispaced grid of one period without its end (an array with one axis for
            each variable), a function, or a model with `predict`.
        on: Where a function or model is evaluated: "angle" f(b) (default for functions), "circle"
            f((cos b, sin b)) (default for models), or "sphere", the grid of the published
            two-dimensional values: b in [-pi, pi), xi in [0, pi), 256 x 128 points.
        points: N, by default 4096, on the sphere (256, 128).
        grid: The angles of an array of values, which are then checked to cover a period; or where
            to evaluate a function. For several axes a tuple.
        check: Refuse values that jump where the period closes.

    Returns:
        The measure with its N. Its `noise` is what rounding of the values alone can add.

    Example:
        >>> import numpy as np
        >>> mu = second_derivative(lambda b: 3 * np.sin(4 * b))
        >>> round(float(mu), 9), mu.direction, mu.N
        (16.0, 'smaller is smoother', 4096)

    Reference:
        Tirer, Bruna and Giryes (2022), Kernel-based smoothness analysis of residual networks.
    """
    values, epsilon = sample(f, on, points, grid, check)
    size = float(np.sqrt(np.mean(values**2)))
    if size == 0:
        raise ValueError(
            "The function is zero everywhere; the measure normalises it to unit size, which is "
            "impossible. There is nothing to measure."
        )
    weight = _wave_numbers(values.shape)
    spectrum = np.fft.fftn(values / size)
    value = float(np.sqrt(np.sum((weight**2 * np.abs(spectrum)) ** 2))) / values.size
    noise = epsilon / 2 * float(np.sqrt(np.mean(weight**4)))
    if epsilon > 1e-10 and noise > 0.01 * value:
        warnings.warn(
            f"The values are float32: their rounding alone adds about {noise:.2g} to the measure "
            f"({value:.3g}). Evaluate the function in float64, or take fewer points.",
            stacklevel=2,
        )
    return Measure(value, "mu_D2", SMALLER, values.shape, noise=noise)


def _wave_numbers(shape: tuple[int, ...]) -> Float[np.ndarray, "..."]:
    """The product of the integer wave numbers, in the order of the transform."""
    return functools.reduce(np.multiply.outer, [np.fft.fftfreq(n, 1 / n) for n in shape])
