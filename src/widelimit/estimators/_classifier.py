"""Classification with a network of infinite width."""

import dataclasses
import math
import warnings
from typing import Any

import numpy as np
from sklearn.base import ClassifierMixin
from sklearn.utils.class_weight import compute_sample_weight
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, validate_data

from widelimit._base.scalars import as_float
from widelimit.regression import DENSE, Problem, Score, as_weights

from ._estimator import NetworkEstimator, old_spelling
from ._heads import HEADS, LaplaceHead, MachineHead, RidgeHead
from ._probability import columns
from ._scaling import moments


@old_spelling
@dataclasses.dataclass(eq=False, repr=False)
class NTKClassifier(ClassifierMixin, NetworkEstimator):
    r"""Classification by an infinitely wide network that regresses on ±1, one output per class.

    The squared loss has a closed form, and on small tables does as well as any other; `head` offers two
    more. Columns are standardised, outliers brought in, columns of few values also read as categories.

    Args:
        network: A network or its text; None builds one from the next six options.
        depth: Hidden layers, or residual blocks.
        activation: A name, an `Activation`, or a function.
        alpha: The attenuation of residual branches (`architecture="resnet"`).
        w_std: The weights' scale.
        b_std: The scale of the first layer's bias; the others have none.
        architecture: "mlp" or "resnet".
        kernel: "ntk": all layers are trained; "nngp": the last one only.
        ridge: A number, in units of the kernel; "loo": the least leave-one-out error of 20 values;
            "evidence": the largest marginal likelihood; of more than 2000 rows, on 1500 of them.
        standardise: Whether columns are brought to mean 0 and variance 1; False leaves them as they are.
        normalise: Whether rows are then put on a sphere.
        squash: Whether standardised columns pass through asinh, so that outliers do not outweigh the rest.
        categories: Standardised columns with 3 to this many different values, ten rows for each, also enter
            as indicators of these values, since such numbers often are names; 0: none.
        time: Training time under gradient flow; None for ever.
        solver: "cholesky"; "cg", which never stores the matrix; "auto": the first up to 20000
            rows.
        rank: Columns of the preconditioner of "cg"; None: about 5 sqrt(n), 10 on a GPU.
        precision: Of "cg": "float64" refines products in float32 until a residual in float64 is small;
            "float32" does not.
        checkpoint: A file from which "cg" goes on if it was stopped.
        verbose: Whether progress is shown; None: where it takes longer than a minute.
        mesh: The devices that share the work of "cg" (`wl.processes`); None: all of this process.
        store: A folder in which the kernel matrix of the rows is kept (`wl.gram`), for networks that read pixels: it
            is computed once, a run that was killed goes on, and the same fit with another ridge reads it.
        search: None; "network": depth, activation, kernel and treatment of columns are varied one at a time, and
            a change is taken if it lowers the leave-one-out error for certain (2.5 standard errors of
            the difference, row by row, on at most 1500 rows); "auto": features are learnt after that.
        feature_rounds: The most rounds in which the average outer product of the gradients of the fitted
            function re-weights the columns (recursive feature machines); as many are taken as help on folds
            in which the features are learnt anew, none if none does for certain. On at most 1500 rows.
        feature_form: "diagonal": columns are weighted; "full": they are mixed too; "auto": the better one.
        class_weight: None, "balanced", or a weight for each class; multiplies `sample_weight`.
        head: "ridge": regression on ±1, probabilities by a softmax of the outputs, its sharpness fitted to
            leave-one-out outputs (after "cg" when probabilities are first asked for); "gp": a Gaussian process
            for each class against the others, by Laplace's approximation, its prior variance of largest
            evidence; "svc": scikit-learn's support vector machine on this kernel, probabilities fitted to five
            folds. The last two hold the kernel matrix, and use `ridge` only where a search or features ask for it.
        C: The bound of the support vector machine.

    Attributes:
        classes_: The classes, sorted.
        network_: The network.
        ridge_: The ridge (`head="ridge"`).
        dual_coef_: Coefficients of distinct rows, shape (n, outputs); of the support vector machine for each
            pair of classes.
        loo_score_: The accuracy of leave-one-out predictions; computed when it is asked for.
        loo_score_std_: Its standard error, where not all rows are predicted exactly.
        log_evidence_: The log probability of the labels (`head="gp"`).
        search_: What a search has tried, and what it took.
        feature_rounds_: How many rounds of features were taken.
        feature_matrix_: The matrix $M$ by the root of which points were multiplied, of trace d; points are the
            standardised columns with their indicators behind them.
        feature_importances_: How much the function reacts to each column, of sum 1.
        n_features_in_: The number of columns.
        feature_names_in_: Their names, where X had some.

    Example:
        >>> import numpy as np
        >>> from widelimit.estimators import NTKClassifier
        >>> angle = np.linspace(0, 2 * np.pi, 60, endpoint=False)
        >>> x = np.stack([np.cos(angle), np.sin(angle)], axis=1) * np.where(np.arange(60) % 2, 1, 2)[:, None]
        >>> rings = np.where(np.arange(60) % 2, "inner", "outer")
        >>> model = NTKClassifier(depth=3).fit(x, rings)
        >>> model.predict([[0.9, 0.1], [-1.5, -1.5]])
        array(['inner', 'outer'], dtype='<U5')

    Reference:
        Jacot, Gabriel and Hongler (2018); Arora et al. (2020), Harnessing the power of infinitely
        wide deep nets on small-data tasks; Radhakrishnan et al. (2024), Mechanism for feature learning in
        neural networks and backpropagation-free machine learning models.
    """

    squash: bool = dataclasses.field(default=True, kw_only=True)
    categories: int = dataclasses.field(default=10, kw_only=True)
    class_weight: Any = dataclasses.field(default=None, kw_only=True)
    head: str = dataclasses.field(default="ridge", kw_only=True)
    C: float = dataclasses.field(default=1.0, kw_only=True)

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> "NTKClassifier":
        """Fit the network.

        Args:
            X: Shape (n, d), or (n, *spatial, channels) for a `network` that reads pixels.
            y: Class labels, shape (n,), at least two different ones.
            sample_weight: Shape (n,), at least 0; a weight of 2 is the row twice.

        Returns:
            Itself.
        """
        X, y = validate_data(self, self._rows(X, fitting=True), y, dtype=np.float64)
        check_classification_targets(y)
        weights = as_weights(sample_weight, len(X))
        self.classes_, labels = np.unique(y, return_inverse=True)
        present = np.unique(labels[weights > 0])
        if len(present) < 2:
            raise ValueError(
                "Only one class has rows with a positive weight: "
                f"{self.classes_[present].tolist()[0]!r}. A classifier needs at least two classes."
            )
        weights = weights * self._class_weights(y, labels, weights)
        targets = _codes(labels, len(self.classes_))
        self._mean, _ = moments(targets, weights)
        self._fit_head(X, targets - self._mean, weights)
        return self

    def _fit_head(self, X: np.ndarray, targets: np.ndarray, weights: np.ndarray) -> None:
        check_head(self)
        if self.head == "ridge":
            self._fit_network(X, targets, weights)
            self._head = RidgeHead.of(self._fit, self._mean)
            self._publish()
            return
        problem, _ = self._pose(X, targets, weights)
        if len(problem.x) > DENSE:
            raise ValueError(
                f"head={self.head!r} holds the kernel matrix, of at most {DENSE} rows; {len(problem.x)} came. "
                "Set head='ridge', or give fewer rows."
            )
        if self.head == "gp":
            self._head = LaplaceHead.of(problem, self._mean, self.verbose)
            self.log_evidence_ = self._head.log_evidence
        else:
            self._head = MachineHead.of(problem, self._mean, float(self.C))
        self.dual_coef_ = self._head.dual

    @property
    def loo_score_(self) -> float:
        """The accuracy of leave-one-out predictions of the rows; with "svc" of five folds.

        Of more than 2000 rows, 1000 are predicted; "cg" estimates it from all. What was chosen, was chosen on
        all rows.
        """
        return self._judge().value

    @property
    def loo_score_std_(self) -> float:
        """The standard error of `loo_score_` as an estimate of the accuracy on all rows; 0 where it is that."""
        return self._judge().std

    def _judge(self) -> Score:
        check_is_fitted(self)
        head = self._head
        if not isinstance(head, RidgeHead):
            return Score(self._accuracy(*head.judged()), 0.0)
        accuracy = lambda rows, errors: self._accuracy(rows, head.without(rows, errors))
        return head.fit.score(accuracy)

    def _accuracy(self, rows: np.ndarray, scores: np.ndarray) -> float:
        data = self._function()[0].data
        shares = (columns(data.targets[rows] + self._mean) + 1) / 2
        right = shares[np.arange(len(rows)), columns(scores).argmax(1)]
        return float(np.average(right, weights=data.weights[rows]))

    def _function(self) -> tuple[Problem, np.ndarray]:
        if isinstance(self._head, RidgeHead):
            return super()._function()
        return self._head.problem, self._head.dual

    def decision_function(self, X: Any) -> np.ndarray:
        """The network's outputs.

        Args:
            X: Shape (m, d).

        Returns:
            Shape (m, classes); for two classes (m,), positive for the second one.
        """
        out = self._outputs(X)
        return out[:, 0] if len(self.classes_) == 2 else out

    def predict(self, X: Any) -> np.ndarray:
        """The class with the largest output.

        Args:
            X: Shape (m, d).

        Returns:
            Labels, shape (m,).
        """
        out = self._outputs(X)
        best = (out[:, 0] > 0).astype(int) if len(self.classes_) == 2 else out.argmax(1)
        return self.classes_[best]

    def predict_proba(self, X: Any) -> np.ndarray:
        """Probabilities of the classes.

        Args:
            X: Shape (m, d).

        Returns:
            Shape (m, classes); rows sum to 1.
        """
        points = self._points(X)
        return self._head.chances(points)

    def _outputs(self, X: Any) -> np.ndarray:
        points = self._points(X)
        return self._head.scores(points)

    def _points(self, X: Any) -> np.ndarray:
        check_is_fitted(self)
        X = validate_data(self, self._rows(X), dtype=np.float64, reset=False)
        return self._scaling(X)

    def _class_weights(self, y: Any, labels: np.ndarray, weights: np.ndarray) -> Any:
        if self.class_weight is None:
            return 1.0
        if self.class_weight != "balanced":
            return compute_sample_weight(self.class_weight, y)
        sums = np.bincount(labels, weights)  # weights count rows, so classes are counted by them
        return (weights.sum() / (sums > 0).sum() / np.where(sums > 0, sums, 1))[labels]


