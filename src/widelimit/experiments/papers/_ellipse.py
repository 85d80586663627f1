"""The tangent kernel of two images during training, drawn as an ellipse."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from jaxtyping import ArrayLike, Float

from widelimit.dynamics import train
from widelimit.finite import finite
from widelimit.layers import mlp
from widelimit.plot import COLOURS, Animation, figure
from widelimit.training import kernel_ellipse, optimise

from .._experiment import experiment
from .._result import Found, Result, Table, Verdict, falling, judge
from .._setting import Setting
from ._digits import load_digits
from ._panels import shared


def _draw(result: Result) -> Any:
    """The two images and the ellipses over time."""
    data = result.data
    fig, panels = figure(1, 1 + len(data["kernels"]), width=2.3, height=2.5)
    _images(panels[0][0], data["images"])
    for panel, (n, series) in zip(panels[0][1:], data["kernels"].items(), strict=True):
        for t, curve in enumerate(kernel_ellipse(series).outline()):
            shade = 0.15 + 0.85 * (t + 1) / len(series)
            label = "during training (darker is later)" if t + 1 == len(series) else None
            panel.plot(*curve.T, color=COLOURS[0], alpha=shade, lw=0.7, label=label)
        _frame(panel, n, data)
    shared(fig, panels[0][-1], "right", 2)
    return fig


def _images(panel: Any, images: Float[np.ndarray, "2 d"]) -> None:
    side = int(np.sqrt(images.shape[1]))
    panel.axis("off")
    if side * side == images.shape[1]:
        first, second = images.reshape(2, side, side)
        stack = np.concatenate([first, np.zeros((1, side)), second])
        panel.imshow(stack, cmap="gray_r", interpolation="nearest")
        panel.set_title("targets +1 and -1")


def _frame(panel: Any, n: str, data: dict[str, Any]) -> None:
    """The ellipse of the limit, in a frame that holds the ellipses of all widths."""
    style = {"color": COLOURS[1], "lw": 1.4, "label": "infinite width"}
    panel.plot(*kernel_ellipse(data["limit"]).outline().T, "--", **style)
    every = (*data["kernels"].values(), data["limit"])
    reach = 1.15 * max(np.abs(kernel_ellipse(k).outline()).max() for k in every)
    panel.set_aspect("equal")
    panel.set_xlim(-reach, reach)
    panel.set_ylim(-reach, reach)
    panel.set_title(f"width {n}")


def _animate(result: Result) -> Animation:
    """The ellipses as an animation."""
    data = result.data
    fig, panels = figure(1, len(data["kernels"]), width=2.4, height=2.7)
    moving = []
    for panel, (n, series) in zip(panels[0], data["kernels"].items(), strict=True):
        _frame(panel, n, data)
        curves = kernel_ellipse(series).outline()
        panel.plot(*curves[0].T, color="0.7", lw=1)
        moving.append((panel.plot([], [], color=COLOURS[0], lw=1.8)[0], curves))
    title = fig.suptitle(" ", fontsize=9)

    def show(frame: int) -> None:
        for line, curves in moving:
            line.set_data(*curves[frame].T)
        step = int(data["steps"][frame])
        title.set_text(f"step {step} (grey: start, dashed: infinite width)")

    return Animation(fig, show, len(data["steps"]))


@experiment(
    title="The tangent kernel of two images during training",
    source="Jacot, Gabriel, Hongler: animation shown with the paper",
    seconds=(15, 30),
    draws={"": _draw, "animation": _animate},
    takes={"depth": 2, "activation": "relu"},
    ignores=("samples",),
    order=20,
    caption=(
        r"Of two images (left) the kernel is a $2\times2$ matrix, drawn as the ellipse "
        r"$z^\top\Theta^{-1}z=1$. Its tilt says that learning one image changes the output at the "
        "other. Training moves the ellipse of a narrow network; the wider the network, the less "
        "it moves and the closer it stays to the limit (dashed)."
    ),
)
def ellipse(
    s: Setting,
    *,
    images: ArrayLike | None = None,
    widths: Sequence[int] = (30, 300, 3000),
    w_std: float = 2**0.5,
    b_std: float = 0.1,
    steps: int = 200,
    every: int = 5,
) -> Found:
    r"""The ellipse $z^\top\Theta_t^{-1}z=1$ of two inputs with targets +1 and -1, for several widths.

    Args:
        s: The setting.
        images: Two inputs, shape (2, d); None: a zero and a one of scikit-learn's digits, in [0, 1].
        widths: n.
        w_std: Of the MLP.
        b_std: Of the MLP.
        steps: Gradient steps at half of the admissible rate.
        every: Steps between two frames.
    """
    x = _two_digits() if images is None else np.asarray(images, dtype=np.float64)
    if x.ndim != 2 or len(x) != 2:
        raise ValueError(f"images must be two inputs, shape (2, d); got {x.shape}.")
    y = np.array([1.0, -1.0])
    net = mlp(depth=s.depth, activation=s.activation, w_std=w_std, b_std=b_std)
    model = train(net, x, y)
    limit, norm = model.matrix, np.linalg.norm(model.matrix)
    counter = s.counter(sum(n * n for n in widths))
    frames = list(range(0, steps + 1, every))
    how = {"learning_rate": model.theorem5_learning_rate / 2, "steps": steps, "record": frames}
    away = lambda kernels: float(np.linalg.norm(kernels, axis=(1, 2)).max() / norm)
    kernels, moved = {}, {}
    for n in widths:
        run = optimise(finite(net, n), x, y, key=s.seed, drift=True, **how)
        series = kernels[str(n)] = np.asarray(run.kernels, np.float64)
        moved[n] = away(series - series[0]), away(series - limit)
        counter.add(n * n)
    rows = [(n, 100 * a, 100 * c, *_axes(kernels[str(n)][-1])) for n, (a, c) in moved.items()]
    rows.append(("infinite", 0.0, 0.0, *_axes(limit)))
    columns = ("width", "drift, %", "distance from the limit, %", "semi-major", "semi-minor")
    table = Table("The kernel of the two images", columns, tuple(rows))
    data = {"steps": frames, "kernels": kernels, "limit": limit, "images": x}
    size = f"one network for each width, {steps} steps of gradient descent"
    return Found(data, (table,), (_verdict(moved),), size)


def _axes(theta: Float[np.ndarray, "2 2"]) -> tuple[float, float]:
    found = kernel_ellipse(theta)
    return float(found.semi_major), float(found.semi_minor)


def _verdict(moved: dict[int, tuple[float, float]]) -> Verdict:
    drifts, distances = zip(*moved.values(), strict=True)
    return judge(
        "The ellipse of a narrow network moves during training; that of a wide one stays on the "
        "limit.",
        "Drift and distance fall with each width; at the largest both are at most 10 % of the "
        "kernel's norm.",
        {
            "drift falls": falling(drifts),
            "distance falls": falling(distances),
            "wide network on the limit": drifts[-1] <= 0.1 and distances[-1] <= 0.1,
        },
        "; ".join(
            f"n = {n}: drift {100 * a:.1f} %, distance {100 * c:.1f} %"
            for n, (a, c) in moved.items()
        ),
    )


def _two_digits() -> Float[np.ndarray, "2 d"]:
    images, labels = load_digits((0, 1))
    return np.stack([images[np.flatnonzero(labels == label)[0]] for label in (0, 1)])
