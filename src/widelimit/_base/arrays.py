"""NumPy in, NumPy out; JAX in, JAX out; and bad input refused before any work starts."""

import contextlib
from collections.abc import Iterator
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

_BEYOND = "beyond the range of floats, 1.8e308. Rescale the data."


class Inputs(NamedTuple):
    """Checked inputs together with the convention of their answer.

    Attributes:
        x1: Points, shape (n1, d).
        x2: Points, shape (n2, d), or None where the kernel of `x1` with itself was asked for.
        numpy: Whether the answer is to be NumPy.
        dtype: The dtype of the computation and of the answer.
    """

    x1: Any
    x2: Any
    numpy: bool
    dtype: Any

    def answer(self, value: Any) -> Any:
        """Hand `value` out in the caller's convention (NumPy results are writable)."""
        if not self.numpy:
            return value
        return jax.tree.map(lambda a: np.array(a), value)


@contextlib.contextmanager
def convention(inputs: Inputs) -> Iterator[None]:
    """Compute in 64 bits where the answer is NumPy, whatever JAX's global flag says."""
    if inputs.numpy:
        with jax.enable_x64(True):
            yield
    else:
        yield


def is_jax(x: Any) -> bool:
    """Whether x is a JAX array or tracer."""
    return isinstance(x, jax.Array)


def value_of(x: Any) -> Any:
    """The value as NumPy, or None where it is not known while a function is being traced."""
    try:
        return np.asarray(jax.lax.stop_gradient(x) if is_jax(x) else x)
    except jax.errors.TracerArrayConversionError:
        return None


def is_traced(tree: Any) -> bool:
    """Whether some value in the tree is not known yet (inside jit or vmap; grad alone knows)."""
    if not is_transformed(tree):
        return False
    return any(value_of(leaf) is None for leaf in _samples(tree))


def is_transformed(tree: Any) -> bool:
    """Whether some value in the tree is being traced or differentiated.

    It asks for the device of each array, so that nothing is computed or copied.
    """
    try:
        for leaf in jax.tree.leaves(tree):
            if is_jax(leaf):
                leaf.devices()
    except jax.errors.ConcretizationTypeError:
        return True
    return False


def evaluating_now() -> contextlib.AbstractContextManager[Any]:
    """A context in which functions of known values run at once, also while others are traced.

    Without a trace it does nothing: JAX's own context would run, and compile, every operation on
    constants of an inner jitted function by itself.
    """
    known = not is_transformed(jnp.zeros(()))
    return contextlib.nullcontext() if known else jax.ensure_compile_time_eval()


def _samples(tree: Any) -> list[Any]:
    """One entry of each JAX array: it tells, and the rest stays on its device."""
    return [leaf.ravel()[:1] for leaf in jax.tree.leaves(tree) if is_jax(leaf)]


def as_plain(x: Any, name: str) -> Any:
    """A NumPy array of numbers, or the JAX array itself; what is no array is refused."""
    if x is None:
        raise TypeError(f"{name} is None; an array of shape (points, features) was expected.")
    if is_jax(x):
        return x
    if hasattr(x, "toarray") and hasattr(x, "nnz"):
        raise TypeError(
            f"{name} is a sparse matrix; a dense array was expected, since kernels of networks are "
            f"dense. Convert it with {name}.toarray()."
        )
    if np.ma.isMaskedArray(x) and np.ma.getmaskarray(x).any():
        raise ValueError(
            f"{name} is a masked array, whose mask would be ignored. Drop the masked points, or fill "
            f"them in with {name}.filled(...)."
        )
    try:
        array = np.asarray(x)
    except ValueError as error:
        raise ValueError(
            f"{name} could not be read as an array ({error}). Rows of equal length were expected."
        ) from error
    if array.dtype.kind == "f" and array.dtype.itemsize > 8:
        return _narrowed(array, name)
    if array.dtype == object:
        try:
            array = array.astype(np.float64)
        except OverflowError:
            raise ValueError(f"{name} holds integers {_BEYOND}") from None
        except (TypeError, ValueError) as error:
            raise TypeError(
                f"{name} holds objects that are not numbers ({error}). "
                "Encode categories and dates as numbers first."
            ) from error
    return array


def _narrowed(array: np.ndarray, name: str) -> np.ndarray:
    """A long double as a double, where none of its values is lost."""
    with np.errstate(over="ignore"):
        narrow = array.astype(np.float64)
    if (np.isinf(narrow) & np.isfinite(array)).any():
        raise ValueError(f"{name} holds long doubles {_BEYOND}")
    return narrow


def cast(array: Any, dtype: Any) -> Any:
    """The array in a dtype, itself where it has it: JAX takes its time to find out."""
    return array if array.dtype == dtype else array.astype(dtype)


def check_real(array: Any, name: str) -> None:
    """Refuse what is not made of real numbers."""
    kind = np.dtype(array.dtype).kind if array.dtype != jnp.bfloat16 else "f"
    if kind == "c":
        raise TypeError(
            f"{name} is complex ({array.dtype}); the kernels are defined for real inputs."
        )
    if kind not in "fiub":
        raise TypeError(f"{name} has dtype {array.dtype}; real numbers were expected.")


