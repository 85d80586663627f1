"""Tensors as JAX arrays and back, on the same device, without a copy where DLPack allows it."""

import jax
import jax.numpy as jnp
import numpy as np
import torch


def to_jax(tensor: torch.Tensor) -> jax.Array:
    """A tensor as a JAX array; float64 stays float64 where the 64-bit context is open.

    Args:
        tensor: Any real tensor; its history for derivatives is left behind.

    Returns:
        The array, which shares memory with the tensor where both can.

    Example:
        >>> to_jax(torch.ones(2))
        Array([1., 1.], dtype=float32)
    """
    plain = tensor.detach().contiguous()
    try:
        return jax.dlpack.from_dlpack(plain)
    except (RuntimeError, TypeError, ValueError, BufferError):  # a device that JAX does not have
        return jnp.asarray(plain.cpu().numpy())


def to_torch(array: jax.Array, like: torch.Tensor | None = None) -> torch.Tensor:
    """A JAX array as a tensor, on the device and in the dtype of another one.

    Args:
        array: The array.
        like: A tensor; None: where and what the array is.

    Returns:
        The tensor, writable.

    Example:
        >>> to_torch(jnp.ones(2))
        tensor([1., 1.])
    """
    try:
        tensor = torch.from_dlpack(array).clone()
    except (RuntimeError, TypeError, ValueError, BufferError):
        tensor = torch.from_numpy(np.array(array))
    return tensor if like is None else tensor.to(device=like.device, dtype=like.dtype)
