"""From a request to matrices: small ones by one program for all sizes, others by tiles or a profile."""

import math
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from widelimit._base.arrays import Inputs, cast, evaluating_now, is_jax, is_traced, is_transformed
from widelimit._base.thresholds import (
    KNOWN_LENGTH,
    LIGHT_TILE,
    MANY,
    PROFILE_PAYS,
    SMALL_TILE,
    TINY_TILE,
    WELL_COMPILED,
)
from widelimit.activations import How

from ._host import cut_small, filled, fits_in_small_tiles, host_points, paste
from ._host import second_moments as host_moments
from ._layered import stack_of_tiles, stack_of_tiles_watched
from ._matrix import gram
from ._patience import seconds, warn_if_deep, warn_if_slow
from ._plan import (
    Form,
    Numbers,
    Plan,
    Scope,
    bias_as_feature,
    closed,
    cut_off,
    equal_norms,
    error_limit,
    facts,
    for_backend,
    integrated,
    known,
    looped,
    series,
    without_widths,
)
from ._profile import Profiles, compiled
from ._tile import Extra
from ._whole import check_inputs, gram_on_device

Answer = Float[Array, "..."] | Float[np.ndarray, "..."]


class Request(NamedTuple):
    """Which kernels of which network are wanted.

    Attributes:
        form: The network's form.
        numbers: Its numbers.
        wanted: "nngp", "ntk" or both.
        scope: The inputs that were announced, if any.
        path: "layers" or "profile" where the caller insists.
    """

    form: Form
    numbers: Numbers
    wanted: tuple[str, ...]
    scope: Scope | None = None
    path: str | None = None


def sizes_of(inputs: Inputs) -> tuple[int, int]:
    """The shape of the matrix."""
    return len(inputs.x1), len(inputs.x1 if inputs.x2 is None else inputs.x2)


def scope_of(inputs: Inputs) -> Scope | None:
    """The smallest and the largest |x|^2/d, or None while they are not known."""
    given = [x for x in inputs[:2] if x is not None]
    if is_traced(given):
        return None
    with jax.enable_x64(True), evaluating_now():
        on_host = jax.default_backend() == "cpu" or inputs.numpy
        look = lambda x: host_moments(np.asarray(x)) if on_host else np.asarray(_extremes(x))
        values = np.concatenate([look(jax.lax.stop_gradient(x)) for x in given])
    return Scope(float(values.min()), float(values.max()))


@jax.jit
def _extremes(x: Float[Array, "n d"]) -> Float[Array, " 2"]:
    q = jnp.sum(x.astype(jnp.float64) ** 2, axis=1) / x.shape[1]
    return jnp.stack([jnp.min(q), jnp.max(q)])


def choose_series(request: Request, scope: Scope | None, dtype: str, entries: int) -> How:
    """The precision of what has no closed form: as announced, or as these inputs need it."""
    if scope is None or (request.scope is not None and request.scope.covers(scope)):
        scope = request.scope
    if scope is None or is_traced(request.numbers):
        return How()
    return series(request.form, request.numbers, scope, dtype, many=entries > MANY)


class Choice(NamedTuple):
    """The way that was chosen, and the profiles where it needs them."""

    path: str
    how: How
    degree: float | None
    profiles: Profiles | None = None


def choose_path(request: Request, scope: Scope | None, dtype: str, entries: int) -> Choice:
    """Layer by layer, by the profile, or either, to be decided at run time.

    A profile needs a network that is a function of one angle, and either homogeneity or inputs of
    one norm; it pays for large matrices, and is used if its own error is below rounding.
    """
    fact = facts(request.form)
    how = choose_series(request, scope, dtype, entries)
    insists = request.path is not None
    holds = fact.zonal and (
        fact.degree is not None or (scope is not None and equal_norms(scope, dtype))
    )
    unknown = fact.zonal and fact.degree is None and scope is None
    pays = insists or entries >= PROFILE_PAYS
    if request.path == "profile" and not holds:
        raise ValueError(
            "The profile was asked for, but the kernel of these inputs is no function of one angle: "
            "their norms differ and the network is not homogeneous."
        )
    if request.path != "layers" and pays and holds and not is_traced(request.numbers):
        q = 1.0 if fact.degree is not None or scope is None else scope.high
        profiles = compiled(request.form, known(request.numbers), q, how, cut_off(dtype))
        if max(float(profiles.nngp.error), float(profiles.ntk.error)) < error_limit(dtype):
            return Choice("profile", how, fact.degree, profiles)
    elif request.path != "layers" and pays and (holds or unknown):
        return Choice("either", how, fact.degree)
    warn_if_slow(request.form, entries, how)
    return Choice("layers", how, None)


