"""How fast empirical kernels approach their limits, and one quantity that does not converge."""

from collections.abc import Sequence
from typing import Any

import jax
import numpy as np

from widelimit.analysis import smoothness
from widelimit.finite import finite, width_convergence

from ._result import Progress, Result, Table, judge
from ._setting import angles, networks
from ._training import Counter


def convergence(
    *,
    depth: int = 5,
    alpha: float = 0.1,
    activation: Any = "relu",
    widths: Sequence[int] = (64, 128, 256, 512),
    draws: int = 12,
    products: int = 100,
    samples: str = "authors",
    seed: int = 0,
    progress: Progress | None = None,
) -> Result:
    r"""$\|\hat\Theta_n-\Theta\|_F$ against the width, and the spread of $f(x)f(y)$ over networks.

    Args:
        depth: L.
        alpha: Of the ResNet.
        activation: Of both networks.
        widths: n.
        draws: Networks for each width.
        products: Networks for the spread of products.
        samples: Without effect; every experiment takes it.
        seed: Of the networks.
        progress: Called with (steps done, steps in all).

    Returns:
        The result.

    Reference:
        Jacot, Gabriel and Hongler (2018), Theorem 1; Tirer, Bruna and Giryes (2022), Theorem 1.
    """
    x = smoothness.circle_points(angles(5, "equispaced")).astype(np.float32)
    nets = networks(depth, (alpha,), activation)
    counter = Counter(progress, len(nets) * len(widths) * draws + 2 * draws)
    curves, rows, rates = {}, [], {}
    for name, net in nets.items():
        count = lambda done, total: counter.add()
        found = width_convergence(net, x, widths, samples=draws, key=seed, progress=count)
        curves[name] = {
            "error": found.error,
            "stderr": found.stderr,
            "rate": found.rate,
            "rate_stderr": found.rate_stderr,
        }
        rates[name] = found
        rows += [(name, n, e, s) for n, e, s in zip(widths, found.error, found.stderr, strict=True)]
    ends = (min(widths), max(widths))
    product, readout = {}, {}
    for n in ends:
        product[n], readout[n] = _spreads(finite(nets["MLP"], n), x[:2], products, seed)
        counter.add(draws)
    table2 = Table(
        f"Standard deviation over {products} MLPs of width n",
        ("quantity", *(f"n = {n}" for n in ends)),
        (("f(x) f(y)", *product.values()), ("last-layer kernel", *readout.values())),
    )
    verdicts = (
        judge(
            "The empirical tangent kernel converges to its limit.",
            "The fitted exponent of the width agrees with -1/2 within 0.1 plus 2 standard errors.",
            {n: abs(f.rate + 0.5) <= 0.1 + 2 * f.rate_stderr for n, f in rates.items()},
            ", ".join(f"{n}: {f.rate:.2f} ± {f.rate_stderr:.2f}" for n, f in rates.items()),
        ),
        judge(
            "The product f(x) f(y) of one network converges to the NNGP kernel.",
            "Its spread over networks falls by more than half of what n^(-1/2) promises.",
            {"product": _falls(product, ends)},
            f"spread {product[ends[0]]:.3g} at n = {ends[0]}, {product[ends[1]]:.3g} at "
            f"n = {ends[1]}: f converges in distribution only",
        ),
        judge(
            "The last-layer kernel of one network converges to the NNGP kernel.",
            "Its spread over networks falls by more than half of what n^(-1/2) promises.",
            {"last layer": _falls(readout, ends)},
            f"spread {readout[ends[0]]:.3g} at n = {ends[0]}, {readout[ends[1]]:.3g} at "
            f"n = {ends[1]}",
        ),
    )
    settings = {
        "depth": depth,
        "alpha": alpha,
        "activation": str(activation),
        "widths": list(widths),
        "draws": draws,
        "products": products,
        "seed": seed,
    }
    data = {"widths": list(widths), "curves": curves}
    table = Table("Distance to the limit", ("network", "width", "error", "std. error"), tuple(rows))
    size = f"{draws} networks for each width; L = {depth}"
    return Result("convergence", settings, data, (table, table2), verdicts, size)


def _spreads(network: Any, x: np.ndarray, count: int, seed: int) -> tuple[float, float]:
    keys = jax.random.split(jax.random.key(seed), count)

    def one(key: Any) -> Any:
        params = network.init(key, 2)
        f = network.apply(params, jax.numpy.asarray(x))[:, 0]
        return f[0] * f[1], network.nngp(params, jax.numpy.asarray(x))[0, 1]

    both = jax.jit(lambda keys: jax.lax.map(one, keys))(keys)
    product, kernel = (np.asarray(v, np.float64) for v in both)
    return float(product.std(ddof=1)), float(kernel.std(ddof=1))


def _falls(values: dict[int, float], ends: tuple[int, int]) -> bool:
    expected = (ends[1] / ends[0]) ** 0.5
    return values[ends[0]] / values[ends[1]] > 1 + (expected - 1) / 2
