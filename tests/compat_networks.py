"""Networks written for `neural_tangents.stax`, and what that library says of them.

`python tests/compat_networks.py` writes golden/compat.json. Run it where neural-tangents 0.6.5 is installed (with
JAX 0.5); nothing of widelimit is imported. The tests run the same functions with `widelimit.compat`.
"""

import json
import sys
from pathlib import Path

import numpy as np

STORE = Path(__file__).parent / "golden" / "compat.json"


def dense(*middle):
    """An activation, or several layers, between biased Dense layers."""
    return lambda stax: stax.serial(
        stax.Dense(64, 1.3, 0.4), *(layer(stax) for layer in middle), stax.Dense(2, 1.1, 0.2)
    )


def conv(*middle, out=2):
    """The same between a convolution and a Dense layer."""
    return lambda stax: stax.serial(
        stax.Conv(8, (3, 3), padding="SAME", W_std=1.4, b_std=0.3),
        stax.Relu(),
        *(layer(stax) for layer in middle),
        stax.Dense(out, 1.2, 0.1),
    )


def five_minutes(stax):
    return stax.serial(stax.Dense(512), stax.Relu(), stax.Dense(512), stax.Relu(), stax.Dense(1))


def cook_book(stax):
    return stax.serial(
        stax.Dense(32, W_std=1.5, b_std=0.05),
        stax.Erf(),
        stax.Dense(32, W_std=1.5, b_std=0.05),
        stax.Erf(),
        stax.Dense(1, W_std=1.5, b_std=0.05),
    )


def residual(stax):
    block = stax.serial(
        stax.FanOut(2),
        stax.parallel(
            stax.serial(stax.Erf(), stax.Dense(32, 1.1, 0.1), stax.Erf(), stax.Dense(32, 1.1, 0.1)),
            stax.Identity(),
        ),
        stax.FanInSum(),
    )
    return stax.serial(stax.Dense(32, 1.0, 0.1), block, block, stax.Erf(), stax.Dense(1, 1.5, 0))


def myrtle(stax):
    layer = lambda: (
        stax.Conv(4, (3, 3), W_std=np.sqrt(2.0), b_std=0.1, padding="SAME"),
        stax.Relu(),
    )
    pool = lambda: stax.AvgPool((2, 2), strides=(2, 2))
    return stax.serial(
        *layer(), pool(), *layer(), *layer(), pool(), stax.GlobalAvgPool(), stax.Dense(2)
    )


def wide_resnet(stax):
    def block(channels, strides=(1, 1), mismatch=False):
        main = stax.serial(
            stax.Relu(),
            stax.Conv(channels, (3, 3), strides, padding="SAME"),
            stax.Relu(),
            stax.Conv(channels, (3, 3), padding="SAME"),
        )
        short = (
            stax.Conv(channels, (3, 3), strides, padding="SAME") if mismatch else stax.Identity()
        )
        return stax.serial(stax.FanOut(2), stax.parallel(main, short), stax.FanInSum())

    def group(n, channels, strides=(1, 1)):
        blocks = [block(channels, (1, 1)) for _ in range(n - 1)]
        return stax.serial(block(channels, strides, mismatch=True), *blocks)

    return stax.serial(
        stax.Conv(4, (3, 3), padding="SAME"),
        group(2, 4),
        group(1, 8, (2, 2)),
        stax.AvgPool((4, 4)),
        stax.Flatten(),
        stax.Dense(10, 1.0, 0.0),
    )


def concat(stax):
    parts = stax.Dense(16, 1.3), stax.serial(stax.Dense(48, 1.1, 0.2), stax.Relu())
    return stax.serial(
        stax.FanOut(2), stax.parallel(*parts), stax.FanInConcat(), stax.Dense(1, 1.2)
    )


def product(stax):
    parts = stax.Dense(16, 1.3), stax.serial(stax.Dense(16, 1.1, 0.2), stax.Relu())
    return stax.serial(stax.FanOut(2), stax.parallel(*parts), stax.FanInProd(), stax.Dense(1, 1.2))


def attention(stax):
    return stax.serial(
        stax.Conv(8, (3,), padding="SAME", W_std=1.3, b_std=0.2),
        stax.GlobalSelfAttention(
            8, 4, 4, 2, W_key_std=1.1, W_value_std=1.2, W_query_std=0.9, W_out_std=1.3, b_std=0.1
        ),
        stax.Relu(),
        stax.GlobalAvgPool(),
        stax.Dense(1),
    )


def graphs(stax):
    return stax.serial(
        stax.Dense(8, 1.2, 0.1), stax.Aggregate(), stax.Relu(), stax.Aggregate(),
        stax.GlobalSumPool(), stax.Dense(1),
    )  # fmt: skip


def sequences(stax):
    return stax.serial(
        stax.Conv(8, (3,), padding="SAME", b_std=0.2), stax.Relu(), stax.GlobalAvgPool(), stax.Dense(1)
    )  # fmt: skip


