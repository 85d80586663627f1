r"""Depth for free: for inputs of one norm a kernel is a function of the angle alone.

So it is for inputs of any norm when the activations are homogeneous and there is no bias. The layers
then run on a few hundred angles, and every entry of a Gram matrix costs one polynomial, whatever the
depth and the activation.

The polynomial is a Chebyshev series in $y$, where $v=\sin\frac\theta2-\cos\frac\theta2\in[-1,1]$ (an analytic
function of the angle on all of $[0,\pi]$, two square roots from $1\mp\rho$) and $y=(v+c)/(1+cv)$. A
deep MLP varies fastest near $\theta=0$, a weakly attenuated ResNet near $\theta=\pi$; the number $c$ turns
the nodes to where they are needed. The decay of the coefficients certifies the error.
"""

import functools
import json
import math
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float
from numpy.typing import ArrayLike

from widelimit._base.arrays import evaluating_now
from widelimit._base.compile import on_host, quick_jit
from widelimit._base.numerics import chebyshev_sum
from widelimit._base.quadrature import cosine_transform
from widelimit._base.scalars import Scalar
from widelimit._base.shown import shown
from widelimit._base.thresholds import NODES
from widelimit.activations import How
from widelimit.layers import Layer

from ._layered import run_layers
from ._pair import doubled
from ._plan import Form, Numbers, closed, join, looped

SCHEMA = "widelimit.profile/1"  # of Profile.to_json; another number where its meaning changes
_SHIFTS = (0.0, 0.2, 0.4, 0.6, 0.8, -0.2, -0.4, -0.6, -0.8)


