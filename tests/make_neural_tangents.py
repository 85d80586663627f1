"""Write golden/neural_tangents.json: kernels by neural-tangents in float64. Run by hand where that is installed.

`python tests/make_neural_tangents.py` needs neural-tangents 0.6.5 and nothing else; test_neural_tangents.py reads the
file. Networks are records of the acceptance file (spatial_networks.py makes layers of them). What the two libraries
mean by different words is translated here: its pools have stride 1 unless told, its dropout rate is what is kept, its
attention takes standard deviations by other names.
"""

import json
from pathlib import Path

import jax
import numpy as np

CONV = {"layer": "conv", "window": [3], "w_std": 1.3, "b_std": 0.2}
CONV2 = {"layer": "conv", "window": [3, 2], "w_std": 1.2, "b_std": 0.1}
RELU, FLATTEN = {"layer": "phi", "activation": "relu"}, {"layer": "flatten"}
DENSE = {"layer": "dense", "w_std": 1.1, "b_std": 0.3}
GAP, GSP = {"layer": "global_avg_pool"}, {"layer": "global_sum_pool"}


def attention(**fields):
    """Attention with numbers of its own."""
    stds = {"q_std": 1.1, "k_std": 0.9, "v_std": 1.2, "o_std": 0.8, "b_std": 0.2}
    return {"layer": "attention", "scaling": "linear", "weights": "softmax", **stds, **fields}


def cases():
    """Name, shape of an input, records, and how many of the last pixels are masked."""
    for padding in ("same", "valid", "circular"):
        for stride in (1, 2):
            conv = {**CONV, "padding": padding, "stride": stride}
            yield f"conv 1-D, {padding}, stride {stride}", (7, 2), [conv, RELU, FLATTEN, DENSE], 0
            deep = [
                {**CONV2, "padding": padding, "stride": [stride, 1]},
                RELU,
                CONV2,
                RELU,
                GAP,
                DENSE,
            ]
            yield f"conv 2-D, {padding}, stride {stride}", (5, 6, 2), deep, 0
    for kind, last in (("flatten", FLATTEN), ("mean", GAP), ("sum", GSP)):
        yield (
            f"{kind} behind two convolutions",
            (5, 4, 2),
            [CONV2, RELU, CONV2, RELU, last, DENSE],
            0,
        )
        yield f"{kind}, then a hidden layer", (6, 2), [CONV, RELU, last, DENSE, RELU, DENSE], 0
    for activation in ("erf", "abs", "gelu"):
        phi = {"layer": "phi", "activation": activation}
        yield f"{activation}, pixels kept", (5, 2), [CONV, phi, CONV], 0
    for kind in ("avg_pool", "sum_pool"):
        for padding, stride in (("valid", 2), ("same", 1), ("same", 2), ("circular", 1)):
            pool = {"layer": kind, "window": [3, 2], "stride": [stride, 1], "padding": padding}
            yield (
                f"{kind}, {padding}, stride {stride}",
                (5, 6, 2),
                [CONV2, RELU, pool, CONV2, RELU, GAP, DENSE],
                0,
            )
    edges = {
        "layer": "avg_pool",
        "window": [3],
        "stride": 2,
        "padding": "same",
        "normalise_edges": True,
    }
    yield "avg_pool, edges normalised", (7, 2), [CONV, RELU, edges, DENSE, RELU, FLATTEN, DENSE], 0
    for over in ("channels", "all"):
        norm = {"layer": "layer_norm", "over": over, "eps": 1e-12}
        yield (
            f"layer_norm over {over}",
            (5, 4, 2),
            [CONV2, norm, RELU, CONV2, norm, RELU, FLATTEN, DENSE],
            0,
        )
        yield f"layer_norm over {over}, pool", (6, 2), [CONV, norm, RELU, GAP, DENSE], 0
    drop = {"layer": "dropout", "keep": 0.7}
    yield "dropout, flatten", (6, 2), [CONV, RELU, drop, CONV, RELU, drop, FLATTEN, DENSE], 0
    yield "dropout, pool", (4, 3, 2), [CONV2, RELU, drop, GAP, DENSE, RELU, DENSE], 0
    for weights in ("softmax", "identity", "relu", "abs"):
        yield (
            f"attention, {weights}",
            (5, 2),
            [CONV, RELU, attention(weights=weights), RELU, GAP, DENSE],
            0,
        )
    yield "attention on images", (3, 4, 2), [CONV2, RELU, attention(), RELU, FLATTEN, DENSE], 0
    root = {"scaling": "sqrt", "weights": "identity"}
    yield "attention, square root", (5, 2), [CONV, attention(**root), GAP, DENSE], 0
    for inside in (False, True):
        sites = {"positions": "sum", "p_std": 0.6, "positions_in_values": inside}
        yield (
            f"attention, positions, in values {inside}",
            (5, 2),
            [CONV, RELU, attention(**sites), GAP, DENSE],
            0,
        )
    body = [RELU, CONV2, RELU, CONV2]
    residual = {"layer": "residual", "alpha": 1.0, "body": body}
    yield "residual, flatten", (4, 4, 2), [CONV2, residual, residual, FLATTEN, DENSE], 0
    yield "residual, pool", (4, 4, 2), [CONV2, residual, RELU, GAP, DENSE], 0
    halved = {
        "layer": "sum",
        "branches": [[RELU, {**CONV2, "stride": 2}, RELU, CONV2], [RELU, {**CONV2, "stride": 2}]],
    }
    yield "wide residual block of stride 2", (5, 4, 2), [CONV2, residual, halved, GAP, DENSE], 0
    local = {**CONV, "layer": "conv_local"}
    yield "conv_local", (6, 2), [local, RELU, CONV, RELU, GAP, DENSE], 0
    spread = {**CONV, "layer": "conv_transpose", "stride": 2}
    yield "conv_transpose, same", (4, 2), [{**spread, "padding": "same"}, RELU, GAP, DENSE], 0
    yield "conv_transpose, valid", (4, 2), [{**spread, "padding": "valid"}, RELU, GAP, DENSE], 0
    pair = {"branches": [[CONV, RELU], [CONV]]}
    yield (
        "concat",
        (5, 2),
        [{"layer": "concat", "widths": [1, 1], **pair}, CONV, RELU, FLATTEN, DENSE],
        0,
    )
    yield "product", (5, 2), [{"layer": "product", **pair}, CONV, RELU, GAP, DENSE], 0
    yield "mask, pool", (6, 2), [CONV, RELU, CONV, RELU, GAP, DENSE], 2
    yield "mask, attention", (6, 2), [CONV, RELU, attention(), RELU, GAP, DENSE], 2
    yield (
        "mask, attention with positions",
        (6, 2),
        [attention(positions="sum", p_std=0.5), RELU, GAP, DENSE],
        1,
    )
    yield "mask on images, flatten", (4, 4, 2), [CONV2, RELU, CONV2, RELU, FLATTEN, DENSE], 1


