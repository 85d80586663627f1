"""Inputs that carry more than an array: masks and graphs."""

from typing import Any

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from numpy.typing import ArrayLike

from .arrays import Inputs, as_plain, check_finite, check_real, common_dtype, is_jax, value_of


class _Structured(eqx.Module):
    """An array of inputs (n, *spatial, channels) with something beside it for each of them."""

    x: Any

    @property
    def shape(self) -> tuple[int, ...]:
        """That of the array."""
        return tuple(self.x.shape)

    @property
    def ndim(self) -> int:
        """The number of its axes."""
        return self.x.ndim

    @property
    def dtype(self) -> Any:
        """Its dtype."""
        return self.x.dtype

    def __len__(self) -> int:
        return self.shape[0]


class Masked(_Structured):
    """Inputs of different lengths in one array, as in `numpy.ma`: the mask is True where there is nothing.

    What stands in masked pixels does not matter; it may be NaN.

    Attributes:
        x: The inputs, shape (n, *spatial, channels).
        mask: Shape (n, *spatial); True where a pixel is not there.

    Example:
        >>> import numpy as np, widelimit as wl
        >>> x = np.ones((2, 5, 3))  # two sequences, of 5 and of 3 words
        >>> words = wl.Masked(x, np.arange(5) >= np.array([[5], [3]]))
        >>> wl.nngp(wl.cnn(depth=1, readout="pool"), words).shape
        (2, 2)
    """

    mask: Any

    def __init__(self, x: Any, mask: Any):
        self.x = as_plain(x, "x")
        self.mask = mask if is_jax(mask) else np.asarray(mask)
        if self.x.ndim < 3:
            raise ValueError(
                f"A mask belongs to pixels: x must have shape (n, *spatial, channels), got {self.shape}."
            )
        if self.mask.dtype != bool or tuple(self.mask.shape) != self.shape[:-1]:
            raise ValueError(
                f"The mask must be of truth values and have the shape of the pixels {self.shape[:-1]}, True "
                f"where nothing is; got {self.mask.dtype} of shape {tuple(self.mask.shape)}."
            )
        known = value_of(self.mask)
        whole = None if known is None else known.reshape(len(known), -1).all(axis=1)
        if whole is not None and whole.any():
            raise ValueError(f"Input {int(np.argmax(whole))} is masked everywhere; remove it.")

    def __getitem__(self, index: Any) -> "Masked":
        return Masked(self.x[index], self.mask[index])

    @property
    def seen(self) -> Any:
        """The inputs with zeros where nothing is."""
        numbers = jnp if is_jax(self.x) or is_jax(self.mask) else np
        return numbers.where(self.mask[..., None], numbers.zeros_like(self.x), self.x)


class Graphs(_Structured):
    """Inputs whose pixels are the nodes of graphs of their own.

    Attributes:
        x: The nodes' features, shape (n, nodes, channels).
        adjacency: Shape (n, nodes, nodes); entry (a, p) is the weight of the edge from a to p.

    Example:
        >>> import numpy as np, widelimit as wl
        >>> ring = np.roll(np.eye(4), 1, axis=1) + np.roll(np.eye(4), -1, axis=1)
        >>> graphs = wl.Graphs(np.ones((1, 4, 2)), ring[None])
        >>> net = wl.Aggregate() >> wl.Dense() >> wl.Phi("relu") >> wl.GlobalAvgPool() >> wl.Dense()
        >>> round(float(wl.nngp(net, graphs)[0, 0]), 6)  # twice the features: four times the variance, halved
        2.0
    """

    adjacency: Any

    def __init__(self, x: Any, adjacency: Any):
        self.x = as_plain(x, "x")
        self.adjacency = as_plain(adjacency, "adjacency")
        check_real(self.adjacency, "adjacency")
        check_finite(self.adjacency, "adjacency")
        if self.x.ndim != 3:
            raise ValueError(
                f"Graphs need nodes with features: x of shape (n, nodes, channels), got {self.shape}."
            )
        n, nodes = self.shape[:2]
        found = tuple(self.adjacency.shape)
        if found != (n, nodes, nodes):
            square = len(found) == 3 and found[1] == found[2]
            raise ValueError(
                f"The adjacency must have shape (n, nodes, nodes) = {(n, nodes, nodes)}, a square matrix for "
                f"each input; got {found}{'' if square else ', which is not square'}."
            )

    def __getitem__(self, index: Any) -> "Graphs":
        return Graphs(self.x[index], self.adjacency[index])


# What callers give: an array, or one that carries more.
Data = ArrayLike | Masked | Graphs


def has_pixels(x: Any) -> bool:
    """Whether inputs have spatial axes."""
    return isinstance(x, _Structured) or np.ndim(x) > 2


def as_images(x1: Any, x2: Any = None) -> Inputs:
    """Check two batches of inputs (n, *spatial, channels), plain, `Masked` or `Graphs`; settle the dtype."""
    given = [x1] if x2 is None else [x1, x2]
    names = ["x1", "x2"]
    arrays = []
    for x, name in zip(given, names, strict=False):
        array = x.seen if isinstance(x, Masked) else x.x if isinstance(x, Graphs) else x
        array = as_plain(array, name)
        check_real(array, name)
        if not 2 <= array.ndim <= 5:
            raise ValueError(
                f"{name} must have shape (n, *spatial, channels) with at most three spatial axes, got "
                f"{tuple(array.shape)}. Grey images of shape (n, height, width) need {name}[..., None]."
            )
        check_finite(array, name)
        arrays.append(array)
    if len(arrays) == 2 and arrays[0].shape[1:] != arrays[1].shape[1:]:
        raise ValueError(
            f"x1 has inputs of shape {tuple(arrays[0].shape[1:])} and x2 of {tuple(arrays[1].shape[1:])}; "
            "their pixels and channels must agree."
        )
    if len(given) == 2 and isinstance(given[0], Graphs) != isinstance(given[1], Graphs):
        raise ValueError("One of x1 and x2 has graphs, the other none; give both as Graphs.")
    dtype = common_dtype(*arrays)
    numpy = not any(map(is_jax, arrays))

    def settled(x: Any, array: Any) -> Any:
        array = array.astype(dtype)
        if isinstance(x, Masked):
            return Masked(array, x.mask)
        return Graphs(array, x.adjacency) if isinstance(x, Graphs) else array

    done = [settled(x, array) for x, array in zip(given, arrays, strict=True)]
    return Inputs(done[0], done[1] if x2 is not None else None, numpy, dtype)
