"""A network's kernel on tables of any size, with few compilations."""

import dataclasses
import functools

import numpy as np

from widelimit.describe import check
from widelimit.infinite import nngp, ntk
from widelimit.layers import Dense, Layer, Serial
from widelimit.linalg import TiledGram

_KERNELS = {"ntk": ntk, "nngp": nngp}
_BUCKETS = (128, 512, 2048)  # numbers of rows for which programs are compiled
_FEATURES = (8, 16, 32, 64)  # numbers of features


@dataclasses.dataclass(frozen=True)
class NetworkGram:
    r"""The kernel of a network as a function of NumPy points, in float64.

    A program is compiled for each shape, which for small tables takes far longer than the kernel
    itself. Rows are therefore filled up to a few sizes (and cut off again), and features with
    zeros, the points scaled such that $|x|^2/d$ stays.

    The bias of the first layer becomes one more feature, which is the same function of the inputs:
    $\sigma_w^2\langle x,x'\rangle/d+\sigma_b^2=\sigma_w^2\langle(x,c),(x',c)\rangle/d$ with
    $c=\sqrt d\,\sigma_b/\sigma_w$. If the rest of the network is homogeneous, its kernel then is a
    function of one variable, and costs little more than a matrix product.

    Attributes:
        network: The network.
        name: "ntk" or "nngp".
    """

    network: Layer
    name: str = "ntk"

    def __post_init__(self) -> None:
        if self.name not in _KERNELS:
            raise ValueError(f"kernel must be 'ntk' or 'nngp', got {self.name!r}.")
        check(self.network, ntk=self.name == "ntk")

    def __call__(self, x1: np.ndarray, x2: np.ndarray | None = None) -> np.ndarray:
        """The kernel matrix, shape (n1, n2), by tiles of the largest compiled size."""
        n1, n2 = len(x1), len(x1 if x2 is None else x2)
        tile = tile_rows(max(n1, n2))
        if max(n1, n2) <= tile:
            return self._block(x1, x2)
        if x2 is None:
            return TiledGram(self._block, x1, tile=tile).dense()
        out = np.empty((n1, n2))
        for i in range(0, n1, tile):
            for j in range(0, n2, tile):
                out[i : i + tile, j : j + tile] = self._block(x1[i : i + tile], x2[j : j + tile])
        return out

    def diagonal(self, x: np.ndarray) -> np.ndarray:
        """K(x, x) of each point, shape (n,)."""
        return self.tiled(x).diagonal()

    def tiled(self, x: np.ndarray) -> TiledGram:
        """The matrix of the points as an operator."""
        return TiledGram(self._block, x, tile=tile_rows(len(x)))

    def _block(self, x1: np.ndarray, x2: np.ndarray | None = None) -> np.ndarray:
        net, bias = _without_first_bias(self.network)
        first = fill_up(x1, bias)
        second = None if x2 is None else fill_up(x2, bias)
        matrix = _KERNELS[self.name](net, first, second)
        return matrix[: len(x1), : len(x1 if x2 is None else x2)]


@functools.lru_cache(maxsize=64)
def _without_first_bias(net: Layer) -> tuple[Layer, float]:
    """The network with the bias of its first layer taken out, and that bias over w_std."""
    layers = net.layers if isinstance(net, Serial) else (net,)
    first = layers[0] if layers else None
    if not isinstance(first, Dense) or not (float(first.w_std) > 0 and float(first.b_std) > 0):
        return net, 0.0
    bare = Dense(width=first.width, w_std=first.w_std)
    return Serial(bare, *layers[1:]), float(first.b_std) / float(first.w_std)


def tile_rows(n: int) -> int:
    """Rows of a tile for a table of n rows."""
    return 128 if n <= 512 else 512 if n <= 4096 else 2048


def fill_up(x: np.ndarray, bias: float = 0.0) -> np.ndarray:
    """Points with the bias as a feature, zeros after it, and more rows below."""
    n, d = x.shape
    used = d + (bias > 0)
    width = next((f for f in _FEATURES if f >= used), used)
    rows = next((r for r in _BUCKETS if r >= n), n)
    out = np.zeros((rows, width))
    out[:n, :d] = x
    if bias > 0:
        out[:n, d] = bias * np.sqrt(d)
    out *= np.sqrt(width / d)
    if rows > n:  # of the first row's length, since equal lengths are fast; of no special direction
        length = float(np.linalg.norm(out[0])) or 1.0
        filler = np.random.default_rng(0).standard_normal((rows - n, width))
        out[n:] = filler * (length / np.linalg.norm(filler, axis=1))[:, None]
    return out
