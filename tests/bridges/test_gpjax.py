"""GPJax: values and posteriors are ours, numbers are learnt."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import widelimit as wl

gpjax = pytest.importorskip("gpjax", reason="GPJax is not installed; see make test-bridges")

from widelimit.gpjax import NetworkKernel  # noqa: E402

NET = wl.Dense(w_std=1.4, b_std=0.6) >> wl.Phi("erf") >> wl.Dense(w_std=1.1)


@pytest.fixture(autouse=True)
def as_others_compute():
    """GPJax promotes ranks and dtypes, which our own code never does, and expects 64 bits."""
    with (
        jax.numpy_rank_promotion("allow"),
        jax.numpy_dtype_promotion("standard"),
        jax.enable_x64(True),
    ):
        yield


@pytest.fixture
def data():
    rng = np.random.default_rng(0)
    return jnp.asarray(rng.standard_normal((8, 2))), jnp.asarray(rng.standard_normal((8, 1)))


@pytest.mark.parametrize("kind", ["nngp", "ntk"])
def test_values(kind, data):
    kernel, rule = NetworkKernel(NET, kind), getattr(wl, kind)
    x = data[0]
    ours = rule(NET, np.asarray(x))
    assert np.allclose(kernel.gram(x).as_matrix(), ours, rtol=1e-12)
    assert np.allclose(kernel.cross_covariance(x, x[:3]), ours[:, :3], rtol=1e-12)
    assert np.allclose(kernel(x[0], x[1]), ours[0, 1], rtol=1e-12)
    assert np.allclose(jnp.diag(kernel.diagonal(x).as_matrix()), np.diag(ours), rtol=1e-12)
    one = NetworkKernel(NET, kind, active_dims=[1])
    assert np.allclose(one.gram(x).as_matrix(), rule(NET, np.asarray(x[:, 1:])), rtol=1e-12)
    both = (kernel + gpjax.kernels.RBF()).gram(x).as_matrix()
    assert np.allclose(both, ours + gpjax.kernels.RBF().gram(x).as_matrix(), rtol=1e-12)


def test_posteriors_are_ours_and_numbers_are_learnt(data):
    x, y = data
    prior = gpjax.gps.Prior(
        mean_function=gpjax.mean_functions.Zero(), kernel=NetworkKernel(NET, "nngp")
    )
    likelihood = gpjax.likelihoods.Gaussian(obs_stddev=jnp.array(0.3))
    posterior, train = prior * likelihood, gpjax.Dataset(X=x, y=y)
    test = x[:3] + 0.2
    found = posterior.predict(test, train_data=train)
    ours = wl.posterior(NET, np.asarray(x), np.asarray(y[:, 0]), np.asarray(test), noise=0.09)
    assert np.allclose(found.mean, ours.mean, atol=1e-5)  # it adds a jitter of 1e-6
    objective = lambda p, d: -gpjax.objectives.conjugate_mll(p, d)
    value = -objective(posterior, train)
    want = wl.log_marginal_likelihood(NET, np.asarray(x), np.asarray(y[:, 0]), noise=0.09)
    assert abs(value - want) < 1e-3
    learnt, history = gpjax.fit_scipy(
        model=posterior, objective=objective, train_data=train, verbose=False
    )
    assert history[-1] < history[0] - 0.1
    kernel = learnt.prior.kernel
    assert not np.allclose([float(s) for s in jax.tree.leaves(kernel.net)], [1.4, 0.6, 1.1, 0.0])
