"""Smooth activations: the erf case."""

from collections.abc import Sequence

from ._circle import grid, interpolate, jitter_for, kernel_at
from ._result import Progress, Result, Table, judge
from ._setting import angles, describe_samples, networks, target

# Tirer, Bruna and Giryes (2022): L = 5; MLP, alpha = 1, 0.5, 0.1.
PUBLISHED = {6: (1.000, 1.016, 1.000, 1.000), 10: (22.36, 22.36, 22.36, 22.36)}


def erf(
    *,
    depths: Sequence[int] = (5, 15),
    counts: Sequence[int] = (6, 10),
    alphas: Sequence[float] = (1.0, 0.5, 0.1),
    samples: str = "authors",
    seed: int = 0,
    progress: Progress | None = None,
) -> Result:
    """The measure of interpolants of erf networks, which have no kinks.

    Args:
        depths: L.
        counts: The numbers of samples; equispaced ones are made odd.
        alphas: The attenuations.
        samples: "authors", "equispaced" or "random".
        seed: Of random samples.
        progress: Called with (steps done, steps in all).

    Returns:
        The result.

    Reference:
        Tirer, Bruna and Giryes (2022), remark on erf.
    """
    jitter, rows, mus, curves, done = jitter_for(samples), [], {}, {}, 0
    # Antipodes make the kernels of odd networks singular, so equispaced samples are odd in number.
    numbers = [n | 1 for n in counts] if samples == "equispaced" else counts
    sets = [(n, angles(n, samples, seed), samples) for n in numbers]
    if samples != "equispaced":
        sets.append((7, angles(7, "equispaced"), "equispaced"))
    for depth in depths:
        nets = networks(depth, alphas, "erf")
        for count, b, kind in sets:
            near = jitter if kind == samples else 0.0
            fits = {n: interpolate(net, b, target(b), jitter=near) for n, net in nets.items()}
            key = f"L={depth}, {count} samples" + ("" if kind == samples else " (equispaced)")
            mus[key] = {n: fit.mu for n, fit in fits.items()}
            shown = {n: fit.shown for n, fit in fits.items()}
            curves[key] = {"b": b, "y": target(b), "curves": shown}
            rows.append((key, "ours", *mus[key].values()))
            if depth == 5 and kind == samples == "authors" and tuple(alphas) == (1.0, 0.5, 0.1):
                rows.append(("", "published", *PUBLISHED.get(count, ())))
            done += 1
            if progress is not None:
                progress(done, len(depths) * len(sets))
    shapes = {
        f"L={depth}": {
            n: kernel_at(net, grid(513)) / kernel_at(net, 0.0)
            for n, net in networks(depth, alphas, "erf").items()
        }
        for depth in depths
    }
    verdicts = []
    for depth in depths:
        part = {k: v for k, v in mus.items() if k.startswith(f"L={depth},")}
        spread = {k: max(v.values()) / min(v.values()) for k, v in part.items()}
        verdicts.append(
            judge(
                f"For erf, MLP and ResNets interpolate with similar smoothness, L = {depth}.",
                "The largest mu_D2 is at most 5 % above the smallest, on each set of samples.",
                {k: v <= 1.05 for k, v in spread.items()},
                "; ".join(
                    f"{k}: {', '.join(f'{m:.4g}' for m in v.values())}" for k, v in part.items()
                ),
            )
        )
    known = {
        f"{n} samples, {net}": abs(mus[f"L=5, {n} samples"][net] / value - 1)
        for n, values in PUBLISHED.items()
        if samples == "authors" and f"L=5, {n} samples" in mus and tuple(alphas) == (1.0, 0.5, 0.1)
        for net, value in zip(mus[f"L=5, {n} samples"], values, strict=True)
    }
    if known:
        verdicts.append(
            judge(
                "The published values of mu for erf.",
                "Each agrees to 0.1 %.",
                {name: error <= 1e-3 for name, error in known.items()},
                f"largest difference {100 * max(known.values()):.3f} %",
            )
        )
    data = {"angles": grid(513), "grid": grid(512), "shapes": shapes, "curves": curves, "mu": mus}
    settings = {
        "depths": list(depths),
        "counts": list(counts),
        "alphas": list(alphas),
        "samples": samples,
        "seed": seed,
    }
    names = ("MLP", *(f"ResNet {a:g}" for a in alphas))
    table = Table("mu_D2 of erf networks, N = 4096", ("case", "source", *names), tuple(rows))
    size = f"closed form; {describe_samples(samples)}"
    return Result("erf", settings, data, (table,), tuple(verdicts), size)