class Series(NamedTuple):
    """A function of the angle as a Chebyshev series.

    Attributes:
        shift: The number c of the map from v to y.
        coefficients: Float64, zero beyond `degree`.
        degree: The highest degree that is used.
        error: A bound of the truncation error, from the discarded coefficients, relative to the
            largest value.
    """

    shift: Float[Array, ""]
    coefficients: Float[Array, " nodes"]
    degree: Any
    error: Any

    def at(
        self, minus: Float[Array, "..."], plus: Float[Array, "..."], terms: int | None = None
    ) -> Float[Array, "..."]:
        """The value where 1 - rho = minus and 1 + rho = plus, in their dtype.

        With `terms` stated the sum is one fused expression; without, its length is found at run time.
        """
        shift = self.shift.astype(minus.dtype)
        v = (jnp.sqrt(minus) - jnp.sqrt(plus)) * math.sqrt(0.5)
        y = (v + shift) / (1 + shift * v)
        return chebyshev_sum(self.coefficients, y, terms)

    @property
    def terms(self) -> int:
        """How many coefficients matter, rounded up so that similar series share a program."""
        step = 8 if jax.default_backend() == "cpu" else 2  # a GPU's time is in the terms
        return min(-(-(int(self.degree) + 1) // step) * step, NODES)


class Profiles(NamedTuple):
    r"""The normalised kernels $K/\sqrt{K_1K_2}$ and $\Theta/\sqrt{K_1K_2}$ as functions of the angle.

    Attributes:
        nngp: The first.
        ntk: The second.
        variance: $|x|^2/d$ of the inputs.
        scale: $K(x,x)$ for such inputs.
        peak: $\Theta(x,x)/K(x,x)$.
    """

    nngp: Series
    ntk: Series
    variance: Any
    scale: Any
    peak: Any


def _nodes() -> tuple[np.ndarray, np.ndarray]:
    """1 - rho and 1 + rho at the Chebyshev nodes of each shift, exact at both ends."""
    half = math.pi * (np.arange(NODES) + 0.5) / NODES / 2
    up, down = 2 * np.cos(half) ** 2, 2 * np.sin(half) ** 2  # 1 + y and 1 - y
    shift = np.array(_SHIFTS)[:, None]
    scale = 1 - shift * (up - 1)
    v_up, v_down = (1 - shift) * up / scale, (1 + shift) * down / scale  # 1 + v and 1 - v
    v = v_up - 1
    root = np.sqrt(2 - v**2)
    # sin(theta/2) = (root + v)/2 and cos(theta/2) = (root - v)/2; their product is (1 - v^2)/2
    sine = np.where(v < 0, v_up * v_down / (root - v), (root + v) / 2)
    cosine = np.where(v < 0, (root - v) / 2, v_up * v_down / (root + v))
    return 2 * sine**2, 2 * cosine**2


def build(net: Layer, q: Scalar, how: How, tolerance: Scalar) -> Profiles:
    """Run the layers on the nodes and chop the series.

    Args:
        net: The network.
        q: The second moment |x|^2/d of the inputs (any positive number if the network is scale-free).
        how: How moments are evaluated.
        tolerance: Where to cut the coefficients, relative to the largest.

    Returns:
        The two series, in float64.
    """
    with jax.enable_x64(True):
        minus, plus = _nodes()
        minus, plus = jnp.asarray([*minus.ravel(), 0.0]), jnp.asarray([*plus.ravel(), 2.0])
        variance = doubled(q)
        q = jnp.broadcast_to(variance, minus.shape)
        out = run_layers(net, q, q, minus, plus, how)
        nngp, ntk = _chop(out.rho[:-1], tolerance), _chop(out.ntk[:-1], tolerance)
        return Profiles(nngp, ntk, variance, out.q1[-1], out.ntk[-1])


@functools.lru_cache(maxsize=256)
def compiled(
    form: Form, numbers: tuple[float, ...], q: float, how: How, tolerance: float
) -> Profiles:
    """The series of a network whose numbers are known, as NumPy arrays; computed once."""
    with jax.enable_x64(True), evaluating_now(), on_host():
        loops, values = looped(form, numbers)
        run = _build_quickly if closed(form) else _build_well
        return jax.tree.map(np.asarray, run(loops, how, values, q, tolerance))


def _build(form: Form, how: How, numbers: Numbers, q: Scalar, tolerance: Scalar) -> Profiles:
    return build(join(form, numbers), q, how, tolerance)


_build_quickly, _build_well = quick_jit(_build, (0, 1)), jax.jit(_build, static_argnums=(0, 1))


def _chop(values: Float[Array, " points"], tolerance: Scalar) -> Series:
    transform = jnp.asarray(cosine_transform(NODES))
    table = values.reshape(len(_SHIFTS), NODES) @ transform.T
    size = jnp.abs(table)
    scale = jnp.max(jnp.abs(values))
    scale = jnp.where(scale > 0, scale, 1)
    envelope = jax.lax.cummax(size, axis=1, reverse=True)
    # Rounding leaves a plateau; what lies below it is noise.
    floor = jnp.maximum(tolerance * scale, 2 * jnp.max(size[:, -NODES // 8 :], axis=1))
    # Explicit 32-bit indices: the program may be lowered outside this 64-bit context.
    degrees = jnp.sum(envelope > floor[:, None], axis=1, dtype=jnp.int32)
    # In single precision the division that a shift costs is worth two terms.
    price = jnp.where((jnp.asarray(_SHIFTS) != 0) & (tolerance > 1e-12), 2, 0).astype(jnp.int32)
    best = jax.lax.argmin(degrees + price, 0, jnp.int32)
    keep = jnp.arange(NODES, dtype=jnp.int32) < degrees[best]
    error = jnp.sum(jnp.where(keep, 0, size[best])) / scale
    degree = jnp.maximum(degrees[best] - 1, 0)
    return Series(jnp.asarray(_SHIFTS)[best], jnp.where(keep, table[best], 0), degree, error)


@shown("a network's kernels as functions of the angle")
class Profile(eqx.Module):
    r"""A network's kernels as functions of the cosine $\rho$ between two inputs of equal norm.

    Attributes:
        variance: $|x|^2/d$ of the inputs.
        scale: $K(x,x)$, the NNGP kernel of an input with itself.
        series: The normalised kernels.
    """

    variance: float
    scale: float
    series: Profiles

    def summary(self) -> dict[str, object]:
        """What is shown of a profile."""
        rows: dict[str, object] = {"degree": self.degree, "error": self.error}
        return rows | {"variance": self.variance, "scale": self.scale}

    @property
    def degree(self) -> int:
        """The larger of the two degrees."""
        return max(int(self.series.nngp.degree), int(self.series.ntk.degree))

    @property
    def error(self) -> float:
        """The larger of the two truncation errors, relative to each kernel's largest value."""
        return max(float(self.series.nngp.error), float(self.series.ntk.error))

    def nngp(self, rho: Any) -> Any:
        """The NNGP kernel at cosine rho (a number or an array of any shape)."""
        return self._at_cosine(self.series.nngp, rho)

    def ntk(self, rho: Any) -> Any:
        """The tangent kernel at cosine rho (a number or an array of any shape)."""
        return self._at_cosine(self.series.ntk, rho)

    def nngp_at_angle(self, angle: Any) -> Any:
        """The NNGP kernel at an angle: no digits are lost near 0 and pi, as they are in cosines."""
        return self._at_angle(self.series.nngp, angle)

    def ntk_at_angle(self, angle: Any) -> Any:
        """The tangent kernel at an angle: no digits are lost near 0 and pi."""
        return self._at_angle(self.series.ntk, angle)

    def to_json(self) -> str:
        r"""The profile as text, for other programs: the explorer reads it.

        An object of the schema "widelimit.profile/1": `variance`, `scale`, and for "nngp" and "ntk" each `shift`
        ($c$), `coefficients` ($a_n$) and `error`. With $v=\sin\frac\theta2-\cos\frac\theta2$ and $y=(v+c)/(1+cv)$
        the kernel at the angle $\theta$ is $\mathrm{scale}\cdot\sum_na_nT_n(y)$. Numbers are written exactly.

        Returns:
            JSON.

        Example:
            >>> import json, widelimit as wl
            >>> text = wl.profile(wl.mlp(depth=3)).to_json()
            >>> sorted(json.loads(text))
            ['nngp', 'ntk', 'scale', 'schema', 'variance']
            >>> wl.Profile.from_json(text).ntk(0.5) == wl.profile(wl.mlp(depth=3)).ntk(0.5)
            True
        """
        kernels = {"nngp": self.series.nngp, "ntk": self.series.ntk}
        head = {"schema": SCHEMA, "variance": float(self.variance), "scale": float(self.scale)}
        return json.dumps(head | {name: _plain(series) for name, series in kernels.items()})

    @staticmethod
    def from_json(text: str) -> "Profile":
        """The profile that `to_json` wrote.

        Args:
            text: JSON.

        Returns:
            An equal profile.
        """
        try:
            found = json.loads(text)
            if found["schema"] != SCHEMA:
                raise ValueError(f"its schema is {found['schema']!r}")
            nngp, ntk = (_series(found[name]) for name in ("nngp", "ntk"))
            variance, scale = float(found["variance"]), float(found["scale"])
        except (TypeError, KeyError, ValueError) as error:
            raise ValueError(
                f"This is no profile of the schema {SCHEMA!r} ({type(error).__name__}: {error}). "
                "Profile.to_json writes one."
            ) from None
        peak = float(np.sum(np.asarray(ntk.coefficients) * (-1.0) ** np.arange(NODES)))
        return Profile(variance, scale, Profiles(nngp, ntk, variance, scale, peak))

    def _at_cosine(self, series: Series, rho: Any) -> Any:
        values = np.asarray(rho, dtype=np.float64)
        if not np.all(np.abs(values) <= 1 + 1e-12):
            raise ValueError(f"rho is a cosine and must lie in [-1, 1], got {rho!r}.")
        return self._evaluate(series, np.clip(1 - values, 0, 2), np.clip(1 + values, 0, 2))

    def _at_angle(self, series: Series, angle: Any) -> Any:
        values = np.asarray(angle, dtype=np.float64)
        if not np.all(np.isfinite(values)):
            raise ValueError(f"Angles must be finite, got {angle!r}.")
        return self._evaluate(series, 2 * np.sin(values / 2) ** 2, 2 * np.cos(values / 2) ** 2)

    def _evaluate(self, series: Series, minus: ArrayLike, plus: ArrayLike) -> Any:
        with jax.enable_x64(True):
            values = np.array(_evaluate(series, minus, plus)) * self.scale
        return values if values.ndim else float(values)


def _plain(series: Series) -> dict[str, Any]:
    used = np.asarray(series.coefficients, np.float64)[: int(series.degree) + 1]
    shift, error = float(series.shift), float(series.error)
    return {"shift": shift, "error": error, "coefficients": used.tolist()}


def _series(found: dict[str, Any]) -> Series:
    used = np.asarray(found["coefficients"], np.float64)
    if used.ndim != 1 or not 0 < used.size <= NODES or not np.all(np.isfinite(used)):
        raise ValueError(f"coefficients must be 1 to {NODES} finite numbers")
    coefficients: Any = np.zeros(NODES)
    coefficients[: used.size] = used
    shift: Any = np.asarray(float(found["shift"]))
    return Series(shift, coefficients, used.size - 1, float(found["error"]))


_evaluate = jax.jit(lambda series, minus, plus: series.at(minus, plus))
