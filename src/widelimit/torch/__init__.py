"""PyTorch: tangent kernels of modules, modules as descriptions, kernels of tensors.

`empirical_ntk(module, x1, x2)` for any `torch.nn.Module`; `lift(module)` turns an `nn.Sequential` into one of
widelimit's networks; `kernel(net)` is a function of tensors with derivatives.
"""

try:
    import torch as _torch  # noqa: F401
except ImportError as error:
    raise ImportError("widelimit.torch needs PyTorch: pip install 'widelimit[torch]'.") from error

from ._arrays import to_jax as to_jax
from ._arrays import to_torch as to_torch
from ._empirical import empirical_ntk as empirical_ntk
from ._kernel import TorchKernel as TorchKernel
from ._kernel import kernel as kernel
from ._lift import initial_variances as initial_variances
from ._lift import lift as lift