def _check(array: Any, name: str, rank: int, layout: str, *, look: bool = True) -> None:
    check_real(array, name)
    if array.ndim != rank:
        hint = ""
        if rank == 2 and array.ndim == 1:
            hint = f" For {array.size} points of one feature write {name}.reshape(-1, 1)."
        elif rank == 2 and array.ndim > 2:
            hint = (
                f" Flatten each point, {name}.reshape(len({name}), -1), or let the network begin with "
                "Flatten() or a convolution, which read pixels."
            )
        raise ValueError(
            f"{name} must have shape {layout}, got an array of shape {tuple(array.shape)}.{hint}"
        )
    if look or 0 in array.shape:
        check_finite(array, name)


@jax.jit
def _all_finite(array: Any) -> Any:
    return jnp.isfinite(array).all()


def check_finite(array: Any, name: str) -> None:
    """Refuse an empty array, and NaN and infinity where the values can be looked at."""
    if 0 in array.shape:
        raise ValueError(
            f"{name} is empty (shape {tuple(array.shape)}); at least one entry was expected."
        )
    finite = _all_finite(array) if is_jax(array) else np.isfinite(array).all()
    if value_of(finite) is None or value_of(finite):
        return
    bad = np.argwhere(~np.isfinite(value_of(array)))
    raise ValueError(
        f"{name} contains {len(bad)} NaN or infinite values, the first at index "
        f"{tuple(int(i) for i in bad[0])}. Remove or impute them."
    )


def common_dtype(*arrays: Any) -> Any:
    """float32 stays float32, everything else that is real becomes float64 (in JAX: its default)."""
    dtypes = [a.dtype for a in arrays]
    if any(map(is_jax, arrays)):
        known = [d if jnp.issubdtype(d, jnp.floating) else np.dtype(float) for d in dtypes]
        return jnp.result_type(*map(jax.dtypes.canonicalize_dtype, known))
    return np.dtype(np.float32) if all(d == np.float32 for d in dtypes) else np.dtype(np.float64)


def float_dtype(params: Any) -> Any:
    """The floating dtype of a parameter tree."""
    leaves = [leaf for leaf in jax.tree.leaves(params) if hasattr(leaf, "dtype")]
    dtypes = [leaf.dtype for leaf in leaves if jnp.issubdtype(leaf.dtype, jnp.floating)]
    if not dtypes:
        return np.dtype(np.float32)
    return jnp.result_type(*dtypes) if all(map(is_jax, leaves)) else np.result_type(*dtypes)


def as_array(x: Any, name: str, *, rank: int, layout: str) -> Any:
    """X as a checked real array of the given rank.

    Args:
        x: Anything that NumPy understands, or a JAX array.
        name: The argument's name, for the error.
        rank: The number of axes that it must have.
        layout: The shape in words, for the error, e.g. "(points, features)".

    Returns:
        A NumPy array, or the JAX array itself; floating point.
    """
    array = as_plain(x, name)
    _check(array, name, rank, layout)
    return array.astype(common_dtype(array))


def as_inputs(x1: Any, x2: Any = None, *, look: bool = True) -> Inputs:
    """Check the two arguments of a kernel and settle dtype and array kind.

    Args:
        x1: The first inputs.
        x2: The second, or None.
        look: Whether values are looked at: a device that computes has to be waited for.

    Returns:
        The inputs.
    """
    first = as_plain(x1, "x1")
    _check(first, "x1", 2, "(points, features)", look=look or not is_jax(first))
    if x2 is None:
        dtype = common_dtype(first)
        return Inputs(cast(first, dtype), None, not is_jax(first), dtype)
    second = as_plain(x2, "x2")
    _check(second, "x2", 2, "(points, features)", look=look or not is_jax(second))
    if first.shape[1] != second.shape[1]:
        raise ValueError(
            f"x1 has {first.shape[1]} features and x2 has {second.shape[1]}; a kernel compares "
            "points of one space, so the numbers must agree."
        )
    dtype = common_dtype(first, second)
    numpy = not (is_jax(first) or is_jax(second))
    one, two = _shared(first, "x1", dtype), _shared(second, "x2", dtype)
    return Inputs(one, two, numpy, dtype)


def _shared(array: Any, name: str, dtype: Any) -> Any:
    """The array in the dtype that both arguments share, which may hold less than its own."""
    if array.dtype == dtype or is_jax(array):
        return array.astype(dtype)
    with np.errstate(over="ignore"):
        narrow = array.astype(dtype)
    if array.size and not np.isfinite(narrow).all():
        raise ValueError(
            f"{name} has numbers up to {np.abs(array).max():.3g}, which {np.dtype(dtype)} cannot hold; the other "
            f"argument is a JAX array of that dtype. Give both as NumPy arrays, or as JAX arrays in float64."
        )
    return narrow
