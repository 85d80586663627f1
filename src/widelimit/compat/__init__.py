"""neural-tangents' names over widelimit: change the import, keep the script.

`import widelimit.compat as nt`, or `from widelimit.compat import stax, predict`. Kernels and predictions are those of
neural-tangents 0.6.5 where both are right; random weights are others, and so is the structure of the
parameters. Times and learning rates in `predict` are those of the mean of squares, n k times those of `wl.train`; a
warning says so.
"""

from . import predict as predict
from . import stax as stax
from ._empirical import NtkImplementation as NtkImplementation
from ._empirical import batch as batch
from ._empirical import empirical_kernel_fn as empirical_kernel_fn
from ._empirical import empirical_nngp_fn as empirical_nngp_fn
from ._empirical import empirical_ntk_fn as empirical_ntk_fn
from ._empirical import empirical_ntk_vp_fn as empirical_ntk_vp_fn
from ._empirical import linearize as linearize
from ._empirical import monte_carlo_kernel_fn as monte_carlo_kernel_fn
from ._empirical import taylor_expand as taylor_expand
from ._predict import ConventionWarning as ConventionWarning
from ._triple import Kernel as Kernel


def __getattr__(name: str) -> object:
    if name == "experimental":
        raise AttributeError(
            "neural_tangents.experimental reads TensorFlow models, which have no bridge here. Export the model to "
            "JAX, or see wl.empirical_ntk (any function of JAX) and wl.torch.empirical_ntk (any module of PyTorch)."
        )
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}.")
