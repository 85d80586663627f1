"""Limit kernels of tensors, with derivatives in the inputs and in the network's numbers."""

import functools
from typing import Any

import jax
import jax.numpy as jnp
import torch
from torch import Tensor

from widelimit._base.compile import quick_jit
from widelimit.infinite import prepare
from widelimit.layers import Layer
from widelimit.regression import Family, family_of

from ._arrays import to_jax, to_torch
from ._lift import channels_last


class TorchKernel:
    """A kernel of a network as a function of tensors.

    Made by `kernel`.

    Attributes:
        net: The network.
        kind: "ntk" or "nngp".
        family: The networks with other numbers; those that are exactly 0 stay.
        numbers: Their values, a tensor of float64.
    """

    def __init__(self, net: Layer, kind: str) -> None:
        prepare(net, kind)  # checked before any work
        self.net, self.kind = net, kind
        self.family, values = family_of(net)
        self.numbers = torch.from_numpy(values)

    def __call__(
        self, x1: Tensor, x2: Tensor | None = None, numbers: Tensor | None = None
    ) -> Tensor:
        """The kernel matrix.

        Args:
            x1: Points (n1, d), or images (n1, channels, *spatial), channels first as everywhere in PyTorch.
            x2: Likewise; None stands for `x1`, and the diagonal is then exact.
            numbers: The network's free numbers, in the order of `family.labels`; None: those of the network.

        Returns:
            Shape (n1, n2), in the dtype and on the device of `x1`. It has derivatives in all three.
        """
        given = self.numbers.to(x1.device) if numbers is None else numbers
        second = None if x2 is None else channels_last(x2)
        return _Evaluate.apply(self, False, channels_last(x1), second, given)

    def batched(self, x1: Tensor, x2: Tensor | None, numbers: Tensor) -> Tensor:
        """One matrix for each set of points, shape (batch, n1, d) and (batch, n2, d).

        Args:
            x1: The points.
            x2: The points, or None.
            numbers: Shape (p,), or (batch, p): other numbers for each set.

        Returns:
            Shape (batch, n1, n2).
        """
        return _Evaluate.apply(self, True, x1, x2, numbers)

    def __deepcopy__(self, memo: dict[int, Any]) -> "TorchKernel":
        return self  # nothing in it changes; models of BoTorch are copied often

    def __reduce__(self) -> tuple[Any, ...]:
        return TorchKernel, (self.net, self.kind)

    def __repr__(self) -> str:
        return f"kernel({self.net!r}, {self.kind!r})"


def kernel(net: Layer, kind: str = "ntk") -> TorchKernel:
    """A limit kernel as a function of tensors, with derivatives.

    Args:
        net: The network.
        kind: "ntk" or "nngp".

    Returns:
        A function of (x1, x2, numbers).

    Example:
        >>> import widelimit as wl
        >>> k = kernel(wl.mlp(depth=2, b_std=0.1))
        >>> k.family.labels[:2]
        ('layers[0].body.layers[0].w_std', 'layers[0].body.layers[0].b_std')
        >>> x = torch.eye(3, dtype=torch.float64, requires_grad=True)
        >>> k(x).sum().backward()
        >>> x.grad.shape
        torch.Size([3, 3])
    """
    return TorchKernel(net, kind)


Rule = tuple[Family, str, bool]  # networks, kind, whether there is an axis of sets


def _value(rule: Rule, x1: Any, x2: Any, numbers: Any) -> jax.Array:
    family, kind, batched = rule

    def matrix(a: Any, b: Any, at: Any) -> jax.Array:
        net = family.network(tuple(at[i] for i in range(at.shape[0])))
        return jnp.asarray(prepare(net, kind)(a, b))

    if not batched:
        return matrix(x1, x2, numbers)
    return jax.vmap(matrix, (0, 0, 0 if numbers.ndim == 2 else None))(x1, x2, numbers)


def _pulled(rule: Rule, x1: Any, x2: Any, numbers: Any, slope: Any) -> Any:
    _, pull = jax.vjp(functools.partial(_value, rule), x1, x2, numbers)
    return pull(slope)


_SMALL = 2**18  # entries for which it does not pay to compile well
_forward = jax.jit(_value, static_argnums=0), quick_jit(_value, static_argnums=0)
_backward = jax.jit(_pulled, static_argnums=0), quick_jit(_pulled, static_argnums=0)


def _small(x1: Tensor, x2: Tensor | None) -> bool:
    """Whether a matrix is small, and on the host."""
    other = x1 if x2 is None else x2
    return x1.device.type == "cpu" and x1.numel() // x1.shape[-1] * other.shape[-2] <= _SMALL


class _Evaluate(torch.autograd.Function):
    """One node of PyTorch's graph; JAX computes its value and, when asked, its derivatives."""

    @staticmethod
    def forward(
        ctx: Any, kernel: TorchKernel, batched: bool, x1: Tensor, x2: Tensor | None, numbers: Tensor
    ) -> Tensor:
        """The matrix."""
        ctx.rule = kernel.family, kernel.kind, batched
        ctx.save_for_backward(x1, x2, numbers)
        with jax.enable_x64(x1.dtype == torch.float64):
            arrays = [None if a is None else to_jax(a) for a in (x1, x2, numbers)]
            return to_torch(_forward[_small(x1, x2)](ctx.rule, *arrays), x1)

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor | None, ...]:
        """The derivatives in x1, x2 and the numbers."""
        saved = ctx.saved_tensors
        with jax.enable_x64(saved[0].dtype == torch.float64):
            arrays = [None if a is None else to_jax(a) for a in saved]
            found = _backward[_small(*saved[:2])](ctx.rule, *arrays, to_jax(grads[0]))
            back = [
                None if array is None else to_torch(array, tensor)
                for array, tensor in zip(found, saved, strict=True)
            ]
        return (None, None, *back)
