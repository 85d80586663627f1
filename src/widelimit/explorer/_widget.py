"""The page in a notebook, on a network and data of one's own."""

import functools
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from widelimit.describe import check
from widelimit.layers import Layer

from ._page import page_text
from ._share import as_data, as_message

_SCRIPT = Path(__file__).with_name("widget.js")


def explore(net: Layer, x: ArrayLike, y: ArrayLike, *, height: int = 760) -> Any:
    """The explorer in a notebook: the same page, on your network and your data.

    Points that are moved, added or selected there are read here: `widget.x`, `widget.y`, `widget.selected`.
    Networks outside the sliders' family come as a profile of their kernels (`Profile.to_json`): everything but the
    sliders and the finite twin works.

    Args:
        net: The network.
        x: Angles on the circle, shape (n,); or points of one norm, shape (n, 2) or (n, 3); or the line (u, 1).
        y: Targets between -3 and 3, shape (n,).
        height: Of the widget, in pixels.

    Returns:
        An anywidget; the last line of a cell shows it. Needs the extra `widget`.

    Example:
        >>> import widelimit as wl
        >>> w = wl.explore(wl.mlp(3), [0.0, 1.0, 2.0], [0.5, -0.5, 0.2])  # doctest: +SKIP
        >>> w.y  # doctest: +SKIP
        array([ 0.5, -0.5,  0.2])
    """
    check(net, ntk=True)
    data = as_data(x, y)
    message = as_message(net, data)
    return _widget_class()(
        page=page_text(), tab=data.tab, points=data.points, height=int(height), **message
    )


@functools.cache
def _widget_class() -> Any:
    try:
        anywidget, traitlets = import_module("anywidget"), import_module("traitlets")
    except ImportError as error:
        raise ImportError(
            f"The explorer in a notebook needs {error.name}, which is not installed. Install it with: "
            "pip install 'widelimit[widget]'. In a browser: widelimit explore."
        ) from error

    class Explorer(anywidget.AnyWidget):
        """The page as a widget."""

        _esm = _SCRIPT.read_text(encoding="utf-8")
        page = traitlets.Unicode().tag(sync=True)
        hash = traitlets.Unicode().tag(sync=True)
        profile = traitlets.Unicode().tag(sync=True)
        tab = traitlets.Unicode().tag(sync=True)
        points = traitlets.List().tag(sync=True)
        selected = traitlets.Int(-1).tag(sync=True)
        height = traitlets.Int(760).tag(sync=True)

        @property
        def x(self) -> np.ndarray:
            """The inputs as they are in the page now, embedded: shape (n, 2) or (n, 3)."""
            return embedded(self.tab, self.points)

        @property
        def y(self) -> np.ndarray:
            """The targets as they are in the page now."""
            return np.array([row[-1] for row in self.points], dtype=np.float64)

    return Explorer


def embedded(tab: str, points: list[list[float]]) -> np.ndarray:
    """The page's points as inputs of a network."""
    u = np.array([row[:-1] for row in points], dtype=np.float64)
    if tab == "sphere":
        u = u.reshape(-1, 2)
        lon, lat = u[:, 0], u[:, 1]
        return np.stack([np.cos(lat) * np.cos(lon), np.cos(lat) * np.sin(lon), np.sin(lat)], 1)
    u = u.ravel()
    if tab == "line":
        return np.stack([u, np.ones(len(u))], 1)
    return np.stack([np.cos(u), np.sin(u)], 1)
