"""Signal propagation: what depth does to variances, correlations and kernels."""

from ._block import block_of as block_of
from ._depth import DepthEffect as DepthEffect
from ._depth import Trajectory as Trajectory
from ._depth import depth_effect as depth_effect
from ._depth import trajectory as trajectory
from ._fixed_points import FixedPoint as FixedPoint
from ._fixed_points import correlation_map as correlation_map
from ._fixed_points import fixed_point as fixed_point
from ._fixed_points import variance_map as variance_map
from ._phases import PhaseDiagram as PhaseDiagram
from ._phases import edge_of_chaos as edge_of_chaos
from ._phases import phase_diagram as phase_diagram
