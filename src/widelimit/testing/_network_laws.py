"""Laws of networks: what the kernels of any description owe to theory and to one another."""

import math
from collections.abc import Callable

import jax
import numpy as np

from widelimit._base.keys import as_generator
from widelimit._base.renamed import renamed_argument
from widelimit._base.types import Seed
from widelimit.describe import from_json, from_text, shape, to_json, to_text
from widelimit.finite import finite, monte_carlo_kernels
from widelimit.infinite import kernels, nngp, ntk, prepare
from widelimit.interpret import facts
from widelimit.layers import Layer

from ._inputs import as_batch, assert_bounded, assert_gram, shape_for, unlike_points
from ._pixel_laws import pairs_of_images_agree, pixels_are_positive, single_precision_of_pixels

Law = Callable[[Layer, np.random.Generator], None]


def gram_is_symmetric_and_positive(net: Layer, rng: np.random.Generator) -> None:
    """Both kernel matrices are symmetric, and positive semidefinite up to rounding."""
    exact = all(act.closed_form for act in facts(net).activations)
    for matrix in kernels(net, unlike_points(rng)):
        assert_gram(matrix, 1e-14 if exact else 1e-10)


def parts_agree(net: Layer, rng: np.random.Generator) -> None:
    """The kernel of a part is a part of the kernel, an input against its copy included."""
    x = unlike_points(rng)
    for fn in (nngp, ntk):
        whole = fn(net, x)
        scale = 1e-13 * np.abs(whole).max()
        np.testing.assert_allclose(fn(net, x, x[:2]), whole[:, :2], rtol=1e-12, atol=scale)
        np.testing.assert_allclose(whole[0, 0], whole[0, 1], rtol=1e-13, atol=scale)


def both_paths_agree(net: Layer, rng: np.random.Generator) -> None:
    """On a sphere the profile and the layer-by-layer path give the same numbers."""
    x = unlike_points(rng)
    x /= np.linalg.norm(x, axis=1, keepdims=True)
    kernel = prepare(net)
    for a, b in zip(kernel.by("layers").both(x), kernel.by("profile").both(x), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-12, atol=3e-14 * np.abs(a).max())


def unusual_inputs_are_inputs(net: Layer, rng: np.random.Generator) -> None:
    """A zero vector, tiny vectors, near-duplicates in angle, in norm and in both: still a kernel."""
    x = unlike_points(rng)
    x[1] = x[0] + 1e-8 * rng.standard_normal(3)
    x[2] = x[0] * (1 + 1e-8)
    x[3], x[4] = 0, 1e-150 * x[5]
    whole, crossed = kernels(net, x), kernels(net, x, x.copy())
    for matrix, other in zip(whole, crossed, strict=True):
        assert np.isfinite(matrix).all()
        assert_bounded(matrix)
        np.testing.assert_allclose(np.diag(other), np.diag(matrix), rtol=1e-12)


def text_round_trip(net: Layer, rng: np.random.Generator) -> None:
    """Text and JSON give the network back."""
    assert from_text(to_text(net)) == net
    assert from_json(to_json(net)) == net
    assert hash(from_text(to_text(net))) == hash(net)


def single_precision_is_close(net: Layer, rng: np.random.Generator) -> None:
    """float32 inputs give float32 kernels that agree with float64, NumPy and JAX alike."""
    x = unlike_points(rng).astype(np.float32)
    exact = kernels(net, x.astype(np.float64))
    single = kernels(net, x)
    on_device = kernels(net, jax.numpy.asarray(x))
    for a, b, c in zip(exact, single, on_device, strict=True):
        assert b.dtype == np.float32
        assert isinstance(c, jax.Array)
        np.testing.assert_allclose(b, a, rtol=1e-5, atol=2e-6 * np.abs(a).max())
        np.testing.assert_allclose(np.diag(b), np.diag(a), rtol=1e-6)
        np.testing.assert_allclose(c, b, rtol=1e-5, atol=2e-6 * np.abs(a).max())


def shape_and_finite_agree(net: Layer, rng: np.random.Generator) -> None:
    """Widths and parameters are counted as they are drawn."""
    point = shape_for(net)
    for width, outputs in ((8, 1), (6, 3)):
        network = finite(net, width)
        assert shape(net, point, width, outputs).num_params == network.num_params(point, outputs)
        drawn = jax.eval_shape(lambda k=outputs, network=network: network.init(0, point, k))
        held = sum(math.prod(leaf.shape) for leaf in jax.tree.leaves(drawn))
        assert held >= network.num_params(point, outputs)


def finite_networks_approach_the_limit(net: Layer, rng: np.random.Generator) -> None:
    """Kernels of wide networks agree with the limit within four standard errors and the bias 1/n."""
    point = shape_for(net)
    width = 256 if len(point) == 1 else 96  # with pixels a network costs more
    scales = np.array([0.5, 1.0, 1.5]).reshape(3, *(1,) * len(point))
    points = (rng.standard_normal((3, *point)) * scales).astype(np.float32)
    x = as_batch(net, points, rng)
    found = monte_carlo_kernels(net, x, width=width, samples=32, key=0)
    for estimate, exact in zip(found, kernels(net, x), strict=True):
        size = np.abs(exact)
        if size.ndim == 2:
            size = np.sqrt(np.outer(np.diag(exact), np.diag(exact)))
        size = np.maximum(size, 1e-3 * size.max())
        allowed = 4 * estimate.stderr + 4 / width * _layers_in(net) * size
        assert (np.abs(estimate.mean - exact) <= allowed).all()
        assert (estimate.stderr < 0.3 * size.max()).all()


def _layers_in(net: Layer) -> int:
    """Weight matrices, each of which adds a bias of order 1/n."""
    return len(shape(net, shape_for(net), 8).widths)


NETWORK_LAWS: tuple[Law, ...] = (
    gram_is_symmetric_and_positive,
    parts_agree,
    both_paths_agree,
    unusual_inputs_are_inputs,
    text_round_trip,
    single_precision_is_close,
    shape_and_finite_agree,
    finite_networks_approach_the_limit,
)

PIXEL_LAWS: tuple[Law, ...] = (
    pixels_are_positive,
    pairs_of_images_agree,
    single_precision_of_pixels,
    text_round_trip,
    shape_and_finite_agree,
    finite_networks_approach_the_limit,
)


@renamed_argument(seed="key")
def check_network(net: Layer, key: Seed = 0) -> None:
    """Run every law on a network; raises `AssertionError` at the first that fails.

    A network that reads pixels is asked for those of `PIXEL_LAWS`; that layers with pixels fit together is in
    `RELATIONS`, for `check_relation`.

    Args:
        net: The network; use it for a layer of your own, put between widelimit's.
        key: For the inputs.
    """
    for law in PIXEL_LAWS if facts(net).pixels else NETWORK_LAWS:
        law(net, as_generator(key))
