"""Tables as people have them: names among the numbers, and holes."""

from typing import Any

from sklearn.base import BaseEstimator, clone
from sklearn.compose import ColumnTransformer, make_column_selector
from sklearn.impute import SimpleImputer
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import OneHotEncoder

from ._classifier import NTKClassifier


def table_pipeline(
    estimator: Any = None, *, names: Any = None, rare: int | float | None = None
) -> Pipeline:
    """An estimator behind what a table needs: names become indicators, holes are filled and marked.

    Numbers that are missing are replaced by the median of their column, and an indicator column says where;
    a name that is missing is a name of its own. Names that were not seen in `fit` are none of those
    that were. Scaling is the estimator's own (`standardise`, `squash`).

    Args:
        estimator: What is fitted; None: `NTKClassifier()`. Give `NTKRegressor()` for numbers.
        names: The columns that hold names; None: those of a data frame whose type is no number, of an array
            none. Numbers that are names have to be said.
        rare: Names on fewer rows than this (or a smaller share than this) are taken together.

    Returns:
        A pipeline of the steps "columns" and "model".

    Example:
        >>> import numpy as np, pandas as pd
        >>> from widelimit.estimators import table_pipeline
        >>> table = pd.DataFrame({"size": [1.0, 2.0, np.nan, 5.0] * 5, "colour": ["red", "blue", "red", "green"] * 5})
        >>> model = table_pipeline().fit(table, [0, 1, 0, 1] * 5)
        >>> model.predict(table[:4])
        array([0, 1, 0, 1])
        >>> model[:-1].get_feature_names_out().tolist()
        ['colour_blue', 'colour_green', 'colour_red', 'size', 'missingindicator_size']
    """
    if estimator is None:
        estimator = NTKClassifier()
    if not isinstance(estimator, BaseEstimator):
        raise TypeError(
            f"estimator must be an estimator, such as NTKRegressor(), or None; got {estimator!r}."
        )
    words = OneHotEncoder(
        handle_unknown="ignore" if rare is None else "infrequent_if_exist",
        min_frequency=rare,
        sparse_output=False,
    )
    numbers: Any = SimpleImputer(strategy="median", add_indicator=True, keep_empty_features=True)
    columns = ColumnTransformer(
        [("names", words, _names if names is None else names)],
        remainder=numbers,
        verbose_feature_names_out=False,
    )
    return Pipeline([("columns", columns), ("model", clone(estimator))])


def _names(table: Any) -> list[Any]:
    """The columns of a data frame that hold no numbers; of an array none."""
    return make_column_selector(dtype_exclude="number")(table) if hasattr(table, "iloc") else []
