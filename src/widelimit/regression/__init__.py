r"""Kernel regression, once: $f(x)=k(x)\,\phi(K)\,y$, its errors, its posterior, its evidence.

`fit` is the engine: a `Problem` (data and kernel) becomes a `Ridge` (the fitted function).

What is added to the diagonal of $K$ has two names. It is the `ridge` where a function is fitted
(`ridge`, the estimators): a price for large functions. It is the `noise` where the same number is
the variance of the observations (`posterior`, `log_marginal_likelihood`, `fit_evidence`).
"""

from ._as_problem import as_problem as as_problem
from ._data import Data as Data
from ._data import as_weights as as_weights
from ._data import merge as merge
from ._evidence import EvidenceFit as EvidenceFit
from ._evidence import fit_evidence as fit_evidence
from ._evidence import log_marginal_likelihood as log_marginal_likelihood
from ._family import Family as Family
from ._family import family_of as family_of
from ._fit import fit as fit
from ._fitted import Ridge as Ridge
from ._gradients import average_outer_product as average_outer_product
from ._gradients import input_gradients as input_gradients
from ._gram import gram as gram
from ._judge import Score as Score
from ._kept import KeptProblem as KeptProblem
from ._kernel import FunctionKernel as FunctionKernel
from ._kernel import Kernel as Kernel
from ._kernel import as_kernel as as_kernel
from ._kernel import gaussian_kernel as gaussian_kernel
from ._laplace import Laplace as Laplace
from ._laplace import half_of as half_of
from ._laplace import laplace as laplace
from ._phi import damped as damped
from ._phi import descent as descent
from ._phi import flow as flow
from ._phi import heavy_ball as heavy_ball
from ._posterior import Posterior as Posterior
from ._posterior import Predictive as Predictive
from ._posterior import posterior as posterior
from ._posterior import prior as prior
from ._problem import Problem as Problem
from ._ridge import ridge as ridge
from ._solvers import CG as CG
from ._solvers import DENSE as DENSE
from ._solvers import Cholesky as Cholesky
from ._solvers import Solver as Solver
from ._solvers import as_solver as as_solver
from ._spectral import Spectral as Spectral
