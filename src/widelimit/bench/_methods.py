"""What competes on tables: each method scores all its candidates on all splits of a set."""

import dataclasses
import itertools
import math
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from jaxtyping import Float
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.exceptions import ConvergenceWarning
from sklearn.svm import SVC

from widelimit.estimators import NTKClassifier
from widelimit.infinite import prepare
from widelimit.layers import Dense, Frozen, Layer, Phi, Repeat, Residual
from widelimit.linalg import TiledGram

from ._uci import TableSet

COSTS = tuple(10.0**e for e in range(-2, 5))  # of support vectors
DEPTHS = (1, 2, 3, 4, 5)
STEPS = 200_000  # of support vectors; inseparable sets would take a thousand times as many
_COLUMNS = 16  # columns are filled up to multiples of this
_TILE = 128  # rows of a tile

Matrix = Float[np.ndarray, "n n"]
Scores = dict[str, list[float]]  # candidate to its accuracies: on the tuning split, on the folds


@dataclasses.dataclass(frozen=True)
class Method:
    """A classifier with its candidates.

    Attributes:
        title: In tables.
        ours: Whether it is one of this library's.
        run: From a set to the accuracies of all candidates on all splits.
        within: Methods whose candidates include its own; then nothing is computed for it.
        takes: Which of those are its own.
    """

    title: str
    ours: bool
    run: Callable[[TableSet], Scores] = lambda table: {}
    within: tuple[str, ...] = ()
    takes: Callable[[str], bool] = lambda candidate: True


def frozen_mlp(depth: int, frozen: int, columns: int) -> Layer:
    r"""The ReLU network of the protocol: `depth` weight matrices, the first `frozen` not trained.

    Its first layer does not divide by the number of columns, and no layer makes up for the half that a
    ReLU takes away: $\Sigma^0=x\cdot x'$, $\Sigma^{l}=E[\phi\phi]$.
    """
    first: Layer = Dense(w_std=math.sqrt(columns))
    parts = [first, *(Phi("relu") >> Dense() for _ in range(depth - 1))]
    chain = lambda layers: _chained(layers) if layers else None
    below, above = chain(parts[:frozen]), chain(parts[frozen:])
    assert above is not None  # the last layer is trained
    return above if below is None else Frozen(below) >> above


def _chained(layers: list[Layer]) -> Layer:
    chain = layers[0]
    for layer in layers[1:]:
        chain = chain >> layer
    return chain


def _padded(x: Float[np.ndarray, "n d"]) -> Float[np.ndarray, "n columns"]:
    """Zeros added to the right, which change no product of two rows."""
    return np.pad(x, ((0, 0), (0, -x.shape[1] % _COLUMNS)))


def _gram(net: Layer, x: Float[np.ndarray, "n d"]) -> Matrix:
    """The tangent kernel by small tiles of one shape, so that one program serves many sets."""
    rows = np.pad(x, ((0, -len(x) % _TILE), (0, 0)))
    return TiledGram(prepare(net, "ntk"), rows, tile=_TILE).dense()[: len(x), : len(x)]


def _ntk(table: TableSet) -> Iterator[tuple[str, Matrix]]:
    x = _padded(table.x)
    for depth in DEPTHS:
        for frozen in range(depth):
            net = frozen_mlp(depth, frozen, x.shape[1])
            yield f"L = {depth}, frozen {frozen}", _gram(net, x)


def _is_nngp(candidate: str) -> bool:
    """Whether all layers but the last are frozen: the tangent kernel is then the NNGP kernel."""
    depth, frozen = (int(part.split()[-1]) for part in candidate.split(", ")[:2])
    return frozen == depth - 1


def _resnet(table: TableSet) -> Iterator[tuple[str, Matrix]]:
    """ResNets with a bias in front, for several depths and attenuations of their branches."""
    x = _padded(table.x)
    first = Dense(w_std=math.sqrt(x.shape[1] / table.x.shape[1]), b_std=1.0)
    for depth, alpha in itertools.product((1, 2, 4, 8), (0.3, 1.0)):
        block = Residual(Dense(w_std=2**0.5) >> Phi("relu") >> Dense(), alpha=alpha)
        net = first >> Repeat(block, depth) >> Dense()
        yield f"L = {depth}, alpha = {alpha:g}", _gram(net, x)


