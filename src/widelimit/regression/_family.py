"""Networks that differ in a few numbers, and the derivatives of their kernels in those numbers."""

import dataclasses
import functools
import math
from collections.abc import Callable, Hashable, Iterator

import jax
import numpy as np
from jaxtyping import Array, Float

from widelimit._base.scalars import Scalar
from widelimit.infinite import prepare
from widelimit.layers import Layer

_TILE = 512  # rows of a tile whose derivative is taken: the state of all layers is kept
_PIXEL_PAIRS = 2**20  # in a tile of images, for the same reason

Numbers = Float[np.ndarray, " p"]


@dataclasses.dataclass(frozen=True)
class Template:
    """A network whose free numbers are given in order of appearance.

    Attributes:
        structure: The tree structure of the network.
        fixed: Its numbers, None where one is free.
    """

    structure: Hashable
    fixed: tuple[float | None, ...]

    def __call__(self, *numbers: Scalar) -> Layer:
        """The network with these numbers."""
        rest = iter(numbers)
        leaves = [next(rest) if value is None else value for value in self.fixed]
        return jax.tree.unflatten(self.structure, leaves)


@dataclasses.dataclass(frozen=True)
class Family:
    """Networks that differ in some numbers; hashable, so that one compilation serves all.

    Attributes:
        build: A hashable function of the numbers.
        names: What it calls them; empty where they come in order.
        places: Where they stand in the network, where they come in order.
    """

    build: Callable[..., Layer]
    names: tuple[str, ...] = ()
    places: tuple[str, ...] = ()

    @property
    def labels(self) -> tuple[str, ...]:
        """What the numbers are called in answers."""
        return self.names or self.places

    def network(self, numbers: Numbers | tuple[Scalar, ...]) -> Layer:
        """The member with these numbers."""
        values = numbers.tolist() if isinstance(numbers, np.ndarray) else numbers
        if not self.names:
            return self.build(*values)
        return self.build(**dict(zip(self.names, values, strict=True)))

    def named(self, numbers: Numbers) -> dict[str, float]:
        """The numbers by name."""
        return dict(zip(self.labels, numbers.tolist(), strict=True))

    def pull_back(
        self,
        kind: str,
        numbers: Numbers,
        x: Float[np.ndarray, "n ..."],
        weights: Float[np.ndarray, "n n"],
    ) -> Numbers:
        r"""The derivative of $\sum_{ij}w_{ij}K_{ij}$ in the numbers, symmetric w, by tiles."""
        total = np.zeros(len(numbers))
        if not len(numbers):
            return total
        at = tuple(map(float, numbers))
        with jax.enable_x64(True):
            for rows, columns, x1, x2 in _tiles(x):
                block = np.zeros((len(x1), len(x1)))
                part = weights[rows, columns] * (1.0 if x2 is None else 2.0)
                block[: part.shape[0], : part.shape[1]] = part
                total += np.array([float(p) for p in _pull_back(self, kind, at, x1, x2, block)])
        return total

    def slopes(
        self, kind: str, numbers: Numbers, x: Float[np.ndarray, "n ..."]
    ) -> Float[np.ndarray, "n n p"]:
        """The derivatives of the kernel matrix in the numbers, by tiles."""
        out = np.zeros((len(x), len(x), len(numbers)))
        if not len(numbers):
            return out
        with jax.enable_x64(True):
            for rows, columns, x1, x2 in _tiles(x):
                whole = np.stack(_slopes(self, kind, tuple(map(float, numbers)), x1, x2), axis=-1)
                part = whole[: rows.stop - rows.start, : columns.stop - columns.start]
                out[rows, columns] = part
                out[columns, rows] = part.transpose(1, 0, 2)
        return out


def family_of(net: Layer) -> tuple[Family, Numbers]:
    """The networks that differ from this one in its numbers, but for those that are exactly 0; and its numbers.

    Example:
        >>> import widelimit as wl
        >>> family, numbers = family_of(wl.Dense(b_std=0.5) >> wl.Phi("relu") >> wl.Dense())
        >>> family.named(numbers)
        {'layers[0].w_std': 1.0, 'layers[0].b_std': 0.5, 'layers[2].w_std': 1.0}
    """
    leaves, structure = jax.tree.flatten(net)
    leaves = [float(v) for v in leaves]
    fixed = tuple(v if v == 0 else None for v in leaves)
    paths = [jax.tree_util.keystr(path) for path, _ in jax.tree_util.tree_leaves_with_path(net)]
    labels = [p.lstrip(".") for p, v in zip(paths, leaves, strict=True) if v != 0]
    family = Family(Template(structure, fixed), places=tuple(labels))
    return family, np.array([v for v in leaves if v != 0])


def _tiles(
    x: Float[np.ndarray, "n ..."],
) -> Iterator[tuple[slice, slice, Float[np.ndarray, "_ ..."], Float[np.ndarray, "_ ..."] | None]]:
    """Tiles on and below the diagonal, of one shape, so that two compilations serve all."""
    n = len(x)
    tile = max(min(_TILE, n, math.isqrt(_PIXEL_PAIRS) // math.prod(x.shape[1:-1])), 1)
    filled = np.concatenate([x, np.repeat(x[:1], -n % tile, axis=0)])
    edges = [slice(i, min(i + tile, n)) for i in range(0, n, tile)]
    part = lambda edge: filled[edge.start : edge.start + tile]
    for i, rows in enumerate(edges):
        for columns in edges[: i + 1]:
            yield rows, columns, part(rows), None if rows == columns else part(columns)


Traced = tuple[Float[Array, ""], ...]


@functools.partial(jax.jit, static_argnums=(0, 1))
def _pull_back(
    family: Family,
    kind: str,
    numbers: Traced,
    x1: Float[Array, "a ..."],
    x2: Float[Array, "b ..."] | None,
    weights: Float[Array, "a c"],
) -> Traced:
    value = lambda at: (weights * prepare(family.network(at), kind)(x1, x2)).sum()
    return jax.grad(value)(numbers)


@functools.partial(jax.jit, static_argnums=(0, 1))
def _slopes(
    family: Family,
    kind: str,
    numbers: Traced,
    x1: Float[Array, "a ..."],
    x2: Float[Array, "b ..."] | None,
) -> tuple[Float[Array, "a c"], ...]:
    return jax.jacfwd(lambda at: prepare(family.network(at), kind)(x1, x2))(numbers)
