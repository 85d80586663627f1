"""Laws of networks that read pixels: of their Gram matrices, and of pairs of networks that are one function."""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from widelimit._base.structured import Graphs, Masked
from widelimit.describe import check_pixels
from widelimit.infinite import kernels, prepare
from widelimit.interpret import facts
from widelimit.layers import (
    Aggregate,
    Attention,
    AvgPool,
    Concat,
    Conv,
    ConvLocal,
    ConvTranspose,
    Dense,
    Dropout,
    Flatten,
    GlobalAvgPool,
    GlobalSumPool,
    Identity,
    Layer,
    LayerNorm,
    Phi,
    Positions,
    Product,
    Repeat,
    Resize,
    Scale,
    Serial,
    SumPool,
)

from ._inputs import as_batch, shape_for

_READOUTS = Flatten, GlobalAvgPool, GlobalSumPool


def _images(net: Layer, rng: np.random.Generator, n: int = 3) -> Any:
    return as_batch(net, rng.standard_normal((n, *shape_for(net))), rng)


def pixels_are_positive(net: Layer, rng: np.random.Generator) -> None:
    """Over all pixels of all inputs, before the read-out and behind it, both kernels are positive semidefinite."""
    x = _images(net, rng)
    sites = tuple(x.shape[1:-1])
    parts = [part for part in (_before_readout(net), net) if facts(part).pixels]
    for part in parts:
        pixels = int(np.prod(check_pixels(part, sites, x.shape[-1])))
        for value in kernels(part, x):
            k = (value.ndim - 2) // 2
            order = (0, *range(2, 2 + k), 1, *range(2 + k, 2 + 2 * k))
            matrix = value.transpose(order).reshape(len(x) * pixels, -1)
            scale = np.abs(matrix).max()
            np.testing.assert_allclose(matrix, matrix.T, rtol=0, atol=1e-13 * scale)
            assert np.linalg.eigvalsh(matrix)[0] >= -1e-12 * scale * len(matrix)


def _before_readout(net: Layer) -> Layer:
    layers = net.layers if isinstance(net, Serial) else (net,)
    place = next((i for i, layer in enumerate(layers) if isinstance(layer, _READOUTS)), None)
    return net if place is None else Serial(*layers[:place])


def pairs_of_images_agree(net: Layer, rng: np.random.Generator) -> None:
    """Two images have one kernel, whatever stands beside them; each with itself has that of `diagonal`."""
    x = _images(net, rng)
    whole = kernels(net, x)
    alone = kernels(net, x[:1], x[1:2])
    for a, b in zip(whole, alone, strict=True):
        np.testing.assert_allclose(a[:1, 1:2], b, rtol=1e-12, atol=1e-13 * np.abs(a).max())
    each = np.arange(len(x))
    for kind, value in zip(("nngp", "ntk"), whole, strict=True):
        np.testing.assert_allclose(prepare(net, kind).diagonal(x), value[each, each], rtol=1e-12)


def single_precision_of_pixels(net: Layer, rng: np.random.Generator) -> None:
    """float32 images give float32 kernels close to those in float64."""
    x = rng.standard_normal((3, *shape_for(net))).astype(np.float32)
    exact = kernels(net, as_batch(net, x.astype(np.float64), np.random.default_rng(0)))
    for a, b in zip(exact, kernels(net, as_batch(net, x, np.random.default_rng(0))), strict=True):
        assert b.dtype == np.float32
        np.testing.assert_allclose(b, a, rtol=1e-5, atol=2e-6 * np.abs(a).max())


# --- pairs of networks ---------------------------------------------------------------------------------


class Same(NamedTuple):
    """Two networks, each with its inputs, that have the same kernels."""

    net: Layer
    x: Any
    twin: Layer
    x_twin: Any


Relation = Callable[[np.random.Generator], Same]
_RELU = Phi("relu")
_BODY = Conv(3, b_std=0.3) >> _RELU
_FLAT, _POOL = Flatten() >> Dense(), GlobalAvgPool() >> Dense()


def _on(x: Any, net: Layer, twin: Layer) -> Same:
    return Same(net, x, twin, x)


def _sequence(rng: np.random.Generator, pixels: int = 4, n: int = 2) -> np.ndarray:
    return rng.standard_normal((n, pixels, 2))


def window_of_the_image_is_flatten(rng: np.random.Generator) -> Same:
    """A window as large as the image, without padding, is `Flatten` and `Dense`."""
    whole = Conv(4, padding="valid", b_std=0.2) >> Flatten()
    return _on(_sequence(rng), whole, Flatten() >> Dense(b_std=0.2))