def _gaussian(table: TableSet) -> Iterator[tuple[str, Matrix]]:
    r"""$e^{-\gamma|x-x'|^2}$, $\gamma$ around the inverse of the median squared distance."""
    squares = (table.x**2).sum(1)
    distances = np.maximum(squares[:, None] + squares - 2 * table.x @ table.x.T, 0)
    median = float(np.median(distances[distances > 0]))
    for power in range(-6, 7):
        yield f"gamma = 2^{power}", np.exp(-distances * (2.0**power / median))


def _by_support_vectors(
    kernels: Callable[[TableSet], Iterator[tuple[str, Matrix]]],
) -> Callable[[TableSet], Scores]:
    def run(table: TableSet) -> Scores:
        scores: Scores = {}
        for name, matrix in kernels(table):
            rows = [_along_costs(matrix, table.y, *split) for split in table.splits]
            for i, cost in enumerate(COSTS):
                scores[f"{name}, C = {cost:g}"] = [row[i] for row in rows]
        return scores

    return run


def _along_costs(
    matrix: Matrix, y: np.ndarray, learnt: np.ndarray, tested: np.ndarray
) -> list[float]:
    """Accuracies for all costs; once no coefficient reaches the cost, a larger one changes nothing."""
    gram, cross = matrix[np.ix_(learnt, learnt)], matrix[np.ix_(tested, learnt)]
    if len(np.unique(y[learnt])) < 2:
        return [float(np.mean(y[tested] == y[learnt][0]))] * len(COSTS)
    found: list[float] = []
    for cost in COSTS:
        model = SVC(kernel="precomputed", C=cost, cache_size=1000, max_iter=STEPS)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            model.fit(gram, y[learnt])
        found.append(float(np.mean(model.predict(cross) == y[tested])))
        if np.abs(np.asarray(model.dual_coef_)).max() < 0.999 * cost:
            break
    return found + [found[-1]] * (len(COSTS) - len(found))


def _by_estimator(candidates: Callable[[int], dict[str, Any]]) -> Callable[[TableSet], Scores]:
    def run(table: TableSet) -> Scores:
        scores: Scores = {}
        for name, model in candidates(table.x.shape[1]).items():
            scores[name] = []
            for learnt, tested in table.splits:
                model.fit(table.x[learnt], table.y[learnt])
                scores[name].append(
                    float(np.mean(model.predict(table.x[tested]) == table.y[tested]))
                )
        return scores

    return run


def _forests(columns: int) -> dict[str, Any]:
    root = columns**0.5
    tried = sorted({max(1, min(columns, round(root * s))) for s in (0.5, 1, 2)})
    return {
        f"{count} columns a split": RandomForestClassifier(500, max_features=count, random_state=0)  # pyright: ignore[reportArgumentType]
        for count in tried
    }


def _boosted(columns: int) -> dict[str, Any]:
    return {
        f"rate {rate:g}": HistGradientBoostingClassifier(learning_rate=rate, random_state=0)
        for rate in (0.03, 0.1)
    }


METHODS = {
    "ntk": Method("NTK", True, _by_support_vectors(_ntk)),
    "nngp": Method("NNGP", True, within=("ntk",), takes=_is_nngp),
    "resnet": Method("ResNet NTK", True, _by_support_vectors(_resnet)),
    "networks": Method("NTK, MLP or ResNet", True, within=("ntk", "resnet")),
    "default": Method(
        "NTKClassifier()", True, _by_estimator(lambda columns: {"default": NTKClassifier()})
    ),
    "search": Method(
        'NTKClassifier(search="auto")',
        True,
        _by_estimator(lambda columns: {"search": NTKClassifier(search="auto")}),
    ),
    "gaussian": Method("Gaussian SVM", False, _by_support_vectors(_gaussian)),
    "forest": Method("random forest", False, _by_estimator(_forests)),
    "boosting": Method("gradient boosting", False, _by_estimator(_boosted)),
}