def _plan(request: Request, form: Form, choice: Choice) -> Plan:
    terms: tuple[int, ...] = ()
    if choice.profiles is not None:
        terms = tuple(getattr(choice.profiles, name).terms for name in request.wanted)
    return Plan(form, request.wanted, choice.path, choice.degree, choice.how, terms)


def evaluate(request: Request, inputs: Inputs) -> tuple[Answer, ...]:
    """The wanted matrices in the caller's convention."""
    n1, n2 = sizes_of(inputs)
    if request.path != "profile":
        warn_if_deep(request.form, n1 * n2)
    request = request._replace(form=without_widths(request.form))
    fixed = not is_transformed((request.numbers, inputs.x1, inputs.x2))
    small = request.path != "profile" and fits_in_small_tiles(n1, n2)
    # Always in 64 bits: matrices have the inputs' dtype, but the network's numbers must not be
    # rounded to 32 bits before they are raised to the power of the depth.
    with jax.enable_x64(True):
        if fixed and small and (inputs.numpy or jax.default_backend() == "cpu"):
            out = tuple(m.astype(inputs.dtype) for m in _small(request, inputs))
            return out if inputs.numpy else tuple(map(jnp.asarray, out))
        if fixed and inputs.numpy:
            return tuple(m.astype(inputs.dtype, copy=False) for m in _large(request, inputs))
        return on_device(request, inputs)


def _small(request: Request, inputs: Inputs) -> list[Float[np.ndarray, "n1 n2"]]:
    """In float64, whatever was given: it costs nothing."""
    first = host_points(np.asarray(inputs.x1))
    second = None if inputs.x2 is None else host_points(np.asarray(inputs.x2))
    other = second or first
    q = np.concatenate([np.where(p.zero, 0, p.q) for p in (first, other)])
    scope = Scope(float(q.min()), float(q.max()))
    how = choose_series(request, scope, "float64", len(first.q) * len(other.q))
    form, numbers = looped(request.form, known(request.numbers))
    plan = Plan(form, request.wanted, "layers", None, how)
    # Where each entry costs much, few are computed for nothing.
    heavy = any(act.cost > 1 for act in facts(request.form).activations)
    side = TINY_TILE if integrated(request.form, how) else LIGHT_TILE if heavy else SMALL_TILE
    tiles = cut_small(first, second, side)
    shape = len(first.q), len(other.q)
    computed = len(tiles.places) * side**2
    warn_if_slow(request.form, computed, how)
    long = seconds(request.form, how, computed) > WELL_COMPILED
    stacks = (stack_of_tiles_watched if long else stack_of_tiles)(plan, numbers, *tiles.arguments)
    out = []
    for stack in stacks:
        matrix = paste(np.asarray(stack), tiles.places, shape, symmetric=second is None)
        if scope.low == 0 and facts(request.form).vanishes:
            matrix[first.zero] = 0
            matrix[:, other.zero] = 0
        out.append(matrix)
    return out


def _work_dtype(inputs: Inputs) -> str:
    """Small NumPy matrices cost nothing in float64; all else is computed in what was given.

    JAX arrays keep their precision: a derivative's backward pass may run outside this context.
    """
    n1, n2 = sizes_of(inputs)
    light = inputs.numpy and n1 * n2 < PROFILE_PAYS
    return "float64" if light or inputs.dtype == np.float64 else "float32"


class _Prepared(NamedTuple):
    """What a program for NumPy inputs is called with."""

    plan: Plan
    numbers: Numbers
    x1: Float[np.ndarray, "rows d"]
    x2: Float[np.ndarray, "rows d"] | None
    extra: Extra


