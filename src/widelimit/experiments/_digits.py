"""Kernel regression on images of 0 and 8, with the digits that scikit-learn brings."""

import itertools
from collections.abc import Sequence
from typing import Any

import numpy as np

from widelimit.infinite import ntk

from ._ellipse import load_digits
from ._result import Progress, Result, Table, judge
from ._setting import networks
from ._training import Counter, clearly_below

# Tirer, Bruna and Giryes (2022), MNIST: (training images, L) to accuracies of MLP, alpha = 1, 0.1.
PUBLISHED = {
    (50, 5): (0.9625, 0.967, 0.972),
    (50, 15): (0.9615, 0.9625, 0.972),
    (50, 30): (0.958, 0.9615, 0.9715),
    (100, 5): (0.981, 0.9885, 0.9905),
    (100, 15): (0.973, 0.982, 0.9925),
    (100, 30): (0.9645, 0.9795, 0.991),
}


def digits(
    *,
    depths: Sequence[int] = (5, 15, 30),
    sizes: Sequence[int] = (10, 50, 100),
    alphas: Sequence[float] = (1.0, 0.1),
    activation: Any = "relu",
    draws: int = 10,
    samples: str = "authors",
    seed: int = 0,
    progress: Progress | None = None,
) -> Result:
    """Accuracy of regression with the tangent kernel on images of 0 against 8.

    The training mean is removed and every image has unit norm, as in the paper, whose images are
    MNIST's; here they have 8 x 8 pixels, so accuracies differ and only orderings are compared.

    Args:
        depths: L.
        sizes: The numbers of training images.
        alphas: The attenuations.
        activation: Of all networks.
        draws: Random training sets.
        samples: Without effect; every experiment takes it.
        seed: Of the training sets.
        progress: Called with (steps done, steps in all).

    Returns:
        The result.

    Reference:
        Tirer, Bruna and Giryes (2022), experiment on MNIST.
    """
    images, labels = load_digits((0, 8))
    y = np.where(labels == 0, 1.0, -1.0)
    counter = Counter(progress, len(depths) * len(sizes))
    accuracy: dict[str, dict[str, Any]] = {}
    rows = []
    for size, depth in itertools.product(sizes, depths):
        case = f"N = {size}, L = {depth}"
        nets = networks(depth, alphas, activation)
        accuracy[case] = {name: np.zeros(draws) for name in nets}
        for draw in range(draws):
            order = np.random.default_rng([seed, size, draw]).permutation(len(y))
            x = images[order] - images[order[:size]].mean(0)
            x /= np.linalg.norm(x, axis=1, keepdims=True)
            for name, net in nets.items():
                gram = ntk(net, x)
                weights = np.linalg.solve(gram[:size, :size], y[order[:size]])
                found = np.sign(gram[size:, :size] @ weights)
                accuracy[case][name][draw] = np.mean(found == y[order[size:]])
        rows.append((case, "ours", *(float(v.mean()) for v in accuracy[case].values())))
        if (size, depth) in PUBLISHED and tuple(alphas) == (1.0, 0.1):
            rows.append(("", "published (MNIST)", *PUBLISHED[size, depth]))
        counter.add()
    names = list(networks(1, alphas))
    verdict = judge(
        "Regression with the kernel of a ResNet classifies better, the more so the smaller alpha.",
        f"The mean error rate over {draws} training sets falls, by more than the standard error of "
        "the difference, from each network to the next.",
        {
            f"{case}: {second} against {first}": clearly_below(1 - by[second], 1 - by[first])
            for case, by in accuracy.items()
            for first, second in itertools.pairwise(by)
        },
        "; ".join(
            f"{case}: {', '.join(f'{v.mean():.4f}' for v in by.values())}"
            for case, by in accuracy.items()
        ),
    )
    settings = {
        "depths": list(depths),
        "sizes": list(sizes),
        "alphas": list(alphas),
        "activation": str(activation),
        "draws": draws,
        "seed": seed,
    }
    data = {"accuracy": accuracy, "sizes": list(sizes), "depths": list(depths)}
    table = Table("Accuracy on the other images", ("case", "source", *names), tuple(rows))
    size_text = f"scikit-learn's digits 0 and 8 (paper: MNIST); {draws} random training sets each"
    return Result("digits", settings, data, (table,), (verdict,), size_text)