POINTS = {
    "five minutes": five_minutes,
    "cook-book": cook_book,
    "residual": residual,
    "concat": concat,
    "product": product,
    "Abs": dense(lambda s: s.Abs()),
    "ABRelu": dense(lambda s: s.ABRelu(-0.4, 1.7)),
    "LeakyRelu": dense(lambda s: s.LeakyRelu(0.3)),
    "Erf": dense(lambda s: s.Erf(1.2, 0.7, 0.3)),
    "Sigmoid_like": dense(lambda s: s.Sigmoid_like()),
    "Gelu": dense(lambda s: s.Gelu()),
    "Sin": dense(lambda s: s.Sin(1.1, 0.8, 0.3)),
    "Cos": dense(lambda s: s.Cos(1.1, 0.8, 0.3)),
    "Rbf": dense(lambda s: s.Rbf(0.7)),
    "Exp": dense(lambda s: s.Exp(0.9, 0.4)),
    "Gaussian": dense(lambda s: s.Gaussian(1.3, -0.6)),
    "Gabor": dense(lambda s: s.Gabor()),
    "Sign": dense(lambda s: s.Sign()),
    "Monomial": dense(lambda s: s.Monomial(3)),
    "RectifiedMonomial": dense(lambda s: s.RectifiedMonomial(2)),
    "Polynomial": dense(lambda s: s.Polynomial([0.3, 0.7, 0.2])),
    "Hermite": dense(lambda s: s.LayerNorm(), lambda s: s.Hermite(3)),
    "LayerNorm": dense(lambda s: s.LayerNorm(), lambda s: s.Relu()),
    "Dropout": dense(lambda s: s.Relu(), lambda s: s.Dropout(0.7)),
    "Elementwise": dense(lambda s: s.Elementwise(_erf, _erf_moment)),
    "repeat": dense(lambda s: s.repeat(s.serial(s.Relu(), s.Dense(64, 1.4, 0.1)), 3)),
}
IMAGES = {
    "myrtle": myrtle,
    "wide resnet": wide_resnet,
    "Flatten": conv(lambda s: s.Flatten()),
    "strides": conv(
        lambda s: s.Conv(4, (2, 3), (2, 1), "VALID", 1.1), lambda s: s.Erf(), lambda s: s.Flatten()
    ),
    "circular": conv(
        lambda s: s.Conv(4, (3, 3), padding="CIRCULAR"), lambda s: s.Relu(), lambda s: s.GlobalAvgPool()
    ),
    "AvgPool": conv(lambda s: s.AvgPool((3, 2), (2, 1), "SAME", True), lambda s: s.Flatten()),
    "SumPool": conv(lambda s: s.SumPool((2, 2)), lambda s: s.Flatten()),
    "GlobalSumPool": conv(lambda s: s.GlobalSumPool()),
    "ConvLocal": conv(
        lambda s: s.ConvLocal(4, (3, 3), padding="SAME", b_std=0.2), lambda s: s.Relu(), lambda s: s.Flatten()
    ),
    "ImageResize": conv(lambda s: s.ImageResize((-1, 4, 4, -1), "linear"), lambda s: s.Flatten()),
    "LayerNorm of pixels": conv(
        lambda s: s.Conv(4, (3, 3)), lambda s: s.LayerNorm((1, 2, 3)), lambda s: s.Relu(), lambda s: s.Flatten()
    ),
    "no read-out": lambda s: s.serial(
        s.Conv(4, (2, 2), padding="SAME"), s.Relu(), s.Conv(4, (2, 2), padding="SAME"), s.Relu()
    ),
}  # fmt: skip
WITHOUT_NTK = {"Sign"}


def _erf(x):
    if isinstance(x, float):
        raise TypeError(x)
    from jax.scipy.special import erf

    return erf(x)


def _erf_moment(cov12, var1, var2):
    import jax.numpy as jnp

    prod = (1 + 2 * var1) * (1 + 2 * var2)
    return jnp.arcsin(2 * cov12 / jnp.sqrt(prod)) * 2 / np.pi


def inputs():
    rng = np.random.default_rng(5)
    return {
        "points": (rng.standard_normal((3, 4)), rng.standard_normal((2, 4))),
        "images": (rng.standard_normal((2, 8, 8, 3)), rng.standard_normal((1, 8, 8, 3))),
        "small": (rng.standard_normal((2, 3, 2, 2)), rng.standard_normal((1, 3, 2, 2))),
        "sequences": (rng.standard_normal((2, 5, 3)), rng.standard_normal((2, 5, 3))),
        "graphs": ((rng.random((2, 5, 5)) < 0.5) * 1.0, (rng.random((2, 5, 5)) < 0.5) * 1.0),
        "targets": (rng.standard_normal((3, 2)), rng.standard_normal((2, 2))),
    }


# What the everyday tests run; all of them are run by `make test-bridges`.
EVERYDAY = {
    *("five minutes", "cook-book", "product", "ABRelu", "Gaussian", "LayerNorm"),
    *("Dropout", "repeat", "AvgPool", "ImageResize"),
}


