"""The common setting: a target on the circle, its samples, the networks, and who is told of progress."""

import dataclasses
from collections.abc import Callable, Sequence

import numpy as np
from jaxtyping import ArrayLike, Float

from widelimit._base.names import unknown
from widelimit._base.scalars import as_count
from widelimit.activations import Activation
from widelimit.layers import Layer, mlp, resnet

Progress = Callable[[int, int], None]
KINDS = {
    "authors": "samples as in the papers' code, both ends of the period included",
    "equispaced": "equispaced samples, the end of the period not repeated",
    "random": "samples drawn uniformly",
}
JITTER = 1e-10  # the authors repeat the end of the period: their Gram matrix is singular without it


def target(b: ArrayLike) -> np.ndarray:
    r"""The function to be learnt, $\frac12\cos b+\sin4b$."""
    b = np.asarray(b, dtype=np.float64)
    return np.cos(b) / 2 + np.sin(4 * b)


def check_samples(samples: str) -> str:
    """The kind of samples, if there is such a kind."""
    if samples not in KINDS:
        raise ValueError(unknown("samples", samples, tuple(KINDS)))
    return samples


def angles(count: int, samples: str = "authors", seed: int = 0) -> Float[np.ndarray, " n"]:
    r"""Where the target is sampled.

    Args:
        count: The number of samples n.
        samples: "authors" for $-\pi+2\pi i/(n-1)$, both ends of the period included, as in the papers'
            published code; "equispaced" for $-\pi+2\pi i/n$; "random" for uniform draws.
        seed: Of the random draws.

    Returns:
        Angles in increasing order, shape (n,).

    Example:
        >>> (angles(5) / np.pi).tolist(), (angles(4, "equispaced") / np.pi).tolist()
        ([-1.0, -0.5, 0.0, 0.5, 1.0], [-1.0, -0.5, 0.0, 0.5])
    """
    count = as_count(count, "count", minimum=2)
    if check_samples(samples) == "authors":
        return -np.pi + 2 * np.pi * np.linspace(0, 1, count)
    if samples == "equispaced":
        return -np.pi + 2 * np.pi * np.arange(count) / count
    rng = np.random.default_rng([seed, count])
    return np.sort(rng.uniform(-np.pi, np.pi, count))


def networks(
    depth: int, alphas: Sequence[float] = (1.0, 0.1), activation: str | Activation = "relu"
) -> dict[str, Layer]:
    """The MLP and the residual networks of one depth.

    Args:
        depth: L.
        alphas: The attenuations of the residual networks.
        activation: Of all networks.

    Returns:
        Name to network.

    Example:
        >>> list(networks(5))
        ['MLP', 'ResNet 1', 'ResNet 0.1']
    """
    nets = {"MLP": mlp(depth=depth, activation=activation)}
    for alpha in alphas:
        nets[f"ResNet {alpha:g}"] = resnet(depth=depth, alpha=float(alpha), activation=activation)
    return nets


class Counter:
    """Counts work done and reports it."""

    def __init__(self, progress: Progress | None, total: int) -> None:
        self.progress, self.total, self.done = progress, total, 0

    def add(self, work: int = 1) -> None:
        """So much more is done."""
        self.done += work
        if self.progress is not None:
            self.progress(min(self.done, self.total), self.total)


@dataclasses.dataclass(frozen=True, kw_only=True)
class Setting:
    """What the experiments have in common; each takes those fields that it names when declared.

    Attributes:
        depth: L.
        depths: Several of them.
        alpha: The attenuation, where there is one residual network.
        alphas: The attenuations of the residual networks, in falling order.
        activation: Of all networks.
        count: The number of samples.
        counts: Several of them.
        samples: "authors", "equispaced" or "random"; without effect where there are no samples.
        seed: Of everything random.
        progress: Called with (steps done, steps in all).
    """

    depth: int = 0
    depths: Sequence[int] = ()
    alpha: float = 0.0
    alphas: Sequence[float] = ()
    activation: str | Activation = "relu"
    count: int = 0
    counts: Sequence[int] = ()
    samples: str = "authors"
    seed: int = 0
    progress: Progress | None = None

    @property
    def jitter(self) -> float:
        """The authors' jitter where their samples repeat a point; else none."""
        return JITTER if self.samples == "authors" else 0.0

    @property
    def samples_in_words(self) -> str:
        """The kind of samples, for the line below a figure."""
        return KINDS[self.samples]

    def angles(self, count: int) -> Float[np.ndarray, " n"]:
        """The positions of so many samples."""
        return angles(count, self.samples, self.seed)

    def distinct_angles(self, count: int) -> Float[np.ndarray, " n"]:
        """As `angles`, but equispaced instead of the authors', who repeat a point."""
        kind = "equispaced" if self.samples == "authors" else self.samples
        return angles(count, kind, self.seed)

    def networks(self, depth: int | None = None) -> dict[str, Layer]:
        """The MLP and the residual networks of a depth, by default of the only one."""
        return networks(self.depth if depth is None else depth, self.alphas, self.activation)

    def counter(self, total: int) -> Counter:
        """Reports progress in so many steps."""
        return Counter(self.progress, total)
