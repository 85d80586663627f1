"""To which columns of a table a fitted function reacts."""

from typing import Any

import numpy as np

from widelimit._base.scalars import as_count

from ._style import COLOURS, figure


def importance(model: Any, most: int = 20) -> Any:
    """The columns that matter most to a fitted estimator, and the features that it has learnt.

    Bars are shares of the mean squared derivative of the fitted function in the standardised columns
    (`feature_importances_`). Where features were learnt that mix columns, their matrix stands beside them.

    Args:
        model: A fitted `NTKRegressor` or `NTKClassifier`, or whatever has `feature_importances_`.
        most: How many columns are shown.

    Returns:
        The figure.

    Example:
        >>> import numpy as np, widelimit as wl
        >>> x = np.random.default_rng(0).standard_normal((40, 3))
        >>> model = wl.estimators.NTKRegressor().fit(x, np.sin(2 * x[:, 1]))
        >>> figure = wl.plot.importance(model)
        >>> [label.get_text() for label in figure.axes[0].get_yticklabels()][-1]  # the longest bar is on top
        'column 1'
    """
    if not hasattr(model, "feature_importances_"):
        raise TypeError(
            "A fitted estimator of a table was expected, with feature_importances_; got "
            f"{type(model).__name__}. Call its fit first."
        )
    shares = np.asarray(model.feature_importances_)
    names = getattr(model, "feature_names_in_", [f"column {i}" for i in range(len(shares))])
    shown = np.argsort(shares, kind="stable")[-as_count(most, "most", minimum=1) :]
    matrix = getattr(model, "feature_matrix_", None)
    mixed = matrix is not None and np.abs(matrix - np.diag(np.diagonal(matrix))).max() > 0
    height = 0.8 + 0.22 * max(len(shown), 6)
    fig, panels = figure(1, 2 if mixed else 1, width=3.6, height=height)
    bars = panels[0, 0]
    bars.barh(np.arange(len(shown)), shares[shown], color=COLOURS[0], height=0.7)
    bars.set_yticks(np.arange(len(shown)), [str(names[i]) for i in shown])
    bars.set(xlabel="share of the mean squared slope")
    if mixed and matrix is not None:
        largest = float(np.abs(matrix).max())
        picture = panels[0, 1].imshow(matrix, cmap="RdBu_r", vmin=-largest, vmax=largest)
        panels[0, 1].set(title="learnt matrix", xlabel="column", ylabel="column")
        fig.colorbar(picture, ax=panels[0, 1], shrink=0.8)
    return fig
