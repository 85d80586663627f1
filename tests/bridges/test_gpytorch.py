"""GPyTorch and BoTorch: values are ours, posteriors are ours, numbers are learnt."""

import copy
import pickle
import unittest

import numpy as np
import pytest

import widelimit as wl

torch = pytest.importorskip("torch", reason="PyTorch is not installed; see make test-bridges")
gpytorch = pytest.importorskip(
    "gpytorch", reason="GPyTorch is not installed; see make test-bridges"
)

from gpytorch.test.base_kernel_test_case import BaseKernelTestCase  # noqa: E402

from widelimit.gpytorch import NetworkKernel  # noqa: E402

NET = wl.Dense(w_std=1.4, b_std=0.6) >> wl.Phi("erf") >> wl.Dense(w_std=1.1)


@pytest.fixture(autouse=True)
def reproducible(seed):
    torch.manual_seed(seed)


def points(*shape):
    return torch.randn(*shape, dtype=torch.float64)


@pytest.mark.parametrize("kind", ["nngp", "ntk"])
def test_values(kind):
    kernel, rule = NetworkKernel(NET, kind), getattr(wl, kind)
    x, y = points(5, 3), points(3, 3)
    with torch.no_grad():
        assert np.allclose(kernel(x).to_dense(), rule(NET, x.numpy()), rtol=1e-12)
        assert np.allclose(kernel(x, y).to_dense(), rule(NET, x.numpy(), y.numpy()), rtol=1e-12)
        assert np.allclose(kernel(x, diag=True), np.diag(rule(NET, x.numpy())), rtol=1e-12)
        many = points(2, 4, 5, 3)
        whole = kernel(many, x).to_dense()
        assert whole.shape == (2, 4, 5, 5)
        assert np.allclose(whole[1, 2], rule(NET, many[1, 2].numpy(), x.numpy()), rtol=1e-12)
        some = NetworkKernel(NET, kind, active_dims=[0, 2])(x).to_dense()
        assert np.allclose(some, rule(NET, x[:, [0, 2]].numpy()), rtol=1e-12)


class Model(gpytorch.models.ExactGP):
    def __init__(self, x, y, likelihood, net=NET):
        super().__init__(x, y, likelihood)
        self.mean_module, self.covar_module = gpytorch.means.ZeroMean(), NetworkKernel(net, "nngp")

    def forward(self, x):
        return gpytorch.distributions.MultivariateNormal(self.mean_module(x), self.covar_module(x))


def model(x, y, noise):
    likelihood = gpytorch.likelihoods.GaussianLikelihood().double()
    likelihood.noise = noise
    return Model(x, y, likelihood).double(), likelihood


def test_posteriors_are_ours():
    x, y, x_test = points(8, 2), points(8), points(4, 2)
    gp, likelihood = model(x, y, 0.1)
    gp.eval(), likelihood.eval()
    with torch.no_grad():
        found = gp(x_test)
    ours = wl.posterior(NET, x.numpy(), y.numpy(), x_test.numpy(), noise=0.1)
    assert np.allclose(found.mean, ours.mean, atol=1e-8)
    assert np.allclose(found.variance, ours.variance, atol=1e-8)


def test_numbers_are_learnt():
    """The marginal likelihood and its gradient are ours; a few steps of Adam raise it."""
    x = points(12, 2)
    y = torch.sin(2 * x[:, 0])
    gp, likelihood = model(x, y, 0.05)
    evidence = gpytorch.mlls.ExactMarginalLogLikelihood(likelihood, gp)
    gp.train(), likelihood.train()
    value = evidence(gp(x), y)
    ours = wl.log_marginal_likelihood(NET, x.numpy(), y.numpy(), noise=0.05)
    assert abs(12 * value.item() - ours) < 1e-6  # the noise passes through single precision
    value.backward()
    kernel, h = gp.covar_module, 1e-5
    slope = kernel.raw_numbers.grad.clone()
    for i in range(3):
        both = []
        for sign in (1, -1):
            with torch.no_grad():
                kernel.raw_numbers[i] += sign * h
            both.append(wl.log_marginal_likelihood(kernel.net, x.numpy(), y.numpy(), noise=0.05))
            with torch.no_grad():
                kernel.raw_numbers[i] -= sign * h
        assert abs((both[0] - both[1]) / (2 * h) / 12 - slope[i]) < 1e-6
    adam = torch.optim.Adam(gp.parameters(), lr=0.1)
    for _ in range(15):
        adam.zero_grad()
        loss = -evidence(gp(x), y)
        loss.backward()
        adam.step()
    assert -loss.item() > value.item() + 0.05
    assert (kernel.numbers > 0).all()
    assert kernel.net.layers[0].w_std != 1.4


class TestByItsHost(BaseKernelTestCase, unittest.TestCase):
    """GPyTorch's own tests of kernels: batches, indices, pickles, devices."""

    def create_kernel_no_ard(self, **kwargs):
        return NetworkKernel(NET, "nngp", **kwargs).float()


def test_signs_are_kept_and_batches_have_numbers_of_their_own():
    kernel = NetworkKernel(wl.Dense() >> wl.Scale(-0.5) >> wl.Phi("erf") >> wl.Dense())
    assert np.allclose(kernel.numbers.detach(), [1.0, -0.5, 1.0])
    several = NetworkKernel(NET, "ntk", batch_shape=torch.Size([2]))
    with torch.no_grad():
        several.raw_numbers[1] += 0.5
        x = points(3, 2)
        found = several(x).to_dense()
        assert np.allclose(found[0], wl.ntk(NET, x.numpy()), rtol=1e-12)
        other = several.rule.family.network(several.numbers[1].numpy())
        assert np.allclose(found[1], wl.ntk(other, x.numpy()), rtol=1e-12)
        assert np.allclose(several(x, diag=True), torch.diagonal(found, dim1=1, dim2=2), rtol=1e-12)
    with pytest.raises(ValueError, match="a network for each"):
        _ = several.net


def test_state_is_saved_and_loaded():
    kernel = NetworkKernel(NET)
    with torch.no_grad():
        kernel.raw_numbers += 0.3
    other = NetworkKernel(NET)
    other.load_state_dict(kernel.state_dict())
    assert torch.equal(other.numbers, kernel.numbers)
    x = points(3, 2)
    for again in (copy.deepcopy(kernel), pickle.loads(pickle.dumps(kernel))):
        assert torch.equal(again(x).to_dense(), kernel(x).to_dense())
    assert copy.deepcopy(kernel).float()(x.float()).to_dense().dtype == torch.float32


def test_bayesian_optimisation():
    """The example, at its smallest: both kernels optimise, and the better one is named honestly."""
    pytest.importorskip("botorch", reason="BoTorch is not installed; see make test-bridges")
    import runpy
    import warnings
    from pathlib import Path

    script = Path(__file__).parents[2] / "examples" / "bridges" / "bayesian_optimisation.py"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of the optimisers inside BoTorch
        found = runpy.run_path(str(script))["compare"](functions=("branin",), seeds=1, steps=3)
    assert {row.kernel for row in found} == {"network", "Matérn"}
    assert all(np.isfinite(row.best).all() and (np.diff(row.best) <= 0).all() for row in found)
