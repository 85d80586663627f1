"""Networks of finite width: weights, outputs, empirical kernels, Taylor models, sampling."""

from . import _attend as _attend
from ._convention import as_points as as_points
from ._empirical import empirical_ntk as empirical_ntk
from ._forward import apply_weights as apply_weights
from ._forward import forward as forward
from ._init import draw as draw
from ._init import draw_weights as draw_weights
from ._network import FiniteNetwork as FiniteNetwork
from ._network import finite as finite
from ._sample import Estimate as Estimate
from ._sample import SampledKernels as SampledKernels
from ._sample import WidthConvergence as WidthConvergence
from ._sample import fit_power as fit_power
from ._sample import has_dropout as has_dropout
from ._sample import monte_carlo_kernels as monte_carlo_kernels
from ._sample import width_convergence as width_convergence
from ._shapes import is_frozen as is_frozen
from ._tap import Tap as Tap
from ._taylor import TaylorModel as TaylorModel
from ._taylor import linearise as linearise
from ._taylor import linearize as linearize
from ._taylor import taylor as taylor