def single_taps_on_constant_images_are_an_mlp(rng: np.random.Generator) -> Same:
    """Windows of one pixel on constant images are an MLP."""
    x = rng.standard_normal((3, 2))
    block = lambda layer: Repeat(layer >> _RELU, 2)
    net = block(Conv(1, w_std=1.2, b_std=0.1)) >> _FLAT
    mlp = block(Dense(w_std=1.2, b_std=0.1)) >> Dense()
    return Same(net, np.repeat(x[:, None], 4, axis=1), mlp, x)


def windows_on_one_pixel_are_dense(rng: np.random.Generator) -> Same:
    """Of a window on a single pixel, by slices, one tap of three reads something."""
    x = rng.standard_normal((3, 2))
    net = lambda layer: Repeat(layer >> _RELU, 2)
    mlp = net(Dense(w_std=1.2 / 3**0.5, b_std=0.1)) >> Dense()
    return Same(net(Conv(3, w_std=1.2, b_std=0.1)) >> _POOL, x[:, None], mlp, x)


def taps_beyond_the_image_read_nothing(rng: np.random.Generator) -> Same:
    """A window wider than the image, with pixels taken as a map, is a narrower one of smaller weights."""
    block = lambda width, std: Repeat(Conv((2, width), w_std=std, b_std=0.2) >> _RELU, 2)
    wide = block(5, 1.2) >> Resize((3, 1)) >> _POOL
    return _on(rng.standard_normal((2, 3, 1, 2)), wide, block(1, 1.2 / 5**0.5) >> _POOL)


def circular_networks_do_not_see_shifts(rng: np.random.Generator) -> Same:
    """Circular windows with a global pool are invariant to shifts."""
    x = rng.standard_normal((2, 4, 3, 2))
    net = Conv(3, padding="circular") >> _RELU >> _POOL
    return Same(net, x, net, np.roll(x, (1, 2), axis=(1, 2)))


def global_pool_is_a_pool_of_the_image(rng: np.random.Generator) -> Same:
    """`GlobalAvgPool` is `AvgPool` with the image as its window."""
    return _on(_sequence(rng), _BODY >> _POOL, _BODY >> AvgPool(4) >> _FLAT)


def pools_chain(rng: np.random.Generator) -> Same:
    """Two pools of 2 are one of 4."""
    return _on(
        _sequence(rng), _BODY >> AvgPool(2) >> AvgPool(2) >> _FLAT, _BODY >> AvgPool(4) >> _FLAT
    )


def sums_are_multiples_of_means(rng: np.random.Generator) -> Same:
    """Sum pools are average pools times the number of pixels, between layers and at the end."""
    deep = lambda pool, last: Conv(2) >> pool >> _RELU >> last >> Dense()
    mean = deep(AvgPool(2) >> Scale(2.0), GlobalAvgPool() >> Scale(2.0))
    return _on(_sequence(rng), deep(SumPool(2), GlobalSumPool()), mean)


def local_weights_with_flatten_are_shared_weights(rng: np.random.Generator) -> Same:
    """Up to `Flatten`, if no layer mixes pixels, weights of each pixel's own have the kernels of shared ones."""
    net = lambda conv: conv(3, b_std=0.3) >> _RELU >> conv(2) >> _RELU >> _FLAT
    return _on(_sequence(rng), net(ConvLocal), net(Conv))


def transposed_single_taps_are_single_taps(rng: np.random.Generator) -> Same:
    """A transposed window of one pixel and stride 1 is a window of one pixel."""
    net = lambda conv: conv(1, b_std=0.3) >> _RELU >> _FLAT
    return _on(_sequence(rng), net(ConvTranspose), net(Conv))


def normalising_twice_is_once(rng: np.random.Generator) -> Same:
    """`LayerNorm` twice is once, over channels and over all."""
    net = lambda times: Serial(
        *(Conv(3), *[LayerNorm()] * times, _RELU, Conv(2), *[LayerNorm("all")] * times, _RELU),
        _FLAT,
    )
    return _on(_sequence(rng), net(2), net(1))


def keeping_all_is_no_dropout(rng: np.random.Generator) -> Same:
    """`Dropout(1.0)` does nothing."""
    return _on(_sequence(rng), _BODY >> Dropout(1.0) >> _FLAT, _BODY >> _FLAT)


