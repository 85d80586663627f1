"""The laws of kernels, run on a kernel of any library."""

from collections.abc import Iterable, Mapping
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float

from widelimit._base.keys import as_generator
from widelimit._base.shown import shown
from widelimit._base.types import Seed, Tensor

from ._inputs import unlike_points
from ._kernel_laws import KERNEL_LAWS, Gradient, KernelFunction, Law, Matrix, Skipped, Subject


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
        >>> from widelimit.testing import check_kernel
        >>> len(check_kernel(lambda x, y: (1 + x @ y.T) ** 2).holds)
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