def kernels(stax, everyday=False):
    """Both kernels of points and of images, by name."""
    data, found = inputs(), {}
    for networks, kind in ((POINTS, "points"), (IMAGES, "images")):
        for name, build in networks.items():
            if everyday and name not in EVERYDAY:
                continue
            x = np.concatenate(data["small" if name == "no read-out" else kind])
            kernel_fn = build(stax)[2]
            if name in WITHOUT_NTK:
                found[f"{name}, nngp"] = kernel_fn(x, None, "nngp")
                continue
            both = kernel_fn(x, None, ("nngp", "ntk"))
            found[f"{name}, nngp"], found[f"{name}, ntk"] = both
    x1, x2 = data["sequences"]
    if not everyday:
        found["attention, ntk"] = attention(stax)[2](x1, x2, "ntk")
        found["graphs, ntk"] = graphs(stax)[2](x1, x2, "ntk", pattern=data["graphs"])
    x1[1, 3:], x2[0, 4:] = 100.0, 100.0
    found["masks, ntk"] = sequences(stax)[2](x1, x2, "ntk", mask_constant=100.0)
    return found


def predictions(stax, predict):
    """Means and covariances of everything in `predict`, by name."""
    data, found = inputs(), {}
    (x, x_test), (y, _) = data["points"], data["targets"]
    kernel_fn = cook_book(stax)[2]
    k, cross, square = kernel_fn(x, None, "ntk"), kernel_fn(x_test, x, "ntk"), kernel_fn(x_test)
    for reg in (0.0, 0.1):
        ensemble = predict.gradient_descent_mse_ensemble(kernel_fn, x, y, 0.5, reg)
        mse = predict.gradient_descent_mse(k, y, 0.7, reg)
        for t in (None, 0.3, np.array([1.0, 50.0])):
            for points in (None, x_test):
                whole = ensemble(t=t, x_test=points, compute_cov=True)
                mean = ensemble(t=t, x_test=points, get="ntk")
                label = f"{reg}, {t}, {points is None}"
                for name in ("nngp", "ntk"):
                    pair = getattr(whole, name)
                    found[f"ensemble {name}, {label}"] = pair.mean
                    found[f"ensemble {name}, {label}, cov"] = pair.covariance
                found[f"mean {label}"] = mean
            both = mse(t, y * 0.3, 0.1 * np.ones((2, 2)), cross)
            found[f"mse {reg}, {t}, train"], found[f"mse {reg}, {t}, test"] = both
            found[f"mse {reg}, {t}, none"] = mse(t, None, 0.0, cross)
    gp = predict.gp_inference(kernel_fn(x), y, 0.05, True)
    kinds = ("nngp", "ntk", "ntkgp")
    for name, pair in zip(kinds, gp(kinds, kernel_fn(x_test, x), square), strict=True):
        found[f"gp {name}"], found[f"gp {name}, cov"] = pair.mean, pair.covariance
    blocks = np.einsum("ij,kl->ijkl", np.asarray(k), np.array([[2.0, 0.5], [0.5, 1.0]]))
    found["blocks"] = predict.gradient_descent_mse(blocks, y, trace_axes=())(2.0)
    return found


def by_solver(stax, predict):
    """Predictions that neural-tangents computes with an ODE solver of tolerance 1.4e-8."""
    data, found = inputs(), {}
    (x, x_test), (y, _) = data["points"], data["targets"]
    kernel_fn = cook_book(stax)[2]
    k, cross = kernel_fn(x, None, "ntk"), kernel_fn(x_test, x, "ntk")
    loss = lambda f, y: ((f - y) ** 4).mean()
    for momentum in (None, 0.9):
        flow = predict.gradient_descent(loss, k, y, 0.3, momentum)
        both = flow(np.array([1.0, 4.0]), 0.1 * y, 0.2 * np.ones((2, 2)), cross)
        found[f"{momentum}, train"], found[f"{momentum}, test"] = both
    return found


def main():
    import jax

    jax.config.update("jax_enable_x64", True)
    import neural_tangents
    from neural_tangents import predict, stax

    plain = lambda found: {name: np.asarray(value).tolist() for name, value in found.items()}
    record = {
        "about": "neural-tangents 0.6.5 in float64; made by tests/compat_networks.py",
        "kernels": plain(kernels(stax)),
        "predictions": plain(predictions(stax, predict)),
        "by solver": plain(by_solver(stax, predict)),
        "names": {
            "nt": [n for n in dir(neural_tangents) if not n.startswith("_")],
            "stax": [n for n in dir(stax) if not n.startswith("_")],
            "predict": [n for n in dir(predict) if not n.startswith("_")],
        },
    }
    STORE.write_text(json.dumps(record))
    sys.stdout.write(f"{STORE}: {STORE.stat().st_size} bytes\n")


if __name__ == "__main__":
    main()
