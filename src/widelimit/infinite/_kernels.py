"""The exact kernels of a network of infinite width."""

import functools
import warnings
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from widelimit._base.arrays import (
    Inputs,
    as_inputs,
    evaluating_now,
    is_traced,
    is_transformed,
    value_of,
)
from widelimit._base.scalars import as_scalar, concrete
from widelimit.activations import How
from widelimit.describe import check
from widelimit.interpret import facts
from widelimit.layers import Layer

from ._loops import with_loops
from ._matrix import Plan, certified, cut_off, gram, join, norm_tolerance, split
from ._profile import Profile, Profiles, build
from ._variances import MANY, choose_how

_LARGE = 2**16  # entries from which a profile pays
_PATIENCE = 2e10  # evaluations of an activation that take about a minute


class Kernels(NamedTuple):
    """Both kernels of a network.

    Attributes:
        nngp: The covariance of the network's outputs at initialisation, shape (n1, n2).
        ntk: The tangent kernel, shape (n1, n2).
    """

    nngp: Any
    ntk: Any


def nngp(net: Layer, x1: Any, x2: Any = None) -> Any:
    r"""The NNGP kernel $K(x,x')=E[f(x)f(x')]$ of an infinitely wide network.

    $K^{(1)}=\sigma_w^2\langle x,x'\rangle/d+\sigma_b^2$, $K^{(l+1)}=\sigma_w^2E[\varphi(u)\varphi(v)]+\sigma_b^2$ with
    $(u,v)\sim N(0,K^{(l)})$. For several outputs the kernel is $K\otimes I$.

    Args:
        net: The network.
        x1: Points, shape (n1, d). NumPy in, NumPy out; JAX in, JAX out.
        x2: Points, shape (n2, d); None stands for `x1`, and the diagonal is then exact.

    Returns:
        The kernel matrix, shape (n1, n2), in the dtype of the inputs.

    Example:
        >>> import widelimit as wl
        >>> wl.nngp(wl.mlp(depth=1), [[1.0, 0.0], [0.0, 1.0]]).round(4)
        array([[0.25  , 0.0796],
               [0.0796, 0.25  ]])

    Reference:
        Lee et al. (2018), Deep neural networks as Gaussian processes.
    """
    return _compute(net, x1, x2, ("nngp",))[0]


def ntk(net: Layer, x1: Any, x2: Any = None) -> Any:
    r"""The neural tangent kernel $\Theta(x,x')=\lim\,\langle\nabla_\theta f(x),\nabla_\theta f(x')\rangle$.

    $\Theta^{(1)}=K^{(1)}$, $\Theta^{(l+1)}=K^{(l+1)}+\sigma_w^2\,E[\varphi'(u)\varphi'(v)]\,\Theta^{(l)}$ with
    $(u,v)\sim N(0,K^{(l)})$. For several outputs the kernel is $\Theta\otimes I$.

    Args:
        net: The network.
        x1: Points, shape (n1, d). NumPy in, NumPy out; JAX in, JAX out.
        x2: Points, shape (n2, d); None stands for `x1`, and the diagonal is then exact.

    Returns:
        The kernel matrix, shape (n1, n2), in the dtype of the inputs.

    Example:
        >>> import widelimit as wl
        >>> wl.ntk(wl.resnet(depth=5, alpha=0.1), [[1.0, 0.0], [0.0, 1.0]]).round(4)
        array([[1.0508, 0.0081],
               [0.0081, 1.0508]])

    Reference:
        Jacot, Gabriel and Hongler (2018); Tirer, Bruna and Giryes (2022), Theorem 2.
    """
    return _compute(net, x1, x2, ("ntk",))[0]


