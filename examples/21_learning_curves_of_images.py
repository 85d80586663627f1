"""How many digits must a network see? Four infinite networks, accuracy against the number of training images.

`python 21_learning_curves_of_images.py accuracy.png` computes larger sets, for some minutes, and draws the figure of
the documentation; without a name it takes seconds.
"""

import sys

import numpy as np
from sklearn.datasets import load_digits

import widelimit as wl

figure = sys.argv[1] if sys.argv[1:] and sys.argv[1].endswith(".png") else None
sizes = (10, 20, 40, 80, 160) if figure else (2, 10)
pool, tests, draws = (200, 184, 10) if figure else (10, 6, 4)

images, labels = load_digits(return_X_y=True)
images = images.reshape(-1, 8, 8, 1) / 16
order = np.random.default_rng(0).permutation(len(images))
known, new = order[:pool], order[pool : pool + tests]
shown = images[order[: pool + tests]]

myrtle = wl.Serial(
    wl.myrtle(5)
).layers  # for 32 x 32 pixels; 8 x 8 are gone after three of its five pools
networks = {
    "fully connected": wl.Flatten() >> wl.mlp(depth=4, w_std=2**0.5),
    "convolutions, flatten": wl.cnn(depth=4),
    "convolutions, mean over pixels": wl.cnn(depth=4, readout="pool"),
    "Myrtle-5, its first three pools": wl.Serial(*myrtle[:-4], *myrtle[-2:]),
}


def accuracy(within, across, chosen):
    """Of a ridge regression on one-hot labels, with the chosen part of the training images."""
    onehot = np.eye(10)[labels[known[chosen]]] - 0.1
    scale = np.trace(within) / len(within)
    model = wl.ridge(
        None, within[np.ix_(chosen, chosen)], onehot, 1e-4 * scale, kernel="precomputed"
    )
    guess = np.argmax(model.predict(across[:, chosen]), axis=1)
    return np.mean(guess == labels[new])


curves = {}
for name, network in networks.items():
    matrix = wl.ntk(network, shown)  # once; smaller sets are parts of it
    within, across = matrix[:pool, :pool], matrix[pool:, :pool]
    rng = np.random.default_rng(1)
    found = [
        [accuracy(within, across, rng.permutation(pool)[:n]) for _ in range(draws)] for n in sizes
    ]
    curves[name] = np.array(found)
    assert np.linalg.eigvalsh(matrix)[0] > 0  # all images can be told apart
    print(
        f"{name:35s}", *(f"{n}: {a:.3f}" for n, a in zip(sizes, curves[name].mean(1), strict=True))
    )

if figure:
    from widelimit import plot

    with plot.style():
        fig, panels = plot.figure(width=4.6, height=3.2)
        axes = np.ravel(panels)[0]
        for i, (name, found) in enumerate(curves.items()):
            beside = np.array(sizes) * 1.02 ** (
                i - 1.5
            )  # so that error bars do not hide one another
            spread = 2 * found.std(1) / draws**0.5
            axes.errorbar(
                beside, found.mean(1), spread, marker="o", markersize=3, capsize=2, label=name
            )
        axes.set(xscale="log", xlabel="training images", ylabel="accuracy on new digits")
        axes.set_xticks(sizes, [str(n) for n in sizes])
        axes.minorticks_off()
        axes.legend(loc="lower right")
        fig.savefig(figure)
