"""Kernel regression on images of 0 and 8, with the digits that scikit-learn brings."""

import itertools
from collections.abc import Sequence
from typing import Any

import numpy as np

from widelimit.dynamics import train
from widelimit.plot import figure

from .._experiment import PAPER, experiment
from .._result import Found, Result, Table, by_case, judge
from .._setting import Setting
from ._panels import inside, look, words
from ._training import clearly_below

# Tirer, Bruna and Giryes (2022), MNIST: (training images, L) to accuracies of MLP, alpha = 1, 0.1.
PUBLISHED = {
    (50, 5): (0.9625, 0.967, 0.972),
    (50, 15): (0.9615, 0.9625, 0.972),
    (50, 30): (0.958, 0.9615, 0.9715),
    (100, 5): (0.981, 0.9885, 0.9905),
    (100, 15): (0.973, 0.982, 0.9925),
    (100, 30): (0.9645, 0.9795, 0.991),
}


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


def _draw(result: Result) -> Any:
    """Error rates against depth, a panel for each number of training images."""
    data = result.data
    sizes = [int(n) for n in data["sizes"]]
    fig, panels = figure(1, len(sizes), width=3.2, height=2.6)
    for panel, size in zip(panels[0], sizes, strict=True):
        cases = [data["accuracy"][f"N = {size}, L = {int(depth)}"] for depth in data["depths"]]
        for i, name in enumerate(cases[0]):
            rates = [100 * (1 - case[name]) for case in cases]
            means = [r.mean() for r in rates]
            errors = [r.std(ddof=1) / np.sqrt(len(r)) if len(r) > 1 else 0.0 for r in rates]
            style = {"fmt": "o", "capsize": 2, "label": words(name), **look(name, i)}
            panel.errorbar(data["depths"], means, yerr=errors, **style)
        panel.set_xlabel("depth $L$")
        panel.set_title(f"{size} training images")
        panel.set_ylim(bottom=0)
    panels[0][0].set_ylabel("errors, %")
    inside(panels[0][-1], 7)
    return fig


@experiment(
    title="Accuracy of kernel regression on images of 0 and 8",
    source=f"{PAPER}: published version, experiment on MNIST",
    seconds=(15, 40),
    full={"draws": 100},
    draws=_draw,
    takes={"depths": (5, 15, 30), "alphas": (1.0, 0.1), "activation": "relu"},
    ignores=("samples",),
    order=13,
    caption=(
        "Errors on images that were not learnt, with standard errors over random training sets. "
        r"Few images: the ResNet with a small $\alpha$ errs least and the MLP most, the more so "
        "the deeper. Many images: hardly any error is left to compare."
    ),
)
def digits(s: Setting, *, sizes: Sequence[int] = (10, 50, 100), draws: int = 10) -> Found:
    """Accuracy of regression with the tangent kernel on images of 0 against 8.

    The training mean is removed and every image has unit norm, as in the paper, whose images are
    MNIST's; here they have 8 x 8 pixels, so accuracies differ and only orderings are compared.

    Args:
        s: The setting.
        sizes: The numbers of training images.
        draws: Random training sets.
    """
    counter = s.counter(len(s.depths) * len(sizes))
    accuracy, rows = {}, []
    for size, depth in itertools.product(sizes, s.depths):
        case = f"N = {size}, L = {depth}"
        found = accuracy[case] = _accuracy(s, depth, size, draws)
        rows.append((case, "ours", *(float(v.mean()) for v in found.values())))
        if (size, depth) in PUBLISHED and tuple(s.alphas) == (1.0, 0.1):
            rows.append(("", "published (MNIST)", *PUBLISHED[size, depth]))
        counter.add()
    verdict = judge(
        "Regression with the kernel of a ResNet classifies better, the more so the smaller alpha.",
        f"The mean error rate over {draws} training sets falls, by more than the standard error of "
        "the difference, from each network to the next.",
        {
            f"{case}: {second} against {first}": clearly_below(1 - by[second], 1 - by[first])
            for case, by in accuracy.items()
            for first, second in itertools.pairwise(by)
        },
        by_case({c: [v.mean() for v in by.values()] for c, by in accuracy.items()}, ".4f"),
    )
    data = {"accuracy": accuracy, "sizes": list(sizes), "depths": list(s.depths)}
    columns = ("case", "source", *s.networks(1))
    table = Table("Accuracy on the other images", columns, tuple(rows))
    size_text = f"scikit-learn's digits 0 and 8 (paper: MNIST); {draws} random training sets each"
    return Found(data, (table,), (verdict,), size_text)


def _accuracy(s: Setting, depth: int, size: int, draws: int) -> dict[str, np.ndarray]:
    """Shares of the other images that are classified rightly, for each random training set."""
    images, labels = load_digits((0, 8))
    y = np.where(labels == 0, 1.0, -1.0)
    found = {name: np.zeros(draws) for name in s.networks(depth)}
    for draw in range(draws):
        order = np.random.default_rng([s.seed, size, draw]).permutation(len(y))
        x = images[order] - images[order[:size]].mean(0)
        x /= np.linalg.norm(x, axis=1, keepdims=True)
        for name, net in s.networks(depth).items():
            guess = np.sign(train(net, x[:size], y[order[:size]]).predict(x[size:]))
            found[name][draw] = np.mean(guess == y[order[size:]])
    return found
