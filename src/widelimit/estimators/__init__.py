"""Estimators and a kernel for scikit-learn."""

try:
    import sklearn as _sklearn  # noqa: F401
except ImportError as error:
    raise ImportError(
        "widelimit.estimators needs scikit-learn: pip install 'widelimit[estimators]'."
    ) from error

from ._classifier import NTKClassifier as NTKClassifier
from ._persist import load as load
from ._persist import save as save
from ._regressor import NTKRegressor as NTKRegressor
from ._sklearn_kernel import NetworkKernel as NetworkKernel
from ._table import table_pipeline as table_pipeline