def layer_of(stax, record, axes):
    """A record as a layer of neural-tangents."""
    f = {key: value for key, value in record.items() if key != "layer"}
    name = record["layer"]
    inner = lambda records: stax.serial(*(layer_of(stax, r, axes) for r in records))
    tuples = lambda v: tuple(v) if isinstance(v, list) else (v,) * axes
    if name == "dense":
        return stax.Dense(1, W_std=f["w_std"], b_std=f["b_std"])
    if name in ("conv", "conv_local", "conv_transpose"):
        kind = {
            "conv": stax.Conv,
            "conv_local": stax.ConvLocal,
            "conv_transpose": stax.ConvTranspose,
        }[name]
        padding = f.get("padding", "same").upper()
        strides = tuples(f.get("stride", 1))
        return kind(1, tuples(f["window"]), strides, padding, W_std=f["w_std"], b_std=f["b_std"])
    if name in ("avg_pool", "sum_pool"):
        more = {"normalize_edges": True} if f.get("normalise_edges") else {}
        kind = stax.AvgPool if name == "avg_pool" else stax.SumPool
        return kind(tuples(f["window"]), tuples(f["stride"]), f["padding"].upper(), **more)
    if name == "phi":
        acts = {"relu": stax.Relu, "erf": stax.Erf, "abs": stax.Abs, "gelu": stax.Gelu}
        return acts[f["activation"]]()
    if name == "layer_norm":
        return stax.LayerNorm(
            -1 if f["over"] == "channels" else tuple(range(1, 2 + axes)), f["eps"]
        )
    if name == "dropout":
        return stax.Dropout(f["keep"])
    if name == "attention":
        return attention_of(stax, f)
    if name == "residual":
        return stax.serial(
            stax.FanOut(2), stax.parallel(stax.Identity(), inner(f["body"])), stax.FanInSum()
        )
    if name in ("sum", "concat", "product"):
        meet = {
            "sum": stax.FanInSum,
            "concat": lambda: stax.FanInConcat(-1),
            "product": stax.FanInProd,
        }
        branches = [inner(branch) for branch in f["branches"]]
        return stax.serial(stax.FanOut(len(branches)), stax.parallel(*branches), meet[name]())
    plain = {
        "flatten": stax.Flatten,
        "global_avg_pool": stax.GlobalAvgPool,
        "global_sum_pool": stax.GlobalSumPool,
    }
    return plain[name]()


def attention_of(stax, f):
    """The same for attention."""
    return stax.GlobalSelfAttention(
        1, 1, 1, 1,
        linear_scaling=f["scaling"] == "linear",
        W_key_std=f["k_std"], W_value_std=f["v_std"], W_query_std=f["q_std"], W_out_std=f["o_std"], b_std=f["b_std"],
        attention_mechanism=f["weights"].upper(),
        pos_emb_type="SUM" if f.get("positions") else "NONE",
        W_pos_emb_std=f.get("p_std", 1.0),
        val_pos_emb=f.get("positions_in_values", False),
    )  # fmt: skip


def main():
    """Compute all cases and write the file."""
    jax.config.update("jax_enable_x64", True)
    import neural_tangents
    from neural_tangents import stax

    written = []
    for number, (name, shape, records, masked) in enumerate(cases()):
        rng = np.random.default_rng(number)
        x1, x2 = (np.round(rng.standard_normal((n, *shape)), 2) for n in (2, 1))
        kernel = stax.serial(*(layer_of(stax, record, len(shape) - 1) for record in records))[2]
        more, y1, y2 = {}, x1.copy(), x2.copy()
        if masked:
            y1[:, -masked:] = y2[:, -masked:] = 1e4
            more = {"mask_constant": 1e4}
        try:
            found = kernel(y1, y2, ("nngp", "ntk"), **more)
        except Exception as error:  # what it refuses
            print(f"{name}: {str(error)[:90]}")
            continue
        case = {
            "name": name,
            "x1": x1.tolist(),
            "x2": x2.tolist(),
            "network": records,
            "masked": masked,
        }
        case |= {kind: np.asarray(getattr(found, kind)).tolist() for kind in ("nngp", "ntk")}
        written.append(case)
    made = {"by": f"neural-tangents {neural_tangents.__version__}, float64", "cases": written}
    path = Path(__file__).parent / "golden" / "neural_tangents.json"
    path.write_text(json.dumps(made, separators=(",", ":")) + "\n")
    print(f"{len(written)} cases, {path.stat().st_size} bytes")


if __name__ == "__main__":
    main()
