"""How fast empirical kernels approach their limits, and one quantity that does not converge."""

from collections.abc import Sequence
from typing import Any

import jax
import numpy as np
from jaxtyping import Array, Float

from widelimit.analysis import smoothness
from widelimit.finite import FiniteNetwork, finite, width_convergence
from widelimit.plot import figure, predicted

from .._experiment import experiment
from .._result import Found, Result, Table, Verdict, judge
from .._setting import Setting, angles, networks
from ._panels import inside, look, power, words

_FIELDS = ("error", "stderr", "rate", "rate_stderr", "predicted")


def _draw(result: Result) -> Any:
    """Distances to the limit against the width."""
    data = result.data
    fig, ((panel,),) = figure(1, 1, width=4.0, height=2.9)
    for i, (name, c) in enumerate(data["curves"].items()):
        measured, colour = (c["error"], c["stderr"], c["rate"]), look(name, i)["color"]
        power(panel, data["widths"], measured, words(name), colour)
        if c.get("predicted") is not None:
            predicted(panel, data["widths"], c["predicted"], colour, "" if i else "first order")
    panel.set_ylabel("$\\|\\hat\\Theta-\\Theta\\|_F$")
    inside(panel)
    return fig


@experiment(
    title="The empirical kernels approach their limits",
    source="Jacot, Gabriel, Hongler: Theorem 1; Tirer, Bruna, Giryes: Theorems 1 and 2",
    seconds=(20, 120, 400),
    full={"widths": (128, 256, 512, 1024, 2048), "draws": 20},
    draws=_draw,
    takes={"depth": 5, "alpha": 0.1, "activation": "relu"},
    ignores=("samples",),
    order=17,
    caption=(
        "The distance of a network's kernel from the limit against the width, both axes "
        "logarithmic: a power of $n$ is a straight line, and theory expects the slope $-1/2$ "
        "(fitted slopes in the legend)."
    ),
)
def convergence(
    s: Setting, *, widths: Sequence[int] = (64, 128, 256, 512), draws: int = 12, products: int = 100
) -> Found:
    r"""$\|\hat\Theta_n-\Theta\|_F$ against the width, and the spread of $f(x)f(y)$ over networks.

    Args:
        s: The setting.
        widths: n.
        draws: Networks for each width.
        products: Networks for the spread of products.
    """
    x = smoothness.circle_points(angles(5, "equispaced")).astype(np.float32)
    nets = networks(s.depth, (s.alpha,), s.activation)
    counter = s.counter(len(nets) * len(widths) * draws + 2 * draws)
    count = lambda done, total: counter.add()
    curves, rows = {}, []
    for name, net in nets.items():
        found = width_convergence(net, x, widths, samples=draws, key=s.seed, progress=count)
        curves[name] = {field: getattr(found, field) for field in _FIELDS}
        expected = [np.nan] * len(widths) if found.predicted is None else found.predicted
        columns = widths, found.error, found.stderr, expected
        rows += [(name, *row) for row in zip(*columns, strict=True)]
    product, readout = {}, {}
    for n in (min(widths), max(widths)):
        product[n], readout[n] = _spreads(finite(nets["MLP"], n), x[:2], products, s.seed)
        counter.add(draws)
    tables = (
        Table(
            "Distance to the limit",
            ("network", "width", "error", "std. error", "predicted to first order"),
            tuple(rows),
        ),
        Table(
            f"Standard deviation over {products} MLPs of width n",
            ("quantity", *(f"n = {n}" for n in product)),
            (("f(x) f(y)", *product.values()), ("last-layer kernel", *readout.values())),
        ),
    )
    verdicts = (
        judge(
            "The empirical tangent kernel converges to its limit.",
            "The fitted exponent of the width agrees with -1/2 within 0.1 plus 2 standard errors.",
            {n: abs(c["rate"] + 0.5) <= 0.1 + 2 * c["rate_stderr"] for n, c in curves.items()},
            ", ".join(f"{n}: {c['rate']:.2f} ± {c['rate_stderr']:.2f}" for n, c in curves.items()),
        ),
        *_constants(curves),
        _falls("product f(x) f(y)", "product", product, ": f converges in distribution only"),
        _falls("last-layer kernel", "last layer", readout, ""),
    )
    data = {"widths": list(widths), "curves": curves}
    return Found(data, tables, verdicts, f"{draws} networks for each width; L = {s.depth}")


def _constants(curves: dict[str, dict[str, Any]]) -> tuple[Verdict, ...]:
    """Whether the constant of n^(-1/2) is the predicted one, at the largest width."""
    known = {name: c for name, c in curves.items() if c["predicted"] is not None}
    if not known:
        return ()
    last = lambda c, field: float(c[field][-1])
    ratio = {name: last(c, "error") / last(c, "predicted") for name, c in known.items()}
    allowed = {name: 0.1 + 3 * last(c, "stderr") / last(c, "error") for name, c in known.items()}
    verdict = judge(
        "The constant of n^(-1/2) is the one that the first order in 1/n gives.",
        "At the largest width, measured and predicted distance agree within 10 % plus 3 standard errors.",
        {name: abs(ratio[name] - 1) <= allowed[name] for name in known},
        ", ".join(f"{name}: {value:.2f} of the prediction" for name, value in ratio.items()),
    )
    return (verdict,)


def _spreads(
    network: FiniteNetwork, x: Float[np.ndarray, "2 d"], count: int, seed: int
) -> tuple[float, float]:
    """Standard deviations over networks of the product of outputs and of the last-layer kernel."""
    points = jax.numpy.asarray(x)

    def one(key: Array) -> tuple[Array, Array]:
        params = network.init(key, 2)
        f = network.apply(params, points)[:, 0]
        return f[0] * f[1], network.nngp(params, points)[0, 1]

    keys = jax.random.split(jax.random.key(seed), count)
    both = jax.jit(lambda keys: jax.lax.map(one, keys))(keys)
    product, kernel = (float(np.asarray(v, np.float64).std(ddof=1)) for v in both)
    return product, kernel


def _falls(what: str, name: str, spread: dict[int, float], remark: str) -> Verdict:
    (narrow, first), (wide, last) = spread.items()
    expected = (wide / narrow) ** 0.5
    return judge(
        f"The {what} of one network converges to the NNGP kernel.",
        "Its spread over networks falls by more than half of what n^(-1/2) promises.",
        {name: first / last > 1 + (expected - 1) / 2},
        f"spread {first:.3g} at n = {narrow}, {last:.3g} at n = {wide}{remark}",
    )