def check_head(options: Any) -> None:
    """Refuse what is no head, and say which options have no effect on it."""
    if options.head not in HEADS:
        raise ValueError(f"head must be 'ridge', 'gp' or 'svc', got {options.head!r}.")
    if not 0 < as_float(options.C, "C") < math.inf:
        raise ValueError(f"C must be positive and finite, got {options.C}.")
    unused = []
    if options.head != "svc" and options.C != 1.0:
        unused.append(f"C={options.C} belongs to head='svc'")
    if options.head != "ridge":
        if options.time is not None:
            unused.append(f"time={options.time} belongs to head='ridge'")
        if options.ridge != "loo" and options.search is None and not options.feature_rounds:
            unused.append(f"ridge={options.ridge!r} belongs to head='ridge'")
        if options.solver == "cg":
            raise ValueError(
                f"head={options.head!r} holds the kernel matrix; solver='cg' does not."
            )
    for text in unused:
        warnings.warn(f"{text} and is ignored.", UserWarning, stacklevel=4)


def _codes(labels: np.ndarray, classes: int) -> np.ndarray:
    """±1 for each class; one column is enough for two."""
    if classes == 2:
        return 2.0 * labels[:, None] - 1
    return 2.0 * (labels[:, None] == np.arange(classes)) - 1
