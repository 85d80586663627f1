"""widelimit: neural networks of infinite width, exactly."""

from . import activations as activations
from . import linalg as linalg
from .activations import Activation as Activation
from .analysis import bounds as bounds
from .analysis import learning_curve as learning_curve
from .analysis import smoothness as smoothness
from .analysis import spectrum as spectrum
from .describe import check as check
from .dynamics import EvidenceFit as EvidenceFit
from .dynamics import Predictive as Predictive
from .dynamics import Ridge as Ridge
from .dynamics import Trained as Trained
from .dynamics import ensemble as ensemble
from .dynamics import fit_evidence as fit_evidence
from .dynamics import gaussian_kernel as gaussian_kernel
from .dynamics import log_marginal_likelihood as log_marginal_likelihood
from .dynamics import posterior as posterior
from .dynamics import ridge as ridge
from .dynamics import train as train
from .finite import FiniteNetwork as FiniteNetwork
from .finite import empirical_ntk as empirical_ntk
from .finite import finite as finite
from .finite import linearize as linearize
from .finite import monte_carlo_kernels as monte_carlo_kernels
from .finite import taylor as taylor
from .finite import width_convergence as width_convergence
from .infinite import Kernels as Kernels
from .infinite import Profile as Profile
from .infinite import kernels as kernels
from .infinite import nngp as nngp
from .infinite import ntk as ntk
from .infinite import profile as profile
from .layers import Dense as Dense
from .layers import Identity as Identity
from .layers import Layer as Layer
from .layers import Phi as Phi
from .layers import Repeat as Repeat
from .layers import Residual as Residual
from .layers import Scale as Scale
from .layers import Serial as Serial
from .layers import Sum as Sum
from .layers import mlp as mlp
from .layers import resnet as resnet

__version__ = "0.1.0"
