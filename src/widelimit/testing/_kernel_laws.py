"""Laws of kernels: what any function k(x1, x2) that claims to be one owes to its users."""

from collections.abc import Callable, Iterable, Mapping
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float

from widelimit._base.keys import as_generator
from widelimit._base.shown import shown
from widelimit._base.types import Seed, Tensor

from ._inputs import assert_bounded, assert_gram, unlike_points

Matrix = Float[Tensor, "n1 n2"]
KernelFunction = Callable[[Tensor, Tensor], Matrix]
Gradient = Callable[[np.ndarray, np.ndarray], np.ndarray]


class Skipped(Exception):
    """A law that does not apply, with the reason."""


class Subject(NamedTuple):
    """A kernel under examination.

    Attributes:
        k: The kernel; NumPy arrays in.
        gradient: The derivative of k(x1, x2) of single points in the first, or None.
        traced: The kernel for JAX's transformations, or None.
        points: Points from which inputs are made, shape (6, d).
    """

    k: KernelFunction
    gradient: Gradient | None
    traced: KernelFunction | None
    points: Float[np.ndarray, "n d"]

    def __call__(self, x1: Tensor, x2: Tensor | None = None) -> np.ndarray:
        """The matrix, as NumPy."""
        return np.asarray(self.k(x1, x1 if x2 is None else x2))


Law = Callable[[Subject], None]


def symmetry(kernel: Subject) -> None:
    """k(x, y) = k(y, x), up to rounding."""
    x, y = kernel.points, kernel.points[::-1][:4] * 0.7
    cross = kernel(x, y)
    scale = np.abs(cross).max()
    np.testing.assert_allclose(cross, kernel(y, x).T, rtol=1e-12, atol=1e-14 * scale)


def positive_semidefinite(kernel: Subject) -> None:
    """A Gram matrix, of equal, opposite and nearly equal points too, has no negative eigenvalue beyond rounding."""
    x = kernel.points
    near = np.concatenate([x, x[:2] * (1 + 1e-8), x[:1] + 1e-9])
    assert_gram(kernel(near), slack=1e-14)


def diagonal(kernel: Subject) -> None:
    """A point and its copy are one point, and |k(x, y)|^2 <= k(x, x) k(y, y)."""
    x = kernel.points
    gram = kernel(x)
    np.testing.assert_allclose(np.diag(kernel(x, x.copy())), np.diag(gram), rtol=1e-12)
    np.testing.assert_allclose(gram[0, 1], gram[0, 0], rtol=1e-12)  # points 0 and 1 are equal
    assert_bounded(gram)


def gradient_at_equal_inputs(kernel: Subject) -> None:
    """The derivative of k(x, y) in x is a number at x = y, and at points 1e-9 apart."""
    if kernel.gradient is None:
        raise Skipped("no derivative was given")
    x = kernel.points[0]
    for other in (x, x + 1e-9):
        slope = np.asarray(kernel.gradient(x[None], other[None]))
        assert np.isfinite(slope).all(), f"the derivative is {slope.ravel()}"


def dtype(kernel: Subject) -> None:
    """float64 in, float64 out; float32 in, float32 out, and the two agree to single precision."""
    x = kernel.points
    double, single = kernel(x), kernel(x.astype(np.float32))
    assert double.dtype == np.float64, f"float64 gives {double.dtype}"
    assert single.dtype == np.float32, f"float32 gives {single.dtype}"
    scale = np.abs(double).max()
    np.testing.assert_allclose(single, double, rtol=1e-4, atol=1e-5 * scale)


def zero_vectors(kernel: Subject) -> None:
    """The zero vector is a point: finite entries, a Gram matrix."""
    x = kernel.points.copy()
    x[3] = 0
    assert_gram(kernel(x), slack=1e-14)


