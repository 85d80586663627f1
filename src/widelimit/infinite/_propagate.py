"""The central pass: what each layer does to the kernels of an infinitely wide network."""

from typing import Any

import jax
import jax.numpy as jnp

from widelimit._base.passes import layer_pass
from widelimit.activations import Cov, How, second_moment, transform
from widelimit.describe import linear_factor
from widelimit.layers import Dense, Identity, Layer, Phi, Repeat, Residual, Scale, Serial, Sum

from ._pair import Pair, added, scaled, with_bias


@layer_pass("its kernel is propagated")
def propagate(layer: Layer, pair: Pair, how: How) -> Any:
    """The statistics of the layer's output from those of its input."""


@propagate.register
def propagate_dense(layer: Dense, pair: Pair, how: How) -> Pair:
    r"""$K'=\sigma_w^2K+\sigma_b^2$ and $\Theta'=\sigma_w^2\Theta+K'$: the weights are trained too."""
    out = scaled(pair, layer.w_std)
    if not (isinstance(layer.b_std, float) and layer.b_std == 0):
        out = with_bias(out, layer.b_std)
    return Pair(out.q1, out.q2, out.minus, out.above, out.ntk + out.rho)


@propagate.register
def propagate_phi(layer: Phi, pair: Pair, how: How) -> Pair:
    r"""$K'=T(K)$ and $\Theta'=\dot T(K)\,\Theta$."""
    act = layer.activation
    with jax.enable_x64(True):
        q1, q2 = second_moment(act, pair.q1), second_moment(act, pair.q2)
        dtype = pair.minus.dtype
        if act.angular is not None:
            minus, plus, slope = act.angular(pair.minus, pair.above)
        else:
            cov = Cov(pair.q1.astype(dtype), pair.q2.astype(dtype), pair.minus, pair.plus)
            minus, plus, slope = transform(act, cov, q1.astype(dtype), q2.astype(dtype), how)
        return Pair(q1, q2, minus, plus, slope * pair.ntk)


@propagate.register
def propagate_serial(layer: Serial, pair: Pair, how: How) -> Pair:
    """One after another."""
    for part in layer.layers:
        pair = propagate(part, pair, how)
    return pair


@propagate.register
def propagate_repeat(layer: Repeat, pair: Pair, how: How) -> Pair:
    """A loop, so that compilation does not grow with depth."""
    with jax.enable_x64(True):
        if layer.times == 0:
            return pair
        start, times = _steady(layer, pair, how)
        step = lambda carry, _: (propagate(layer.body, carry, how), None)
        return jax.lax.scan(step, start, None, length=times)[0] if times else start


class Loop(Repeat):
    """A repetition whose depth, at least 2, is known at run time, so that all depths share a program."""

    times: Any


def with_loops(net: Layer) -> Layer:
    """The network with loops for repetitions; it cannot be differentiated backwards."""
    is_repeat = lambda node: isinstance(node, Repeat)

    def loosen(node: Any) -> Any:
        if not is_repeat(node):
            return node
        return (Loop if node.times > 1 else Repeat)(with_loops(node.body), node.times)

    return jax.tree.map(loosen, net, is_leaf=is_repeat)


@propagate.register
def propagate_loop(layer: Loop, pair: Pair, how: How) -> Pair:
    """As a repetition."""
    with jax.enable_x64(True):
        start, times = _steady(layer, pair, how)
        step = lambda _, carry: propagate(layer.body, carry, how)
        return jax.lax.fori_loop(jnp.int32(0), jnp.asarray(times, jnp.int32), step, start)


@linear_factor.register
def _factor_of_loop(layer: Loop) -> Any:
    factor = linear_factor(layer.body)
    return None if factor is None else factor**layer.times


def _steady(layer: Repeat, pair: Pair, how: How) -> tuple[Pair, Any]:
    """A state whose form the body preserves, and how often the body still has to be applied."""
    times, shapes = layer.times, jax.eval_shape(lambda p: propagate(layer.body, p, how), pair)
    if pair.above is not None and shapes.above is None:  # what the first time makes known
        pair, times = propagate(layer.body, pair, how), times - 1
    elif pair.above is None and shapes.above is not None:
        pair = Pair(pair.q1, pair.q2, pair.minus, pair.plus, pair.ntk)
    return jax.tree.map(lambda a, s: jnp.broadcast_to(a, s.shape), pair, shapes), times


@propagate.register(Identity)
def propagate_identity(layer: Identity, pair: Pair, how: How) -> Pair:
    """Nothing changes."""
    return pair


@propagate.register
def propagate_scale(layer: Scale, pair: Pair, how: How) -> Pair:
    """Every kernel gets the square of the factor."""
    return scaled(pair, layer.factor)


@propagate.register
def propagate_residual(layer: Residual, pair: Pair, how: How) -> Pair:
    r"""$K'=K+\alpha^2K_{body}$, and the same for $\Theta$: the body ends in fresh weights."""
    return _join((Identity(), Serial(layer.body, Scale(layer.alpha))), pair, how)


@propagate.register
def propagate_sum(layer: Sum, pair: Pair, how: How) -> Pair:
    """Independent branches add; multiples of the input itself are combined first."""
    return _join(layer.branches, pair, how)


def _join(branches: tuple[Layer, ...], pair: Pair, how: How) -> Pair:
    factors = [linear_factor(branch) for branch in branches]
    others = [b for b, f in zip(branches, factors, strict=True) if f is None]
    skips = [f for f in factors if f is not None]
    parts = [propagate(branch, pair, how) for branch in others]
    if skips:
        total = sum(skips[1:], start=skips[0])
        trivial = isinstance(total, float) and total == 1.0
        parts.insert(0, pair if trivial else scaled(pair, total))
    out = parts[0]
    for part in parts[1:]:
        out = added(out, part)
    return out