def fill_up(request: Request, inputs: Inputs, dtype: str | None = None) -> _Prepared:
    """Choose, and put the inputs into arrays of one of few sizes."""
    n1, n2 = sizes_of(inputs)
    dtype = dtype or _work_dtype(inputs)
    scope = scope_of(inputs)
    assert scope is not None
    bias = 0.0
    if request.path is None and n1 * n2 >= PROFILE_PAYS and facts(request.form).degree is None:
        bare = bias_as_feature(request.form, known(request.numbers))
        if bare is not None:
            form, numbers, bias = bare
            request = request._replace(form=without_widths(form), numbers=numbers)
    choice = choose_path(request, scope, dtype, n1 * n2)
    form, numbers = looped(request.form, known(request.numbers))
    dies = scope.low == 0 and facts(request.form).vanishes
    first = filled(inputs.x1.astype(dtype), bias)
    second = None if inputs.x2 is None else filled(inputs.x2.astype(dtype), bias)
    # A loop of known length is faster, and rows that fill up are few where there are many.
    counts = (n1, n2) if min(n1, n2) <= KNOWN_LENGTH else None
    extra = Extra(dies, choice.profiles, counts)
    return _Prepared(_plan(request, form, choice), numbers, first, second, extra)


def _large(request: Request, inputs: Inputs) -> list[Float[np.ndarray, "n1 n2"]]:
    n1, n2 = sizes_of(inputs)
    return [np.array(m[:n1, :n2]) for m in map(np.asarray, gram(*fill_up(request, inputs)))]


def on_device(request: Request, inputs: Inputs) -> tuple[Float[Array, "n1 n2"], ...]:
    """The matrices of JAX arrays, which may be traced; nothing is checked or filled up."""
    plan, numbers, x1, x2, extra = for_device(request, inputs)
    out = gram_on_device(plan, numbers, x1, x2, extra)
    scope = request.scope
    if scope is not None and is_traced((x1, x2)) and not closed(request.form):
        out = tuple(_refused_outside(scope, m, x1, x2) for m in out)
    return tuple(cast(m, inputs.dtype) for m in out)


def for_device(
    request: Request, inputs: Inputs
) -> tuple[Plan, Numbers, Array, Array | None, Extra]:
    n1, n2 = sizes_of(inputs)
    dtype = _work_dtype(inputs)
    there = lambda x: cast(x, dtype) if is_jax(x) else jnp.asarray(x, dtype)
    x1 = there(inputs.x1)
    x2 = None if inputs.x2 is None else there(inputs.x2)
    fact = facts(request.form)
    # A look at the norms makes the device wait; where nothing depends on them it is spared.
    settled = fact.zonal and fact.degree is not None and closed(request.form)
    scope = None if settled else scope_of(inputs)
    if scope is not None and not scope.high < math.inf:  # a number that is none, or a large one
        check_inputs(inputs.x1, inputs.x2)
    choice = choose_path(request, scope, dtype, n1 * n2)
    form, numbers = request.form, request.numbers
    if not is_transformed((numbers, inputs.x1, inputs.x2)):
        form, numbers = for_backend(form, known(numbers), dtype)
    extra = Extra(fact.vanishes, choice.profiles)
    return _plan(request, form, choice), numbers, x1, x2, extra


def _refused_outside(
    scope: Scope, matrix: Float[Array, "n1 n2"], x1: Float[Array, "n1 d"], x2: Array | None
) -> Float[Array, "n1 n2"]:
    """NaN for inputs that were not announced: a compiled program cannot decide anew, nor raise."""

    def inside(x: Float[Array, "n d"]) -> Array:
        q = jnp.sum(x.astype(jnp.float64) ** 2, axis=1) / x.shape[1]
        slack = 1 + 1e-5
        return (q * slack >= scope.low) & (q <= scope.high * slack)

    first = inside(x1)
    second = first if x2 is None else inside(x2)
    return jnp.where(first[:, None] & second[None, :], matrix, jnp.nan)
