"""Matrices on an accelerator: one expression for all entries, and a look at the result."""

import functools
import itertools
from collections.abc import Callable

import jax
import jax.numpy as jnp
from jax.sharding import Sharding, SingleDeviceSharding
from jaxtyping import Array, Float

from widelimit._base.arrays import check_finite, is_traced, is_transformed
from widelimit._base.thresholds import CHEAP_DIFFERENCES, FEW_FEATURES, NEARLY_PARALLEL

from ._correlation import as_points, cosines
from ._halved import halved, halves_pay
from ._layered import Matrices
from ._matrix import gram
from ._plan import Numbers, Plan, angular
from ._powers import all_powers
from ._tile import Extra, evaluator


def on_accelerator() -> bool:
    """Whether JAX computes on something else than a CPU."""
    return jax.default_backend() != "cpu"


def check_inputs(x1: Float[Array, "n1 d"], x2: Float[Array, "n2 d"] | None) -> None:
    """Refuse NaN and infinity where that has not been done yet."""
    if on_accelerator():
        for name, x in (("x1", x1), ("x2", x2)):
            if x is not None:
                check_finite(x, name)


def gram_on_device(
    plan: Plan,
    numbers: Numbers,
    x1: Float[Array, "n1 d"],
    x2: Float[Array, "n2 d"] | None,
    extra: Extra,
) -> Matrices:
    """The wanted matrices; on a GPU in one piece, and again with care if vectors are nearly parallel.

    A loop over tiles and a decision inside the program cost a GPU several times the arithmetic.
    """
    (n1, d), n2 = x1.shape, len(x1 if x2 is None else x2)
    few = d <= FEW_FEATURES or n1 * n2 * d <= CHEAP_DIFFERENCES
    simple = plan.path == "profile" or (plan.path == "layers" and angular(plan.form))
    if not on_accelerator() or few or not simple or is_traced((numbers, x1, x2)):
        check_inputs(x1, x2)
        return gram(plan, numbers, x1, x2, extra)
    run = _whole
    if not is_transformed((numbers, x1, x2)):
        numbers, extra = _placed(numbers, extra, plan.wanted, str(x1.dtype))
        run = _telling(x1.sharding)
    out, careful = run(plan, numbers, x1, x2, extra)
    if float(careful):
        check_inputs(x1, x2)
        return gram(plan, numbers, x1, x2, extra)
    return out


_PLACED: dict[tuple[object, ...], tuple[Extra, tuple[Numbers, Extra]]] = {}
_MOST = 256
_STRIPS = 4


def _placed(
    numbers: Numbers, extra: Extra, kinds: tuple[str, ...], dtype: str
) -> tuple[Numbers, Extra]:
    """The same on the device, with powers, once for all calls: each copy would make them wait."""
    exactly = tuple((type(v), v) for v in numbers)  # 2 may be a depth, 2.0 is none
    key = exactly, id(extra.profiles), bool(extra.vanishes), kinds, dtype
    found = _PLACED.get(key)
    if found is None or found[0].profiles is not extra.profiles:
        if len(_PLACED) >= _MOST:
            _PLACED.clear()
        powers = all_powers(extra.profiles, kinds, dtype)
        with jax.enable_x64(True):
            there = jax.device_put((numbers, extra._replace(powers=powers)))
        found = _PLACED[key] = (extra, there)
    return found[1]


@functools.cache
def _telling(where: Sharding) -> Callable[..., tuple[Matrices, Float[Array, ""]]]:
    """`_whole`, which itself brings its answer to the host: to fetch it takes as long as some of the work."""
    if len(where.device_set) > 1:
        return _whole
    (device,) = where.device_set
    host = SingleDeviceSharding(device, memory_kind="pinned_host")
    return jax.jit(_all_at_once, static_argnums=0, out_shardings=(None, host))


def _all_at_once(
    plan: Plan,
    numbers: Numbers,
    x1: Float[Array, "n1 d"],
    x2: Float[Array, "n2 d"] | None,
    extra: Extra,
) -> tuple[Matrices, Float[Array, ""]]:
    """The matrices, and 1 if some inputs are nearly parallel, or not finite, else 0."""
    evaluate, first = evaluator(plan, numbers, extra), as_points(x1)
    second = first if x2 is None else as_points(x2)
    with jax.enable_x64(True):  # of a maximum a compiler may leave out what is no number
        finite = jnp.isfinite(first.q).all() & jnp.isfinite(second.q).all()
    limit = 1 - NEARLY_PARALLEL[str(x1.dtype)]
    if x2 is None and halves_pay(plan, x1):
        matrices, near = halved(plan, numbers, x1, extra, limit)
        return matrices, (near | ~finite).astype(jnp.float32)
    careful = lambda nearest: ((nearest > limit) | ~finite).astype(jnp.float32)
    edge1 = evaluate.sizes(first)
    edge2 = edge1 if x2 is None else evaluate.sizes(second)
    rho = cosines(first.unit, second.unit)
    minus, plus = jnp.abs(1 - rho), jnp.abs(1 + rho)  # of roundings beyond 1 the size is left
    if x2 is not None:
        return evaluate.tile(minus, plus, edge1, edge2), careful(jnp.max(jnp.abs(rho)))
    row, column = (jax.lax.broadcasted_iota(jnp.int32, rho.shape, i) for i in (0, 1))
    same = row == column
    if plan.path != "profile":  # there the diagonal is replaced
        minus, plus = jnp.where(same, 0, minus), jnp.where(same, 2, plus)
    out = evaluate.tile(minus, plus, edge1, edge2)
    exact = evaluate.diagonal(first)
    put = lambda name, m: jnp.where(same, exact[name].astype(m.dtype)[:, None], m)
    matrices = tuple(put(name, m) for name, m in zip(plan.wanted, out, strict=True))
    return matrices, careful(_largest(jnp.where(same, 0, jnp.abs(rho))))


_whole = jax.jit(_all_at_once, static_argnums=0)


def _largest(matrix: Float[Array, "n n"]) -> Float[Array, ""]:
    """The largest entry of a symmetric matrix: of strips as far as the diagonal, since reading takes time."""
    many = min(_STRIPS, len(matrix))
    ends = [len(matrix) * i // many for i in range(many + 1)]
    parts = [jnp.max(matrix[a:b, :b]) for a, b in itertools.pairwise(ends)]
    return jnp.max(jnp.stack(parts))