def unusual_sizes(kernel: Subject) -> None:
    """Points of norm 1e-30 and 1e15 are points: entries are finite."""
    x = kernel.points.copy()
    x[3], x[4] = 1e-30 * x[5], 1e15 * x[5]
    assert np.isfinite(kernel(x)).all(), "some entry is not finite"


def gram_against_pairs(kernel: Subject) -> None:
    """An entry of a matrix is the kernel of its pair, whatever else is in the matrix."""
    x = kernel.points
    gram = kernel(x)
    pairs = np.array([[kernel(a[None], b[None])[0, 0] for b in x] for a in x])
    scale = np.abs(gram).max()
    np.testing.assert_allclose(gram, pairs, rtol=1e-10, atol=1e-12 * scale)


def jit(kernel: Subject) -> None:
    """`jax.jit` changes nothing."""
    compiled = jax.jit(_traced(kernel))
    with jax.enable_x64(True):
        x = jnp.asarray(kernel.points)
        np.testing.assert_allclose(compiled(x, x), kernel(kernel.points), rtol=1e-10, atol=1e-12)


def vmap(kernel: Subject) -> None:
    """`jax.vmap` over single points gives the matrix."""
    k = _traced(kernel)
    with jax.enable_x64(True):
        x = jnp.asarray(kernel.points)
        rows = jax.vmap(lambda a: jax.vmap(lambda b: k(a[None], b[None])[0, 0])(x))(x)
        np.testing.assert_allclose(rows, kernel(kernel.points), rtol=1e-10, atol=1e-12)


def _traced(kernel: Subject) -> KernelFunction:
    if kernel.traced is None:
        raise Skipped("not written in JAX")
    return kernel.traced


KERNEL_LAWS: tuple[Law, ...] = (
    symmetry,
    positive_semidefinite,
    diagonal,
    gradient_at_equal_inputs,
    dtype,
    zero_vectors,
    unusual_sizes,
    gram_against_pairs,
    jit,
    vmap,
)


@shown("what a kernel does with the laws")
class KernelReport(NamedTuple):
    """What came of each law.

    Attributes:
        holds: The laws that hold.
        fails: Those that do not, with what was seen.
        skipped: Those that do not apply, with the reason.
    """

    holds: tuple[str, ...]
    fails: Mapping[str, str]
    skipped: Mapping[str, str]

    def __str__(self) -> str:
        rows = [(name, "holds") for name in self.holds]
        rows += [(name, f"FAILS: {seen}") for name, seen in self.fails.items()]
        rows += [(name, f"skipped: {why}") for name, why in self.skipped.items()]
        return "\n".join(f"{name.replace('_', ' '):26} {what}" for name, what in rows)


def examine_kernel(
    k: KernelFunction,
    *,
    points: Float[np.ndarray, "n d"] | None = None,
    gradient: Gradient | None = None,
    laws: Iterable[Law] = KERNEL_LAWS,
    key: Seed = 0,
) -> KernelReport:
    """Try every law on a kernel, without raising.

    Args:
        k: A function of two arrays, shapes (n1, d) and (n2, d), with values of shape (n1, n2). One that takes and
            gives JAX arrays is also compiled, mapped and differentiated.
        points: At least six points of d features; by default Gaussian ones of different norms, one of them twice, and
            one beside its opposite.
        gradient: For kernels of other libraries: the derivative of k(x, y) in x at single points, shapes (1, d).
        laws: Which laws.
        key: For the points.

    Returns:
        The laws that hold, those that fail, those that do not apply.

    Example:
        >>> report = examine_kernel(lambda x, y: x @ y.T)  # the linear kernel
        >>> report.fails, report.skipped
        ({}, {})
    """
    x = unlike_points(as_generator(key)) if points is None else np.array(points, np.float64)
    if x.ndim != 2 or len(x) < 6:
        raise ValueError(f"points must have shape (n, d) with n >= 6, got {x.shape}.")
    subject = _subject(k, gradient, x)
    holds: list[str] = []
    fails: dict[str, str] = {}
    skipped: dict[str, str] = {}
    for law in laws:
        try:
            law(subject)
        except Skipped as reason:
            skipped[law.__name__] = str(reason)
        except Exception as error:  # a kernel may raise anything
            fails[law.__name__] = _seen(error)
        else:
            holds.append(law.__name__)
    return KernelReport(tuple(holds), fails, skipped)


