"""Training: gradient flow and descent of the limit, its posterior, its evidence."""

from ._ellipse import Ellipse as Ellipse
from ._ellipse import kernel_ellipse as kernel_ellipse
from ._evidence import EvidenceFit as EvidenceFit
from ._evidence import fit_evidence as fit_evidence
from ._evidence import log_marginal_likelihood as log_marginal_likelihood
from ._optimise import optimise as optimise
from ._optimise import optimise_many as optimise_many
from ._optimise import progress_bar as progress_bar
from ._posterior import ensemble as ensemble
from ._posterior import posterior as posterior
from ._predictive import Predictive as Predictive
from ._problem import gaussian_kernel as gaussian_kernel
from ._records import Training as Training
from ._ridge import Ridge as Ridge
from ._ridge import ridge as ridge
from ._stability import Stability as Stability
from ._stability import stability as stability
from ._train import train as train
from ._trained import Trained as Trained