def kernels(net: Layer, x1: Any, x2: Any = None) -> Kernels:
    """Both kernels at once, for little more than the price of one.

    Args:
        net: The network.
        x1: Points, shape (n1, d).
        x2: Points, shape (n2, d), or None for `x1`.

    Returns:
        A record with `nngp` and `ntk`.

    Example:
        >>> import widelimit as wl
        >>> k = wl.kernels(wl.mlp(depth=3, activation="erf"), [[1.0], [2.0]])
        >>> k.nngp.shape, k.ntk.shape
        ((2, 2), (2, 2))
    """
    return Kernels(*_compute(net, x1, x2, ("nngp", "ntk")))


def profile(net: Layer, variance: float = 1.0) -> Profile:
    r"""The kernels as functions of the cosine between two inputs of equal norm.

    If the activations are homogeneous and there is no bias, the kernel of any two inputs is
    $\Theta(x,x')=\frac{|x||x'|}{d}\,\mathrm{profile.ntk}(\rho)$ (activations of degree 1).

    Args:
        net: The network, its numbers concrete.
        variance: $|x|^2/d$ of the inputs; a unit vector in d dimensions has 1/d.

    Returns:
        The compiled profile.

    Example:
        >>> import widelimit as wl
        >>> p = wl.profile(wl.mlp(depth=15))
        >>> bool(p.error < 1e-13)
        True
        >>> round(p.ntk(1.0) * 2**15, 12)  # (L + 1) / 2^L
        16.0
    """
    check(net, ntk=False)
    q = concrete(as_scalar(variance))
    if q is None or not 0 < q < float("inf"):
        raise ValueError(
            f"variance is |x|^2/d of the inputs and must be positive, got {variance!r}."
        )
    if is_traced(net):
        raise TypeError("profile needs concrete numbers; inside jit use nngp, ntk or kernels.")
    how = _how(*_key(net), q, q, "float64", many=False)
    profiles = _profiles(*_key(net), q, how, cut_off(jnp.dtype("float64")))
    return Profile(q, float(profiles.scale), profiles)


def _compute(net: Layer, x1: Any, x2: Any, wanted: tuple[str, ...], path: str | None = None) -> Any:
    check(net, ntk="ntk" in wanted)
    inputs = as_inputs(x1, x2)
    # Always in 64 bits: matrices have the inputs' dtype, but the network's numbers must not be
    # rounded to 32 bits before they are raised to the power of the depth.
    with jax.enable_x64(True):
        work = _working_precision(inputs)
        plan, numbers, profiles = _prepare(net, work, wanted, path)
        out = gram(plan, numbers, work.x1, work.x2, profiles)
        return inputs.answer(tuple(matrix.astype(inputs.dtype) for matrix in out))


def _working_precision(inputs: Inputs) -> Inputs:
    """Small NumPy matrices cost nothing in float64; all else is computed in what was given.

    JAX arrays keep their precision: a derivative's backward pass may run outside this context.
    """
    rows, columns = _sizes(inputs)
    double, single = jnp.dtype("float64"), jnp.dtype("float32")
    small = inputs.numpy and rows * columns < _LARGE
    dtype = double if small or inputs.dtype == double else single
    cast = lambda x: None if x is None else x.astype(dtype)
    return inputs._replace(x1=cast(inputs.x1), x2=cast(inputs.x2), dtype=dtype)