def check_kernel(
    k: KernelFunction,
    *,
    points: Float[np.ndarray, "n d"] | None = None,
    gradient: Gradient | None = None,
    expected_failures: Mapping[str, str] | None = None,
    key: Seed = 0,
) -> KernelReport:
    """Run every law on a kernel of any library; raises `AssertionError` that names all laws that fail.

    Args:
        k: As for `examine_kernel`.
        points: As for `examine_kernel`.
        gradient: As for `examine_kernel`.
        expected_failures: Laws that the kernel is known to break, each with the reason. One that holds after all is
            an error too, so that the list stays true.
        key: For the points.

    Returns:
        What came of each law.

    Example:
        >>> import widelimit as wl
        >>> from widelimit.testing import check_kernel
        >>> relu = wl.prepare(wl.mlp(depth=2), "ntk")
        >>> len(check_kernel(relu).holds)
        10
        >>> import numpy as np
        >>> cosine = lambda x, y: x @ y.T / np.linalg.norm(x, axis=1)[:, None] / np.linalg.norm(y, axis=1)
        >>> with np.errstate(invalid="ignore"):
        ...     report = check_kernel(cosine, expected_failures={"zero_vectors": "it has no angle"})
        >>> "zero_vectors" in report.fails
        True
    """
    expected = dict(expected_failures or {})
    known = {law.__name__ for law in KERNEL_LAWS}
    wrong = expected.keys() - known
    if wrong:
        raise ValueError(
            f"There is no law {min(wrong)!r}; the laws are {', '.join(sorted(known))}."
        )
    report = examine_kernel(k, points=points, gradient=gradient, key=key)
    broken = {name: seen for name, seen in report.fails.items() if name not in expected}
    kept = expected.keys() - report.fails.keys()
    lines = [f"{name}: {seen}" for name, seen in broken.items()]
    lines += [
        f"{name}: it was expected to fail ({expected[name]}) and does not" for name in sorted(kept)
    ]
    if lines:
        raise AssertionError("Laws of kernels:\n" + "\n".join(lines))
    return report


def _subject(k: KernelFunction, gradient: Gradient | None, points: np.ndarray) -> Subject:
    """The kernel with what JAX can do with it, if it is written in JAX."""
    try:
        with jax.enable_x64(True):
            x = jnp.asarray(points)
            jax.eval_shape(k, x, x)
    except Exception:  # whatever another library raises at a tracer
        return Subject(k, gradient, None, points)

    def at_once(x1: Tensor, x2: Tensor) -> Matrix:
        with jax.enable_x64(True):
            return np.asarray(k(jnp.asarray(x1), jnp.asarray(x2)))

    slope = jax.grad(lambda a, b: k(a, b)[0, 0])

    def derivative(x1: np.ndarray, x2: np.ndarray) -> np.ndarray:
        with jax.enable_x64(True):
            return np.asarray(slope(jnp.asarray(x1), jnp.asarray(x2)))

    return Subject(at_once, gradient or derivative, k, points)


def _seen(error: Exception) -> str:
    """What went wrong, in one line."""
    lines = [line.strip() for line in str(error).strip().splitlines() if line.strip()]
    useful = [
        line
        for line in lines
        if line.startswith(("Max absolute", "Max relative", "nan", "x and y"))
    ]
    text = "; ".join(useful[:2]) or (lines[0] if lines else "")
    plain = isinstance(error, AssertionError)
    return (text if plain else f"{type(error).__name__}: {text}")[:160]
