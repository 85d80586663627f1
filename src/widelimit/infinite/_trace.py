"""The kernels layer by layer, under the names of the papers."""

import dataclasses
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

from widelimit._base.arrays import Inputs, as_inputs, convention
from widelimit._base.scalars import Scalar
from widelimit._base.shown import shown
from widelimit._base.structured import Data, as_images
from widelimit._base.types import Tensor
from widelimit.describe import check, check_pixels
from widelimit.interpret import Visit, facts, interpret, visits
from widelimit.layers import Dense, Layer, Phi, Repeat, Residual, Serial

from ._correlation import as_points, correlation
from ._ends import kernels_of, of_all_pairs
from ._evaluate import Request, choose_series, scope_of, sizes_of
from ._images import Images
from ._pair import Pair
from ._plan import split

Layers = Float[Tensor, "layers n1 n2"]
Pairs = Float[Array, "n1 n2"]


class Step(NamedTuple):
    """What one layer made of the kernels.

    Attributes:
        layer: The layer, as text.
        nngp: The covariance after it, shape (n1, n2), or (n1, n2, *pixels, *pixels) where there are pixels.
        ntk: The tangent kernel after it.
    """

    layer: str
    nngp: Float[Tensor, "n1 n2 ..."]
    ntk: Float[Tensor, "n1 n2 ..."]


@shown("the kernels of a network, layer by layer")
class Trace(NamedTuple):
    r"""The kernels of a network, layer by layer. Index 0 of each array is the first layer.

    For an MLP or ResNet with L hidden layers, as in Jacot et al. (2018) and Tirer et al. (2022):

    Attributes:
        steps: Every layer in order, repetitions and branches written out.
        K: $K^{(l)}$, $l=1..L+1$: covariance of the pre-activations; the last is the NNGP kernel.
        Theta: $\Theta^{(l)}$, $l=1..L+1$: tangent kernel of the network cut after layer l.
        Sigma: $\Sigma^{(l+1)}$, $l=1..L$: $\sigma_w^2T(K^{(l)})$ for an MLP,
            $\sigma_v^2\sigma_w^2T(K^{(l)})$ for a ResNet.
        Sigma_dot: The same with $\dot T=E[\varphi'\varphi']$.
        Pi: $\Pi^{(l)}$, $l=0..L$: how much of the tangent kernel at layer l reaches the output.
            ResNet: $\Pi^{(L)}=1$, $\Pi^{(l)}=\Pi^{(l+1)}(1+\alpha^2\dot\Sigma^{(l+2)})$; MLP:
            $\Pi^{(l)}=\Pi^{(l+1)}\dot\Sigma^{(l+2)}$.
    """

    steps: tuple[Step, ...]
    K: Layers | None
    Theta: Layers | None
    Sigma: Layers | None
    Sigma_dot: Layers | None
    Pi: Layers | None

    def summary(self) -> dict[str, object]:
        """What is shown of a trace."""
        arrays = {name: getattr(self, name) for name in ("K", "Theta", "Sigma", "Sigma_dot", "Pi")}
        return {"layers": len(self.steps), **arrays}


def trace(net: Layer, x1: Data, x2: Data | None = None) -> Trace:
    r"""The layer-by-layer quantities behind `nngp` and `ntk`.

    For a ResNet $\Theta=K^{(L+1)}+\Pi^{(0)}K^{(1)}+\alpha^2\sum_l\Pi^{(l)}(\Sigma^{(l+1)}+K^{(l)}\dot\Sigma^{(l+1)})$
    (Tirer et al. 2022, Theorem 2); for an MLP $\Theta=\sum_{l=0}^{L}\Pi^{(l)}K^{(l+1)}$. Networks that are
    neither have `steps` only; their other fields are None.

    Args:
        net: The network.
        x1: Data, shape (n1, d).
        x2: Data, shape (n2, d), or None for `x1`.

    Returns:
        The trace; arrays of shape (layers, n1, n2).

    Example:
        >>> import numpy as np, widelimit as wl
        >>> net, x = wl.resnet(depth=3, alpha=0.5), [[1.0, 0.0], [0.6, 0.8]]
        >>> t = wl.trace(net, x)
        >>> inner = (t.Pi[1:] * (t.Sigma + t.K[:-1] * t.Sigma_dot)).sum(axis=0)
        >>> theta = t.K[-1] + t.Pi[0] * t.K[0] + 0.5**2 * inner
        >>> bool(np.allclose(theta, wl.ntk(net, x), rtol=1e-14))
        True
    """
    check(net, ntk=True)
    if facts(net).pixels:
        return _trace_pixels(net, as_images(x1, x2))
    inputs = as_inputs(x1, x2)
    with convention(inputs):
        n1, n2 = sizes_of(inputs)
        request = Request(*split(net), ())
        how = choose_series(request, scope_of(inputs), str(inputs.dtype), n1 * n2)
        first = as_points(jnp.asarray(inputs.x1))
        second = first if inputs.x2 is None else as_points(jnp.asarray(inputs.x2))
        with jax.enable_x64(True):
            minus, plus = correlation(first.unit, second.unit)
            if inputs.x2 is None:
                same = jnp.eye(minus.shape[0], dtype=bool)
                minus, plus = jnp.where(same, 0, minus), jnp.where(same, 2, plus)
            start = Pair.of_data(first.q[:, None], second.q[None, :], minus, plus, how)
            root = visits(net, start)
            single = list(_in_order(root))
            zero = first.zero[:, None] | second.zero[None, :]
            dead = zero if facts(net).vanishes else jnp.zeros_like(zero)
            value = lambda p: _kernels_of(p, dead)
            steps = tuple(Step(repr(v.layer), *value(v.after)) for v in single)
            record = Trace(steps, *_paper_quantities(net, single, root.after, value))
            return _in_convention(record, inputs)


