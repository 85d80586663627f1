"""One call for what one looks at every day: a kernel, draws from a prior, a finished run."""

from typing import Any

import numpy as np

from widelimit._base.keys import as_generator
from widelimit._base.scalars import as_count
from widelimit.analysis.smoothness import circle_points
from widelimit.infinite import kernels, nngp, prepare
from widelimit.layers import Layer
from widelimit.linalg import eigh
from widelimit.training import Training

from ._style import COLOURS, angle_axis, figure

_POINTS = 181  # on the circle: every second degree


def kernel(kernel: Any, x: Any = None, *, kind: str = "ntk") -> Any:
    """A kernel as a picture: of a network on the circle or at given points, or any matrix.

    Args:
        kernel: A network, or a matrix of shape (n, n) or (n1, n2).
        x: Points, shape (n, d), for a network; None: the circle, with both kernels as functions of
            the angle beside it.
        kind: "ntk" or "nngp", for a network.

    Returns:
        The figure.

    Example:
        >>> import widelimit as wl
        >>> [axis.get_xlabel() for axis in wl.plot.kernel(wl.mlp(2)).axes[:2]]
        ['angle', 'angle']
    """
    if not isinstance(kernel, Layer):
        if x is not None:
            raise ValueError("Points belong to a network; a matrix is drawn as it is.")
        fig, panels = figure(width=3.9, height=3.2)
        _heat(fig, panels[0, 0], _as_matrix(kernel))
        panels[0, 0].set(xlabel="point", ylabel="point")
        return fig
    name = {"ntk": "tangent kernel", "nngp": "NNGP kernel"}.get(kind, kind)
    if x is not None:
        fig, panels = figure(width=3.9, height=3.2)
        _heat(fig, panels[0, 0], np.asarray(prepare(kernel, kind)(x)))
        panels[0, 0].set(xlabel="point", ylabel="point", title=name)
        return fig
    angles = np.linspace(-np.pi, np.pi, _POINTS)
    points = circle_points(angles)
    fig, panels = figure(1, 2, width=3.7, height=3.0)
    left, right = panels[0]
    _heat(fig, left, np.asarray(prepare(kernel, kind)(points)), (-np.pi, np.pi))
    left.set(xlabel="angle", ylabel="angle", title=name)
    both = kernels(kernel, np.array([[1.0, 0.0]]), points)
    for label, row, colour in (("NTK", both.ntk, COLOURS[0]), ("NNGP", both.nngp, COLOURS[1])):
        right.plot(angles, np.asarray(row)[0], color=colour, label=label)
    angle_axis(right)
    right.set(xlabel="angle", ylabel="kernel with the point at angle 0")
    right.legend()
    return fig


def _as_matrix(kernel: Any) -> np.ndarray:
    matrix = np.asarray(kernel)
    if matrix.ndim != 2 or matrix.dtype.kind not in "fiu" or 0 in matrix.shape:
        raise ValueError(
            f"A network or a matrix of shape (n1, n2) was expected, got {type(kernel).__name__} of "
            f"shape {matrix.shape}. Of a kernel with several outputs choose one: k[..., 0, 0]."
        )
    return matrix


def _heat(
    fig: Any, panel: Any, matrix: np.ndarray, span: tuple[float, float] | None = None
) -> None:
    """Colours for the entries; white is 0 where both signs occur."""
    top = float(np.nanmax(np.abs(matrix)))
    both = matrix.min() < -1e-9 * top
    colours = {"cmap": "RdBu_r", "vmin": -top, "vmax": top} if both else {"cmap": "viridis"}
    extent = None if span is None else (*span, *reversed(span))
    image = panel.imshow(matrix, extent=extent, aspect="auto", interpolation="nearest", **colours)
    panel.grid(visible=False)
    if span is not None:
        ticks, names = [-np.pi, 0, np.pi], ["$-\\pi$", "0", "$\\pi$"]
        panel.set_xticks(ticks, names)
        panel.set_yticks(ticks, names)
    fig.colorbar(image, ax=panel)


def prior(net: Layer, draws: int = 5, *, key: Any = 0) -> Any:
    """Functions that networks of infinite width are before training, on the circle.

    Args:
        net: The network.
        draws: How many functions.
        key: An integer or a JAX key.

    Returns:
        The figure: the draws, and the band of two standard deviations.

    Example:
        >>> import widelimit as wl
        >>> len(wl.plot.prior(wl.mlp(3, "erf"), draws=4).axes[0].lines)
        4
    """
    draws = as_count(draws, "draws", minimum=1)
    angles = np.linspace(-np.pi, np.pi, _POINTS)
    points = circle_points(angles)
    covariance = np.asarray(nngp(net, points))
    eigen = eigh(covariance)
    normal = as_generator(key).standard_normal((len(covariance), draws))
    functions = (eigen.vectors * np.sqrt(eigen.values)) @ normal
    fig, panels = figure(width=4.2)
    panel = panels[0, 0]
    spread = 2 * np.sqrt(np.diagonal(covariance))
    panel.fill_between(angles, -spread, spread, color="0.5", alpha=0.15, linewidth=0)
    panel.plot(angles, functions, linewidth=1.2)
    angle_axis(panel)
    panel.set(xlabel="angle", ylabel="output at initialisation")
    return fig


def run(training: Training) -> Any:
    """What `optimise` recorded: the loss, how far the weights went, and the kernel's drift.

    Args:
        training: From `optimise`, with at least two records.

    Returns:
        The figure.

    Example:
        >>> import numpy as np, widelimit as wl
        >>> net = wl.finite(wl.mlp(depth=1), width=32)
        >>> done = wl.optimise(net, np.eye(2), [1.0, -1.0], steps=20, record=10, drift=True)
        >>> [axis.get_ylabel() for axis in wl.plot.run(done).axes]
        ['training loss', 'distance from the start', 'drift of the kernel']
    """
    if not isinstance(training, Training):
        raise TypeError(
            f"What optimise returns was expected, got {type(training).__name__}. For a network of "
            "infinite width use plot.training."
        )
    if len(training.steps) < 2:
        raise ValueError("The run has fewer than two records. Ask optimise for some: record=50.")
    curves = {
        "training loss": training.loss,
        "distance from the start": training.distance,
        "length of the path": training.path,
        "drift of the kernel": training.drift,
        "outputs at the probe points": training.outputs,
    }
    shown = {name: np.asarray(v) for name, v in curves.items() if v is not None}
    fig, panels = figure(1, len(shown), width=3.1)
    for panel, (name, values) in zip(panels[0], shown.items(), strict=True):
        panel.plot(training.steps, values.reshape(len(values), -1))
        panel.set(xlabel="step", ylabel=name)
        if name == "training loss" and values.min() > 0:
            panel.set_yscale("log")
        elif name != "outputs at the probe points":
            panel.set_ylim(bottom=0)
    return fig