def constant_attention_is_a_mean_of_values(rng: np.random.Generator) -> Same:
    """Without queries all pixels attend to all alike: a global pool, then values and outputs as `Dense`."""
    attention = Attention(q_std=0.0, v_std=0.7, o_std=1.3, b_std=0.2)
    values = GlobalAvgPool() >> Dense(w_std=0.7) >> Dense(w_std=1.3, b_std=0.2)
    return _on(_sequence(rng), _BODY >> attention >> _FLAT, _BODY >> values >> Dense())


def attention_commutes_with_permutations(rng: np.random.Generator) -> Same:
    """Without positions, attention does not know which pixel is which."""
    x = _sequence(rng)
    net = Dense() >> _RELU >> Attention() >> _RELU >> _POOL
    return Same(net, x, net, x[:, ::-1].copy())


def positions_of_no_size_are_none(rng: np.random.Generator) -> Same:
    """Embeddings of size 0 are none."""
    net = lambda positions: _BODY >> Attention(positions=positions) >> _POOL
    return _on(_sequence(rng), net(Positions(0.0)), net(None))


def equal_branches_concatenate_to_one(rng: np.random.Generator) -> Same:
    """Independent branches of one kind, side by side, are one that is wider."""
    net = Concat(Conv(3, b_std=0.2), Conv(3, b_std=0.2), widths=(1, 2))
    return _on(_sequence(rng), net >> _POOL, Conv(3, b_std=0.2) >> _POOL)


def products_commute(rng: np.random.Generator) -> Same:
    """The order of the factors does not matter."""
    a, b = Conv(3, b_std=0.2), Dense() >> _RELU >> Dense()
    return _on(_sequence(rng), Product(a, b) >> _POOL, Product(b, a) >> _POOL)


def resizing_to_its_size_is_nothing(rng: np.random.Generator) -> Same:
    """An image resized to its own size is itself, with pixels taken as a map or slice by slice."""
    return _on(_sequence(rng), _BODY >> Resize(4) >> _POOL, _BODY >> _POOL)


def dependent_branches_add_as_maps(rng: np.random.Generator) -> Same:
    """A signal plus itself is twice the signal, not two independent ones."""
    net = lambda layer: Conv(3) >> layer >> _RELU >> _FLAT
    return _on(_sequence(rng), net(Identity() + Identity()), net(Scale(2.0)))


def masked_pixels_are_not_there(rng: np.random.Generator) -> Same:
    """Pixels behind a mask, whatever is in them, change nothing."""
    x = _sequence(rng)
    longer = np.concatenate([x, np.full((2, 2, 2), np.nan)], axis=1)
    masked = Masked(longer, np.broadcast_to(np.arange(6) >= 4, (2, 6)))
    net = _BODY >> Attention(b_std=0.2) >> LayerNorm("all") >> Phi("cos") >> _POOL
    return Same(net, masked, net, x)


def a_graph_of_a_ring_is_a_circular_window(rng: np.random.Generator) -> Same:
    """Sums over neighbours on a ring are a circular pool."""
    x, eye = _sequence(rng), np.eye(4)
    ring = eye + np.roll(eye, 1, axis=1) + np.roll(eye, -1, axis=1)
    net = lambda neighbours: Dense() >> _RELU >> neighbours >> Dense() >> _RELU >> _POOL
    graphs = Graphs(x, np.broadcast_to(ring, (2, 4, 4)))
    return Same(net(Aggregate()), graphs, net(SumPool(3, stride=1, padding="circular")), x)


RELATIONS: tuple[Relation, ...] = (
    window_of_the_image_is_flatten,
    single_taps_on_constant_images_are_an_mlp,
    taps_beyond_the_image_read_nothing,
    windows_on_one_pixel_are_dense,
    circular_networks_do_not_see_shifts,
    global_pool_is_a_pool_of_the_image,
    pools_chain,
    sums_are_multiples_of_means,
    local_weights_with_flatten_are_shared_weights,
    transposed_single_taps_are_single_taps,
    normalising_twice_is_once,
    keeping_all_is_no_dropout,
    constant_attention_is_a_mean_of_values,
    attention_commutes_with_permutations,
    positions_of_no_size_are_none,
    equal_branches_concatenate_to_one,
    products_commute,
    resizing_to_its_size_is_nothing,
    dependent_branches_add_as_maps,
    masked_pixels_are_not_there,
    a_graph_of_a_ring_is_a_circular_window,
)


def check_relation(relation: Relation, rng: np.random.Generator) -> None:
    """Raise `AssertionError` where two networks that are one function differ in a kernel."""
    net, x, twin, x_twin = relation(rng)
    for a, b in zip(kernels(net, x), kernels(twin, x_twin), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-12, atol=1e-12 * np.abs(b).max())