def _trace_pixels(net: Layer, inputs: Inputs) -> Trace:
    """Of networks on pixels: every layer, no quantities of the papers."""
    shape = inputs.x1.shape
    check_pixels(net, tuple(shape[1:-1]), shape[-1])
    with jax.enable_x64(True):
        names: list[str] = []

        def found(state: Images) -> list[Any]:
            single = [*_in_order(visits(net, state))]
            names[:] = [repr(v.layer) for v in single]
            return [kernels_of(v.after, ("nngp", "ntk"), str(inputs.dtype)) for v in single]

        values = of_all_pairs(inputs.x1, inputs.x2, str(inputs.dtype), found, own=True)
        steps = tuple(Step(name, *value) for name, value in zip(names, values, strict=True))
        return _in_convention(Trace(steps, *(None,) * 5), inputs)


def _in_convention(record: Trace, inputs: Inputs) -> Trace:
    give = lambda a: None if a is None else inputs.answer(a)
    steps = tuple(Step(s.layer, *inputs.answer((s.nngp, s.ntk))) for s in record.steps)
    return Trace(steps, *map(give, record[1:]))


def _in_order(visit: Visit) -> Iterator[Visit]:
    """The visits of single layers and of sums, branches before the sum that they end in."""
    for inner in visit.inner:
        yield from _in_order(inner)
    if not isinstance(visit.layer, Serial | Repeat):
        yield visit


def _kernels_of(pair: Pair, dead: Bool[Array, "n1 n2"]) -> tuple[Pairs, Pairs]:
    size = jnp.where(dead, 0, pair.size)
    return size * pair.rho, size * pair.ntk


def _paper_quantities(
    net: Layer,
    visits: list[Visit],
    final: Pair,
    value: Callable[[Pair], tuple[Pairs, Pairs]],
) -> tuple[Layers | None, ...]:
    """K, Theta, Sigma, Sigma_dot and Pi, if the network is an MLP or a ResNet."""
    gains = _mlp_gains(net) or _resnet_gains(net)
    if gains is None:
        return (None,) * 5
    sigma_gain, branch_gain = gains
    hidden = [v for v in visits if isinstance(v.layer, Phi)]
    entering = [value(v.before) for v in hidden] + [value(final)]
    k, theta = (jnp.stack(list(column)) for column in zip(*entering, strict=True))
    empty = jnp.zeros((0, *k.shape[1:]), k.dtype)
    sigma = sigma_gain * jnp.stack([value(v.after)[0] for v in hidden]) if hidden else empty
    sigma_dot = sigma_gain * jnp.stack(list(map(_dual_dot, hidden))) if hidden else empty
    pi = [jnp.ones(k.shape[1:], k.dtype)]
    for dot in sigma_dot[::-1]:
        pi.append(pi[-1] * (dot if branch_gain is None else 1 + branch_gain * dot))
    return k, theta, sigma, sigma_dot, jnp.stack(pi[::-1])


def _dual_dot(visit: Visit) -> Pairs:
    r"""$E[\varphi'\varphi']$: what becomes of a unit tangent kernel, relative to the variances."""
    unit = dataclasses.replace(visit.before, ntk=jnp.ones_like(visit.before.ntk))
    out = interpret(visit.layer, unit)
    return out.ntk * out.size / unit.size


def _mlp_gains(net: Layer) -> tuple[Scalar, Scalar | None] | None:
    match net:
        case Serial(layers=(Repeat(body=Serial(layers=(Dense() as a, Phi()))), Dense() as b)):
            same = (a.w_std, a.b_std) == (b.w_std, b.b_std)
            return (a.w_std**2, None) if same else None
    return None


def _resnet_gains(net: Layer) -> tuple[Scalar, Scalar | None] | None:
    match net:
        case Serial(
            layers=(
                Dense(w_std=1.0, b_std=0.0),
                Repeat(
                    body=Residual(
                        body=Serial(layers=(Dense() as w, Phi(), Dense() as v)), alpha=alpha
                    )
                ),
                Dense() as out,
            )
        ):
            plain = w.w_std == out.w_std and (w.b_std, v.b_std, out.b_std) == (0.0, 0.0, 0.0)
            return (v.w_std**2 * w.w_std**2, alpha**2) if plain else None
    return None
