"""The tangent kernel of two points as an ellipse."""

from typing import Any, NamedTuple

import numpy as np

from widelimit._base.shown import shown


@shown("the ellipse of a kernel of two points")
class Ellipse(NamedTuple):
    r"""The ellipse $z^\top\Theta^{-1}z=1$.

    Attributes:
        semi_major: The longer half-axis.
        semi_minor: The shorter half-axis.
        angle: Of the longer axis with the first coordinate, in (-π/2, π/2].
    """

    semi_major: Any
    semi_minor: Any
    angle: Any

    def outline(self, points: int = 181) -> np.ndarray:
        """Points of the curve, shape (..., points, 2)."""
        t = np.linspace(0, 2 * np.pi, points)
        along = np.asarray(self.semi_major)[..., None] * np.cos(t)
        across = np.asarray(self.semi_minor)[..., None] * np.sin(t)
        c, s = np.cos(self.angle)[..., None], np.sin(self.angle)[..., None]
        return np.stack([c * along - s * across, s * along + c * across], axis=-1)


def kernel_ellipse(theta: Any) -> Ellipse:
    r"""The image of the unit circle under $\Theta^{1/2}$, for the kernel of two points.

    With $\Theta=\begin{pmatrix}A&C\\C&B\end{pmatrix}$ the half-axes are
    $\sqrt{(A+B)/2\pm\sqrt{((A-B)/2)^2+C^2}}$, the angle is $\frac12\mathrm{atan2}(2C,A-B)$.

    Args:
        theta: Kernel matrices, shape (..., 2, 2).

    Returns:
        The half-axes and the angle, shape (...).

    Example:
        >>> e = kernel_ellipse([[9.0, 0.0], [0.0, 4.0]])
        >>> float(e.semi_major), float(e.semi_minor), float(e.angle)
        (3.0, 2.0, 0.0)

    Reference:
        Jacot, Gabriel and Hongler (2018).
    """
    theta = np.asarray(theta, dtype=float)
    if theta.shape[-2:] != (2, 2):
        raise ValueError(
            f"An ellipse is drawn for the kernel of two points, shape (..., 2, 2); got {theta.shape}."
        )
    a, b, c = theta[..., 0, 0], theta[..., 1, 1], theta[..., 0, 1]
    high = (a + b) / 2 + np.hypot((a - b) / 2, c)
    # The product of the eigenvalues is the determinant: no difference of nearly equal numbers.
    low = np.maximum(a * b - c * c, 0) / np.where(high > 0, high, 1)
    return Ellipse(np.sqrt(high), np.sqrt(low), np.arctan2(2 * c, a - b) / 2)
