"""GPyTorch and BoTorch: the kernel of a network of infinite width, its numbers learnt with the rest."""

try:
    import gpytorch
    import torch
except ImportError as error:
    raise ImportError(
        "widelimit.gpytorch needs PyTorch and GPyTorch: pip install 'widelimit[gpytorch]'."
    ) from error

from typing import Any

from torch import Tensor

from widelimit.layers import Layer
from widelimit.torch import TorchKernel


class NetworkKernel(gpytorch.kernels.Kernel):
    """The NNGP or tangent kernel of a network, for GPyTorch's and BoTorch's models.

    Its parameters are the network's numbers but for those that are exactly 0: scales of weights and biases,
    attenuations. They keep their sign. Points are filled up to a few sizes, so that a data set that grows point by
    point, as in Bayesian optimisation, compiles a handful of programs.

    Args:
        net: The network.
        kind: "ntk" or "nngp".
        **kwargs: Of `gpytorch.kernels.Kernel`, such as `active_dims`.

    Example:
        >>> import widelimit as wl
        >>> kernel = NetworkKernel(wl.Dense(b_std=0.5) >> wl.Phi("erf") >> wl.Dense(), "nngp")
        >>> x = torch.eye(3, dtype=torch.float64)
        >>> kernel(x).to_dense().shape, kernel.labels
        (torch.Size([3, 3]), ('layers[0].w_std', 'layers[0].b_std', 'layers[2].w_std'))
    """

    is_stationary = False  # pyright: ignore[reportAssignmentType]

    def __init__(self, net: Layer, kind: str = "ntk", **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.rule = TorchKernel(net, kind)
        size = self.rule.numbers.abs()
        size = size.expand(*self.batch_shape, -1).clone()
        self.register_parameter("raw_numbers", torch.nn.Parameter(torch.zeros_like(size)))
        self.register_constraint("raw_numbers", gpytorch.constraints.Positive())
        self.initialize(raw_numbers=self._constraint.inverse_transform(size))

    @property
    def labels(self) -> tuple[str, ...]:
        """What the numbers are called."""
        return self.rule.family.labels

    @property
    def numbers(self) -> Tensor:
        """The network's numbers as they are now."""
        signs = self.rule.numbers.sign().to(self.raw_numbers)
        return signs * self._constraint.transform(self.raw_numbers)

    @property
    def _constraint(self) -> Any:
        return self.raw_numbers_constraint

    @property
    def net(self) -> Layer:
        """The network with the numbers as they are now."""
        if len(self.batch_shape):
            raise ValueError(
                f"A kernel with batch_shape={tuple(self.batch_shape)} has a network for each; see `numbers`."
            )
        return self.rule.family.network(self.numbers.detach().double().cpu().numpy())

    def forward(
        self,
        x1: Tensor,
        x2: Tensor,
        diag: bool = False,
        last_dim_is_batch: bool = False,
        **_: Any,
    ) -> Tensor:
        """The matrix, or its diagonal, for points of shape (*batch, n, d)."""
        numbers = self.numbers.to(x1.dtype)
        if last_dim_is_batch:
            x1, x2 = (x.transpose(-1, -2).unsqueeze(-1) for x in (x1, x2))
            numbers = numbers.unsqueeze(-2)
        if not diag:
            return self._matrix(x1, x2, numbers)
        pairs = self._matrix(x1.unsqueeze(-2), x2.unsqueeze(-2), numbers.unsqueeze(-2))
        return pairs[..., 0, 0]

    def _matrix(self, x1: Tensor, x2: Tensor, numbers: Tensor) -> Tensor:
        same = x1.shape == x2.shape and torch.equal(x1, x2)
        one = not len(self.batch_shape)
        several = () if one else numbers.shape[:-1]
        batch = torch.broadcast_shapes(x1.shape[:-2], x2.shape[:-2], several)
        n1, n2, many = x1.shape[-2], x2.shape[-2], batch.numel()
        flat = lambda x, tail: x.expand(*batch, *x.shape[-tail:]).reshape(many, *x.shape[-tail:])
        first = _filled(flat(x1, 2), 0, 1)
        second = None if same else _filled(flat(x2, 2), 0, 1)
        own = numbers.reshape(-1) if one else _filled(flat(numbers, 1), 0)
        out = self.rule.batched(first, second, own)
        return out[:many, :n1, :n2].reshape(*batch, n1, n2)


def _filled(x: Tensor, *axes: int) -> Tensor:
    """The last entries along some axes repeated until there are a power of 2 of them, or a multiple of 64."""
    for axis in axes:
        many = x.shape[axis]
        wanted = 1 << (many - 1).bit_length() if many <= 64 else -(-many // 64) * 64
        index = torch.arange(wanted, device=x.device).clamp(max=many - 1)
        x = x.index_select(axis, index)
    return x
