"""Bayesian optimisation with the kernel of an infinitely wide network, beside the usual Matérn kernel.

Three test functions, several starts, the same first points for both kernels; logarithmic expected improvement by
BoTorch. What is printed is the distance of the best value found from the minimum. Run it where BoTorch is installed:
`pip install 'widelimit[gpytorch]'`.
"""

import warnings
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import torch
from botorch.acquisition import LogExpectedImprovement
from botorch.fit import fit_gpytorch_mll
from botorch.models import SingleTaskGP
from botorch.models.transforms import Standardize
from botorch.optim import optimize_acqf
from botorch.test_functions import Ackley, Branin, Hartmann
from botorch.utils.sampling import draw_sobol_samples
from gpytorch.kernels import Kernel, MaternKernel, ScaleKernel
from gpytorch.mlls import ExactMarginalLogLikelihood

import widelimit as wl
from widelimit.gpytorch import NetworkKernel

FUNCTIONS = {
    "branin": Branin(dtype=torch.float64),
    "hartmann": Hartmann(dim=3, dtype=torch.float64),
    "ackley": Ackley(dim=2, bounds=[(-5.0, 8.0)] * 2, dtype=torch.float64),
}


def network(d: int) -> Kernel:
    """One hidden layer of erf: smooth and not stationary. Inputs are scaled to [-1, 1]."""
    net = wl.Dense(w_std=2.0, b_std=1.0) >> wl.Phi("erf") >> wl.Dense(w_std=1.0, b_std=0.5)
    return NetworkKernel(net, "nngp")


def matern(d: int) -> Kernel:
    """With a length scale for each axis."""
    return ScaleKernel(MaternKernel(nu=2.5, ard_num_dims=d))


KERNELS = {"network": network, "Matérn": matern}


class Row(NamedTuple):
    """The best value so far, above the minimum, after each evaluation."""

    function: str
    kernel: str
    seed: int
    best: np.ndarray


def optimise(name: str, kernel: str, seed: int, steps: int, first: int = 6) -> Row:
    function = FUNCTIONS[name]
    d = function.dim
    unit = torch.tensor([[-1.0] * d, [1.0] * d], dtype=torch.float64)
    low, high = function.bounds.double()
    value = lambda x: function(low + (high - low) * (x + 1) / 2)[:, None]
    x = draw_sobol_samples(unit, first, 1, seed=seed).squeeze(1).double()
    y = value(x)
    torch.manual_seed(seed)
    for _ in range(steps):
        model = SingleTaskGP(
            x, -y, covar_module=KERNELS[kernel](d), outcome_transform=Standardize(1)
        )
        fit_gpytorch_mll(ExactMarginalLogLikelihood(model.likelihood, model))
        gain = LogExpectedImprovement(model, best_f=(-y).max())
        new, _ = optimize_acqf(gain, unit, q=1, num_restarts=4, raw_samples=64)
        x, y = torch.cat([x, new]), torch.cat([y, value(new)])
    best = np.minimum.accumulate(y[first - 1 :, 0].numpy())
    best[0] = y[:first].min()
    return Row(name, kernel, seed, np.minimum.accumulate(best) - function.optimal_value)


def compare(
    functions: Sequence[str] = tuple(FUNCTIONS), seeds: int = 4, steps: int = 12
) -> list[Row]:
    return [
        optimise(name, kernel, seed, steps)
        for name in functions
        for seed in range(seeds)
        for kernel in KERNELS
    ]


if __name__ == "__main__":
    warnings.simplefilter("ignore")  # of the optimisers inside BoTorch
    rows = compare()
    print("median distance from the minimum (quartiles) after 6 + 12 evaluations, and who is ahead")
    for name in FUNCTIONS:
        last = {
            kernel: np.array([r.best[-1] for r in rows if (r.function, r.kernel) == (name, kernel)])
            for kernel in KERNELS
        }
        parts = [
            f"{kernel} {np.median(v):.3g} ({np.quantile(v, 0.25):.3g} to {np.quantile(v, 0.75):.3g})"
            for kernel, v in last.items()
        ]
        ahead = int((last["network"] < last["Matérn"]).sum())
        print(f"{name:10s} {', '.join(parts)}; network ahead in {ahead} of {len(last['network'])}")
