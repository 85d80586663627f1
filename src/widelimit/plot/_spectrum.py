"""Figures of spectra and learning curves."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from widelimit.analysis.learning_curve import Comparison
from widelimit.analysis.spectrum import Spectrum
from widelimit.linalg import eigh

from ._style import COLOURS, figure

_MARKERS = "osD^v*P"
LEGEND = {"frameon": False, "fontsize": 8}


def spectrum(
    spectra: Spectrum | np.ndarray | Mapping[str, Spectrum | np.ndarray],
    exponent: float | None = None,
) -> Any:
    r"""Eigenvalues on logarithmic axes: of a network against degree, of a matrix against their rank.

    Even degrees are filled, odd ones open.

    Zeros that the theory demands have no place on a logarithmic axis and are left out, and so are
    values that rounding has swallowed.

    Args:
        spectra: One spectrum or symmetric matrix, or several by name.
        exponent: Draws a line $k^{-s}$ beside them.

    Returns:
        The figure.

    Example:
        >>> import widelimit as wl
        >>> fig = spectrum({"MLP": wl.spectrum.circle(wl.mlp(depth=1), 50)}, exponent=2)
        >>> fig.axes[0].get_yscale()
        'log'
        >>> x = np.random.default_rng(0).standard_normal((30, 3))
        >>> spectrum(wl.ntk(wl.mlp(2), x)).axes[0].get_xlabel()
        'rank $i$'
    """
    many: dict[str, Any] = dict(spectra) if isinstance(spectra, Mapping) else {"": spectra}
    if not many:
        raise ValueError("At least one spectrum was expected, got none.")
    if not any(isinstance(one, Spectrum) for one in many.values()):
        return _of_matrices(many, exponent)
    fig, panels = figure(width=4.6, height=3.2)
    panel = panels[0, 0]
    for i, (name, one) in enumerate(many.items()):
        colour, marker = COLOURS[i % len(COLOURS)], _MARKERS[i % len(_MARKERS)]
        shown = (one.values > 0) & one.reliable & (one.degrees > 0) & _thinned(one.degrees)
        for parity, face in ((0, colour), (1, "white")):
            use = shown & (one.degrees % 2 == parity)
            style = {"ms": 3.5, "mfc": face, "mec": colour, "mew": 0.8, "ls": ""}
            panel.plot(one.degrees[use], one.values[use], marker=marker, color=colour, **style)
        panel.plot([], [], marker=marker, color=colour, ls="", ms=3.5, label=name or None)
    if exponent is not None:
        _guide(panel, next(iter(many.values())), exponent)
    panel.set(xscale="log", yscale="log", xlabel="degree $k$", ylabel="eigenvalue $\\mu_k$")
    panel.plot([], [], "o", mfc="white", mec="0.4", ms=3.5, label="open: odd $k$")
    fig.legend(loc="outside lower center", ncols=3, handletextpad=0.1, **LEGEND)
    return fig


def _of_matrices(many: Mapping[str, Any], exponent: float | None) -> Any:
    """Eigenvalues, largest first; what rounding has swallowed is left out."""
    fig, panels = figure(width=4.2, height=3.0)
    panel = panels[0, 0]
    for i, (name, matrix) in enumerate(many.items()):
        found = np.asarray(matrix)
        if found.ndim != 2 or found.shape[0] != found.shape[1]:
            raise ValueError(
                "A spectrum (wl.spectrum.circle, wl.spectrum.sphere) or a square matrix was "
                f"expected, got {type(matrix).__name__} of shape {found.shape}."
            )
        eigen = eigh(found.astype(np.float64), scale=float(np.abs(found).max()))
        values, colour = eigen.values[::-1], COLOURS[i % len(COLOURS)]
        rank, known = 1 + np.arange(len(values)), values > eigen.noise
        style = {"marker": _MARKERS[i % len(_MARKERS)], "ms": 3.5, "ls": "", "color": colour}
        panel.plot(rank[known], values[known], label=name or None, **style)
        if exponent is not None and i == 0 and known.sum() > 1:
            last = int(known.sum())
            panel.plot(
                [1, last], [values[0], values[0] * last**-exponent], "--", color="0.35", lw=1
            )
            panel.annotate(f"$i^{{-{exponent:g}}}$", (last, values[0] * last**-exponent))
    panel.set(xscale="log", yscale="log", xlabel="rank $i$", ylabel="eigenvalue $\\lambda_i$")
    if any(many):
        panel.legend(**LEGEND)
    return fig


def _thinned(degrees: np.ndarray) -> np.ndarray:
    """All degrees up to 20, then about 12 of either parity in an octave."""
    wanted = np.unique(np.round(20 * 2 ** (np.arange(0, 200) / 12)).astype(int))
    return (degrees <= 20) | np.isin(degrees, wanted) | np.isin(degrees, wanted + 1)


def _guide(panel: Any, one: Spectrum, exponent: float) -> None:
    last = int(one.degrees[-1])
    k = np.array([max(1, last // 10), last])
    anchor = np.max(one.values[last // 10 :]) * 3
    panel.plot(k, anchor * (k / k[0]) ** -float(exponent), color="0.35", lw=1, ls="--")
    at = np.sqrt(k[0] * k[1])
    panel.annotate(
        f"$k^{{-{exponent:g}}}$",
        (at, anchor * (at / k[0]) ** -float(exponent)),
        xytext=(4, 4),
        textcoords="offset points",
        color="0.35",
        fontsize=8,
    )


def learning_curve(curves: Comparison | Mapping[str, Comparison]) -> Any:
    """Predicted (lines) and measured (points with two standard errors) test errors.

    Args:
        curves: One comparison, or several by name.

    Returns:
        The figure.

    Example:
        >>> import widelimit as wl
        >>> f = wl.learning_curve.target(3, [0, 1.0, 0.5])
        >>> c = wl.learning_curve.compare(wl.mlp(depth=1), f, [10, 40], draws=3)
        >>> len(learning_curve(c).axes)
        1
    """
    many = {"": curves} if isinstance(curves, Comparison) else dict(curves)
    if not many:
        raise ValueError("At least one learning curve was expected, got none.")
    fig, panels = figure(width=4.2, height=3.0)
    panel = panels[0, 0]
    for i, (name, one) in enumerate(many.items()):
        colour, marker = COLOURS[i % len(COLOURS)], _MARKERS[i % len(_MARKERS)]
        label = f"{name}, theory" if name else "theory"
        panel.plot(one.predicted.sizes, one.predicted.mse, color=colour, label=label)
        m = one.measured
        style = {"ls": "", "marker": marker, "ms": 4, "capsize": 2, "elinewidth": 0.9}
        label = f"{name}, measured" if name else "measured"
        panel.errorbar(m.sizes, m.mse, 2 * m.error, color=colour, label=label, **style)
    panel.set(xscale="log", yscale="log", xlabel="samples $n$", ylabel="test error")
    panel.legend(loc="lower left", **LEGEND)
    return fig