def _prepare(net: Layer, inputs: Inputs, wanted: tuple[str, ...], path: str | None) -> Any:
    """Choose the path and the precision of what has no closed form."""
    known_net = not is_traced(net)
    plain = not is_transformed((net, inputs.x1, inputs.x2))
    structure, zeros, numbers = split(with_loops(net) if plain else net)
    rows, columns = _sizes(inputs)
    degree = facts(net).degree
    scale_free = degree is not None
    moments = None if scale_free and _closed_form(net) else second_moments(inputs)
    how = how_for(net, inputs, moments)
    equal = scale_free
    if not scale_free and moments is not None:
        equal = moments[1] - moments[0] <= norm_tolerance(inputs.dtype) * moments[1]
    if path is None:
        unequal = moments is not None and not equal
        path = "layers" if rows * columns < _LARGE or unequal else "either"
    profiles = None
    if path != "layers" and known_net and equal and (moments is None or moments[1] > 0):
        q = 1.0 if scale_free or moments is None else moments[1]
        with evaluating_now():
            profiles = _profiles(*_key(net), q, how, cut_off(inputs.dtype))
            path = "profile" if bool(certified(profiles, inputs.dtype)) else "layers"
    if path == "layers":
        _warn_if_slow(net, rows * columns, how)
    if path != "profile":
        return Plan(structure, zeros, wanted, path, degree, how), numbers, None
    terms = tuple(getattr(profiles, name).terms for name in wanted)
    return Plan(structure, zeros, wanted, path, degree, how, terms), numbers, profiles


def how_for(net: Layer, inputs: Inputs, moments: tuple[float, float] | None) -> How:
    """How the moments of these activations are best evaluated at inputs of these sizes."""
    if _closed_form(net) or moments is None or is_traced(net):
        return How()
    rows, columns = _sizes(inputs)
    return _how(*_key(net), *moments, str(inputs.dtype), rows * columns > MANY)


def _closed_form(net: Layer) -> bool:
    return all(act.closed_form or act.breaks for act in facts(net).activations)


def _sizes(inputs: Inputs) -> tuple[int, int]:
    return len(inputs.x1), len(inputs.x1 if inputs.x2 is None else inputs.x2)


def second_moments(inputs: Inputs) -> tuple[float, float] | None:
    """The smallest and the largest |x|^2/d, or None while they are not known."""
    if is_traced((inputs.x1, inputs.x2)):
        return None
    with jax.enable_x64(True), evaluating_now():
        found = [_extremes(jax.lax.stop_gradient(x)) for x in inputs[:2] if x is not None]
        values = np.asarray(found)
    return float(values[:, 0].min()), float(values[:, 1].max())


@jax.jit
def _extremes(x: Any) -> Any:
    q = jnp.sum(x.astype(jnp.float64) ** 2, axis=1) / x.shape[1]
    return jnp.stack([jnp.min(q), jnp.max(q)])


def _key(net: Layer) -> Any:
    structure, zeros, numbers = split(net)
    return structure, zeros, tuple(float(value_of(n)) for n in numbers)


@functools.lru_cache(maxsize=256)
def _how(
    structure: Any, zeros: Any, numbers: Any, low: float, high: float, dtype: str, many: bool
) -> How:
    net = join(Plan(structure, zeros, (), "layers", None, How()), numbers)
    with evaluating_now():
        return choose_how(net, [low, high], jnp.dtype(dtype), many=many)


@functools.lru_cache(maxsize=256)
def _profiles(structure: Any, zeros: Any, numbers: Any, q: float, how: How, cut: float) -> Profiles:
    with jax.enable_x64(True):
        net = with_loops(join(Plan(structure, zeros, (), "profile", None, how), numbers))
        structure, zeros, numbers = split(net)
        out = _build(Plan(structure, zeros, (), "profile", None, how), numbers, q, cut)
        return jax.tree.map(np.asarray, out)


@functools.partial(jax.jit, static_argnums=0)
def _build(plan: Plan, numbers: Any, q: Any, cut: Any) -> Profiles:
    return build(join(plan, numbers), q, plan.how, cut)


def _warn_if_slow(net: Layer, entries: int, how: How) -> None:
    slow = [a for a in facts(net).activations if not a.closed_form and (a.breaks or how.terms == 0)]
    if slow and entries * 2e4 > _PATIENCE:
        warnings.warn(
            f"{entries} kernel entries with the activation {slow[0].name!r} need a two-dimensional "
            "quadrature each, since the inputs have different norms. Scale the inputs to one norm "
            "and the same matrix takes seconds.",
            stacklevel=4,
        )
