"""The tangent kernel of two images during training, drawn as an ellipse."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from widelimit.dynamics import train
from widelimit.finite import finite
from widelimit.layers import mlp
from widelimit.training import kernel_ellipse, optimise

from ._interpolation import falling
from ._result import Progress, Result, Table, judge
from ._training import Counter


def ellipse(
    *,
    images: Any = None,
    widths: Sequence[int] = (30, 300, 3000),
    depth: int = 2,
    activation: Any = "relu",
    w_std: float = 2**0.5,
    b_std: float = 0.1,
    steps: int = 200,
    every: int = 5,
    samples: str = "authors",
    seed: int = 0,
    progress: Progress | None = None,
) -> Result:
    r"""The ellipse $z^\top\Theta_t^{-1}z=1$ of two inputs with targets +1 and -1, for several widths.

    Args:
        images: Two inputs, shape (2, d); None: a zero and a one of scikit-learn's digits, in [0, 1].
        widths: n.
        depth: L.
        activation: Of the MLP.
        w_std: Of the MLP.
        b_std: Of the MLP.
        steps: Gradient steps at half of the admissible rate.
        every: Steps between two frames.
        samples: Without effect; every experiment takes it.
        seed: Of the networks.
        progress: Called with (steps done, steps in all).

    Returns:
        The result.

    Reference:
        Jacot, Gabriel and Hongler (2018): the animation shown with the paper.
    """
    x = _two_digits() if images is None else np.asarray(images, dtype=np.float64)
    if x.ndim != 2 or len(x) != 2:
        raise ValueError(f"images must be two inputs, shape (2, d); got {x.shape}.")
    y = np.array([1.0, -1.0])
    net = mlp(depth=depth, activation=activation, w_std=w_std, b_std=b_std)
    model = train(net, x, y)
    limit, rate = model.matrix, model.theorem5_learning_rate / 2
    counter = Counter(progress, sum(n * n for n in widths))
    frames = list(range(0, steps + 1, every))
    kernels, rows, drifts, distance = {}, [], [], []
    for n in widths:
        run = optimise(
            finite(net, n),
            x,
            y,
            key=seed,
            learning_rate=rate,
            steps=steps,
            record=frames,
            drift=True,
        )
        series = np.asarray(run.kernels, np.float64)
        kernels[str(n)] = series
        norm = np.linalg.norm(limit)
        drifts.append(float(np.linalg.norm(series - series[0], axis=(1, 2)).max() / norm))
        distance.append(float(np.linalg.norm(series - limit, axis=(1, 2)).max() / norm))
        last = kernel_ellipse(series[-1])
        rows.append(
            (
                n,
                100 * drifts[-1],
                100 * distance[-1],
                float(last.semi_major),
                float(last.semi_minor),
            )
        )
        counter.add(n * n)
    end = kernel_ellipse(limit)
    rows.append(("infinite", 0.0, 0.0, float(end.semi_major), float(end.semi_minor)))
    columns = ("width", "drift, %", "distance from the limit, %", "semi-major", "semi-minor")
    verdict = judge(
        "The ellipse of a narrow network moves during training; that of a wide one stays on the "
        "limit.",
        "Drift and distance fall with each width; at the largest both are at most 10 % of the "
        "kernel's norm.",
        {
            "drift falls": falling(drifts),
            "distance falls": falling(distance),
            "wide network on the limit": drifts[-1] <= 0.1 and distance[-1] <= 0.1,
        },
        "; ".join(
            f"n = {n}: drift {100 * a:.1f} %, distance {100 * c:.1f} %"
            for n, a, c in zip(widths, drifts, distance, strict=True)
        ),
    )
    settings = {
        "widths": list(widths),
        "depth": depth,
        "activation": str(activation),
        "w_std": w_std,
        "b_std": b_std,
        "steps": steps,
        "every": every,
        "seed": seed,
    }
    data = {"steps": frames, "kernels": kernels, "limit": limit, "images": x}
    table = Table("The kernel of the two images", columns, tuple(rows))
    size = f"one network for each width, {steps} steps of gradient descent"
    return Result("ellipse", settings, data, (table,), (verdict,), size)


def load_digits(labels: Sequence[int]) -> tuple[np.ndarray, np.ndarray]:
    """Scikit-learn's images of some digits, pixels in [0, 1], and their labels."""
    try:
        from sklearn import datasets
    except ImportError as error:
        raise ImportError(
            "The images come with scikit-learn, which is not installed. Install it with: "
            "pip install 'widelimit[estimators]'"
        ) from error
    bunch: Any = datasets.load_digits()
    chosen = np.isin(bunch.target, labels)
    return bunch.data[chosen] / 16.0, bunch.target[chosen]


def _two_digits() -> np.ndarray:
    images, labels = load_digits((0, 1))
    return np.stack([images[np.flatnonzero(labels == label)[0]] for label in (0, 1)])
