"""Finite width to first order: how far the kernels of one network are from their limits, and how they move."""

from ._covered import Covered as Covered
from ._covered import expect_derived as expect_derived
from ._drift import DriftTensors as DriftTensors
from ._drift import drift_tensors as drift_tensors
from ._drift import kink_drift as kink_drift
from ._drift import ntk_drift as ntk_drift
from ._fluctuations import Fluctuations as Fluctuations
from ._fluctuations import PairCovariance as PairCovariance
from ._fluctuations import fluctuations as fluctuations
from ._state import Fluctuating as Fluctuating
