"""widelimit: neural networks of infinite width, exactly.

Importing it brings in layers, kernels and finite networks; every other name is imported when it is
first used.
"""

import typing as _typing

from . import activations as activations
from ._base import __version__ as __version__
from ._base.lazy import lazy as _lazy
from ._base.structured import Graphs as Graphs
from ._base.structured import Masked as Masked
from .activations import Activation as Activation
from .describe import Shape as Shape
from .describe import check as check
from .describe import cite as cite
from .describe import from_json as from_json
from .describe import from_text as from_text
from .describe import latex as latex
from .describe import latex_kernels as latex_kernels
from .describe import shape as shape
from .describe import to_json as to_json
from .describe import to_text as to_text
from .finite import FiniteNetwork as FiniteNetwork
from .finite import empirical_ntk as empirical_ntk
from .finite import empirical_ntk_matvec as empirical_ntk_matvec
from .finite import finite as finite
from .finite import lift as lift
from .finite import linearise as linearise
from .finite import linearize as linearize
from .finite import monte_carlo_kernels as monte_carlo_kernels
from .finite import taylor as taylor
from .finite import width_convergence as width_convergence
from .infinite import Cost as Cost
from .infinite import Kernels as Kernels
from .infinite import PreparedKernel as PreparedKernel
from .infinite import Profile as Profile
from .infinite import Trace as Trace
from .infinite import cost as cost
from .infinite import kernels as kernels
from .infinite import nngp as nngp
from .infinite import ntk as ntk
from .infinite import prepare as prepare
from .infinite import profile as profile
from .infinite import trace as trace
from .layers import Aggregate as Aggregate
from .layers import Attention as Attention
from .layers import AvgPool as AvgPool
from .layers import Concat as Concat
from .layers import Conv as Conv
from .layers import ConvLocal as ConvLocal
from .layers import ConvTranspose as ConvTranspose
from .layers import Dense as Dense
from .layers import Dropout as Dropout
from .layers import Flatten as Flatten
from .layers import Frozen as Frozen
from .layers import GlobalAvgPool as GlobalAvgPool
from .layers import GlobalSumPool as GlobalSumPool
from .layers import Identity as Identity
from .layers import Layer as Layer
from .layers import LayerNorm as LayerNorm
from .layers import Phi as Phi
from .layers import Positions as Positions
from .layers import Product as Product
from .layers import Repeat as Repeat
from .layers import Residual as Residual
from .layers import Resize as Resize
from .layers import Scale as Scale
from .layers import Serial as Serial
from .layers import Sum as Sum
from .layers import SumPool as SumPool
from .layers import cnn as cnn
from .layers import mlp as mlp
from .layers import myrtle as myrtle
from .layers import resnet as resnet
from .layers import wide_resnet as wide_resnet

if _typing.TYPE_CHECKING:  # for type checkers and editors; at run time the table below
    from . import analysis as analysis
    from . import compat as compat
    from . import dynamics as dynamics
    from . import estimators as estimators
    from . import experiments as experiments
    from . import explorer as explorer
    from . import extend as extend
    from . import gpjax as gpjax
    from . import gpytorch as gpytorch
    from . import linalg as linalg
    from . import plot as plot
    from . import regression as regression
    from . import testing as testing
    from . import torch as torch
    from . import training as training
    from . import width as width
    from .analysis import bounds as bounds
    from .analysis import learning_curve as learning_curve
    from .analysis import signal as signal
    from .analysis import smoothness as smoothness
    from .analysis import spectrum as spectrum
    from .dynamics import Trained as Trained
    from .dynamics import ensemble as ensemble
    from .dynamics import train as train
    from .explorer import explore as explore
    from .linalg import processes as processes
    from .regression import EvidenceFit as EvidenceFit
    from .regression import Posterior as Posterior
    from .regression import Predictive as Predictive
    from .regression import Ridge as Ridge
    from .regression import fit_evidence as fit_evidence
    from .regression import gaussian_kernel as gaussian_kernel
    from .regression import gram as gram
    from .regression import log_marginal_likelihood as log_marginal_likelihood
    from .regression import posterior as posterior
    from .regression import prior as prior
    from .regression import ridge as ridge
    from .training import Training as Training
    from .training import kernel_ellipse as kernel_ellipse
    from .training import optimise as optimise
    from .training import optimise_many as optimise_many
    from .training import progress_bar as progress_bar
    from .training import stability as stability
    from .width import Fluctuations as Fluctuations
    from .width import fluctuations as fluctuations
    from .width import ntk_drift as ntk_drift
else:
    _LATER = {
        "analysis": "bounds learning_curve signal smoothness spectrum",
        "compat": "",
        "dynamics": "Trained ensemble train",
        "estimators": "",
        "experiments": "",
        "explorer": "explore",
        "extend": "",
        "gpjax": "",
        "gpytorch": "",
        "linalg": "processes",
        "plot": "",
        "regression": (
            "EvidenceFit Posterior Predictive Ridge fit_evidence gaussian_kernel "
            "gram log_marginal_likelihood posterior prior ridge"
        ),
        "testing": "",
        "torch": "",
        "training": "Training kernel_ellipse optimise optimise_many progress_bar stability",
        "width": "Fluctuations fluctuations ntk_drift",
    }
    __getattr__, __dir__ = _lazy(
        __name__,
        _LATER,
        extras={
            "estimators": "sklearn",
            "gpjax": "gpjax",
            "gpytorch": "gpytorch",
            "torch": "torch",
        },
    )
