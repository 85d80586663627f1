"""The laws of kernels, run on kernels of other libraries and on ours: prints docs/laws.md.

Run it where they are installed: `.venv-bridges/bin/python benchmarks/laws.py > docs/laws.md`.
"""

import copy
import importlib.metadata
import sys
import warnings
from collections.abc import Callable

import gpjax
import gpytorch
import numpy as np
import torch
from sklearn.gaussian_process import kernels as sk

import widelimit as wl
from widelimit.estimators import NetworkKernel
from widelimit.gpjax import NetworkKernel as GPJaxKernel
from widelimit.gpytorch import NetworkKernel as GPyTorchKernel
from widelimit.testing import KERNEL_LAWS, KernelReport, examine_kernel

NET = wl.mlp(depth=2, b_std=0.3)


def of_sklearn(kernel: sk.Kernel) -> KernelReport:
    """It has derivatives in its numbers, and none in the points."""
    return examine_kernel(lambda x, y: kernel(np.array(x), np.array(y)))


def of_gpytorch(kernel: gpytorch.kernels.Kernel) -> KernelReport:
    """In the precision of the points."""
    each = {
        np.dtype(np.float32): copy.deepcopy(kernel).float(),
        np.dtype(np.float64): kernel.double(),
    }

    def matrix(x: np.ndarray, y: np.ndarray) -> np.ndarray:
        with torch.no_grad():
            return each[x.dtype](torch.from_numpy(x), torch.from_numpy(y)).to_dense().numpy()

    def gradient(x: np.ndarray, y: np.ndarray) -> np.ndarray:
        first = torch.tensor(x, requires_grad=True)
        each[x.dtype](first, torch.from_numpy(y)).to_dense().sum().backward()
        return np.array(first.grad.tolist())

    return examine_kernel(lambda x, y: matrix(np.array(x), np.array(y)), gradient=gradient)


def of_gpjax(kernel: gpjax.kernels.AbstractKernel) -> KernelReport:
    return examine_kernel(lambda x, y: kernel.cross_covariance(x, y))


def doubled(make: Callable[[], gpjax.kernels.AbstractKernel]) -> gpjax.kernels.AbstractKernel:
    """With parameters in double precision, as its documentation advises."""
    import jax

    with jax.enable_x64(True):
        return make()


def reports() -> dict[str, dict[str, KernelReport]]:
    gp, gj = gpytorch.kernels, gpjax.kernels
    make = lambda kind, **how: doubled(lambda: kind(**how))
    return {
        "scikit-learn": {
            "RBF": of_sklearn(sk.RBF()),
            "Matern(nu=0.5)": of_sklearn(sk.Matern(nu=0.5)),
            "Matern(nu=2.5)": of_sklearn(sk.Matern(nu=2.5)),
            "RationalQuadratic": of_sklearn(sk.RationalQuadratic()),
            "DotProduct": of_sklearn(sk.DotProduct()),
            "widelimit's NetworkKernel": of_sklearn(NetworkKernel(NET)),
        },
        "GPyTorch": {
            "RBFKernel": of_gpytorch(gp.RBFKernel()),
            "MaternKernel(nu=0.5)": of_gpytorch(gp.MaternKernel(nu=0.5)),
            "MaternKernel(nu=2.5)": of_gpytorch(gp.MaternKernel(nu=2.5)),
            "RQKernel": of_gpytorch(gp.RQKernel()),
            "LinearKernel": of_gpytorch(gp.LinearKernel()),
            "CosineKernel": of_gpytorch(gp.CosineKernel()),
            "widelimit's NetworkKernel": of_gpytorch(GPyTorchKernel(NET)),
        },
        "GPJax": {
            "RBF": of_gpjax(make(gj.RBF)),
            "Matern12": of_gpjax(make(gj.Matern12)),
            "Matern52": of_gpjax(make(gj.Matern52)),
            "RationalQuadratic": of_gpjax(make(gj.RationalQuadratic)),
            "Linear": of_gpjax(make(gj.Linear)),
            "ArcCosine(order=1)": of_gpjax(make(gj.ArcCosine, order=1)),
            "widelimit's NetworkKernel": of_gpjax(doubled(lambda: GPJaxKernel(NET))),
        },
        "widelimit": {
            "NTK of relu, biases": examine_kernel(wl.prepare(NET, "ntk")),
            "NNGP of erf": examine_kernel(wl.prepare(wl.mlp(3, "erf"), "nngp")),
        },
    }


OPENING = """# Laws for any kernel

`widelimit.testing.check_kernel(k)` runs ten laws on any function `k(x1, x2)` that claims to be a kernel: yours, or one
of another library. Nothing in it knows of networks.

```python
from widelimit.testing import check_kernel

check_kernel(my_kernel)  # raises, and names every law that fails
check_kernel(my_kernel, expected_failures={"dtype": "always float64"})  # known; must stay true
```

Points are Gaussian with very different norms, one of them twice, one beside its opposite. A kernel that takes JAX
arrays is also compiled, mapped over and differentiated; for others give `gradient=`. `examine_kernel` returns what was
seen instead of raising.

| law | what it asks |
|---|---|
"""

READING = """
## What other kernels do with them

These are good libraries, and what fails is a choice rather than a fault: a policy about precision, a formula that
trades the last digits for speed, a kernel that is meant for one dimension. The table says what to know before relying
on one of these properties. `yes`: holds; `–`: does not apply; a number leads to what was seen.

"""

NOTES = """
On reading it:

- *dtype*: scikit-learn computes in float64 whatever comes, by design.
- *positive semidefinite*: distances by |x|² + |y|² − 2xy cost one matrix product and keep half of the digits where
  points nearly coincide; a kernel that is linear in the distance shows it as an asymmetry of 1e-8, which the noise of a
  model hides. cos(π|x − y|/p) is a kernel on the line; the points here have three features.
- *gradient at equal inputs*: a kernel with a kink at x = y (Matérn ½, the tangent kernel of a ReLU) has no derivative
  there, and must still return a number.
- *unusual sizes*: norms from 1e-30 to 1e15 in one matrix.
"""


def main() -> None:
    warnings.simplefilter("ignore")
    np.seterr(all="ignore")
    names = [law.__name__ for law in KERNEL_LAWS]
    write = sys.stdout.write
    write(OPENING)
    for law in KERNEL_LAWS:
        write(
            f"| {law.__name__.replace('_', ' ')} | {(law.__doc__ or '').strip().replace('|', chr(92) + '|')} |\n"
        )
    write(READING)
    seen: list[str] = []
    write("| kernel | " + " | ".join(name.replace("_", " ") for name in names) + " |\n")
    write("|---" * (len(names) + 1) + "|\n")
    for library, kernels in reports().items():
        version = "" if library == "widelimit" else importlib.metadata.version(library)
        for kernel, report in kernels.items():
            cells = []
            for name in names:
                if name in report.fails:
                    text = report.fails[name].replace("|", "/")
                    if text not in seen:
                        seen.append(text)
                    cells.append(f"[{seen.index(text) + 1}]")
                else:
                    cells.append("–" if name in report.skipped else "yes")
            label = (
                f"widelimit: {kernel}"
                if library == "widelimit"
                else f"{library} {version}: {kernel}"
            )
            write(f"| {label} | " + " | ".join(cells) + " |\n")
    write("\nWhat was seen:\n\n")
    for i, text in enumerate(seen, 1):
        write(f"{i}. {text}\n")
    write(NOTES)
    write("\nMade by `python benchmarks/laws.py > docs/laws.md`, which `make test-bridges` runs.\n")


if __name__ == "__main__":
    main()
