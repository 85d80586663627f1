"""The picture of the README and of the home page: `python docs/tools/picture.py`, half a minute on two cores.

An infinitely wide network learns seven samples on the circle. Lines and bands are the closed form: the mean over random
initial weights and two standard deviations, at four times of gradient flow. Thin lines are networks of width 512,
trained by gradient descent for as many steps as the time has.
"""

from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

import widelimit as wl

OUT = Path(__file__).parents[1] / "assets" / "home.png"
BLUE, ORANGE, INK, GREY = "#0072B2", "#D55E00", "#1d2733", "#8a94a0"
TIMES = (0.0, 0.04, 0.3, 20.0)


def main():
    """Compute and draw."""
    net = wl.mlp(3, "erf", w_std=1.6, b_std=0.2)
    angle = np.array([-2.6, -1.9, -0.9, 0.1, 0.7, 1.9, 2.7])
    points = lambda t: np.stack([np.cos(t), np.sin(t)], axis=1)
    target = lambda t: np.cos(t) / 2 + np.sin(2 * t) * 0.9
    x, y = points(angle), target(angle)
    grid = np.linspace(-np.pi, np.pi, 301)
    limit = wl.ensemble(net, x, y, points(grid), t=TIMES)

    rate = 0.2 * wl.train(net, x, y).critical_learning_rate
    steps = [round(t / rate) for t in TIMES]
    network = wl.finite(net, width=512)
    options = {"steps": steps[-1], "learning_rate": rate, "record": steps, "probe": points(grid)}
    runs = wl.optimise_many(network, x, y, keys=6, **options)

    plt.rcParams.update({"font.family": "sans-serif", "font.size": 12, "axes.linewidth": 0.8})
    fig, panels = plt.subplots(1, 4, figsize=(13.2, 3.5), sharey=True)
    names = ["before training"] + [f"t = {t:g}" for t in TIMES[1:]]
    for k, (panel, name) in enumerate(zip(panels, names, strict=True)):
        mean, std = limit.mean[k], np.sqrt(limit.variance[k])
        panel.fill_between(grid, mean - 2 * std, mean + 2 * std, color=BLUE, alpha=0.16, lw=0)
        for run in runs:
            (row,) = np.flatnonzero(run.steps == steps[k])
            panel.plot(grid, run.outputs[row], color=ORANGE, lw=0.8, alpha=0.75)
        panel.plot(grid, mean, color=BLUE, lw=2.4)
        panel.plot(angle, y, "o", color=INK, ms=6.5, mec="white", mew=1.2, zorder=5)
        panel.set_title(name, fontsize=13, color=INK, pad=8)
        panel.set(xlim=(-np.pi, np.pi), ylim=(-2.7, 2.7))
        panel.set_xticks([-np.pi / 2, 0, np.pi / 2], ["−π/2", "0", "π/2"], color=GREY)
        panel.tick_params(length=0, colors=GREY)
        panel.spines[["top", "right", "left", "bottom"]].set_visible(False)
        panel.grid(True, color="#e9edf1", lw=0.8)
        panel.set_axisbelow(True)
    handles = [
        plt.Line2D(
            [],
            [],
            color=BLUE,
            lw=2.4,
            label="infinite width, exact: mean and two standard deviations",
        ),
        plt.Line2D([], [], color=ORANGE, lw=1.2, label="six networks of width 512, trained"),
    ]
    fig.legend(
        handles=handles, loc="lower center", ncols=2, frameon=False, fontsize=12, labelcolor=INK
    )
    fig.subplots_adjust(left=0.03, right=0.99, top=0.89, bottom=0.21, wspace=0.07)
    fig.savefig(OUT, dpi=150, facecolor="white")


if __name__ == "__main__":
    main()
