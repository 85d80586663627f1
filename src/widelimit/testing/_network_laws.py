"""Laws of networks: what the kernels of any description owe to theory and to one another."""

from collections.abc import Callable

import jax
import numpy as np

from widelimit.describe import activations_of, from_json, from_text, to_json, to_text
from widelimit.infinite import kernels, nngp, ntk, prepare
from widelimit.layers import Layer

Law = Callable[[Layer, np.random.Generator], None]


def _inputs(rng: np.random.Generator, n: int = 6, d: int = 3) -> np.ndarray:
    x = rng.standard_normal((n, d)) * np.exp(rng.standard_normal((n, 1)))
    x[1] = x[0]  # an input twice
    x[2] = -x[0]  # and its opposite
    return x


def gram_is_symmetric_and_positive(net: Layer, rng: np.random.Generator) -> None:
    """Both kernel matrices are symmetric, and positive semidefinite up to rounding."""
    exact = all(act.closed_form for act in activations_of(net))
    for matrix in kernels(net, _inputs(rng)):
        assert np.isfinite(matrix).all()
        slack = (1e-14 if exact else 1e-10) * np.abs(matrix).max()
        np.testing.assert_allclose(matrix, matrix.T, rtol=1e-12, atol=slack)
        eigenvalues = np.linalg.eigvalsh(matrix)
        assert eigenvalues[0] > -1e-10 * eigenvalues[-1]


def parts_agree(net: Layer, rng: np.random.Generator) -> None:
    """The kernel of a part is a part of the kernel, an input against its copy included."""
    x = _inputs(rng)
    for fn in (nngp, ntk):
        whole = fn(net, x)
        scale = 1e-13 * np.abs(whole).max()
        np.testing.assert_allclose(fn(net, x, x[:2]), whole[:, :2], rtol=1e-12, atol=scale)
        np.testing.assert_allclose(whole[0, 0], whole[0, 1], rtol=1e-13, atol=scale)


def both_paths_agree(net: Layer, rng: np.random.Generator) -> None:
    """On a sphere the profile and the layer-by-layer path give the same numbers."""
    x = _inputs(rng)
    x /= np.linalg.norm(x, axis=1, keepdims=True)
    kernel = prepare(net)
    for a, b in zip(kernel.by("layers").both(x), kernel.by("profile").both(x), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-12, atol=3e-14 * np.abs(a).max())


def text_round_trip(net: Layer, rng: np.random.Generator) -> None:
    """Text and JSON give the network back."""
    assert from_text(to_text(net)) == net
    assert from_json(to_json(net)) == net
    assert hash(from_text(to_text(net))) == hash(net)


def single_precision_is_close(net: Layer, rng: np.random.Generator) -> None:
    """float32 inputs give float32 kernels that agree with float64, NumPy and JAX alike."""
    x = _inputs(rng).astype(np.float32)
    exact = kernels(net, x.astype(np.float64))
    single = kernels(net, x)
    on_device = kernels(net, jax.numpy.asarray(x))
    for a, b, c in zip(exact, single, on_device, strict=True):
        assert b.dtype == np.float32
        assert isinstance(c, jax.Array)
        np.testing.assert_allclose(b, a, rtol=1e-5, atol=2e-6 * np.abs(a).max())
        np.testing.assert_allclose(np.diag(b), np.diag(a), rtol=1e-6)
        np.testing.assert_allclose(c, b, rtol=1e-5, atol=2e-6 * np.abs(a).max())


NETWORK_LAWS: tuple[Law, ...] = (
    gram_is_symmetric_and_positive,
    parts_agree,
    both_paths_agree,
    text_round_trip,
    single_precision_is_close,
)


def check_network(net: Layer, seed: int = 0) -> None:
    """Run every law on a network; raises `AssertionError` at the first that fails.

    Args:
        net: The network; use it for a layer of your own, put between widelimit's.
        seed: For the inputs.
    """
    for law in NETWORK_LAWS:
        law(net, np.random.default_rng(seed))
