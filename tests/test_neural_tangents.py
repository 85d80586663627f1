"""Values of neural-tangents in float64 (make_neural_tangents.py says how they were made)."""

import json

import numpy as np
import pytest

import widelimit as wl
from conftest import GOLDEN
from spatial_networks import network

CASES = {
    case["name"]: case
    for case in json.loads((GOLDEN / "neural_tangents.json").read_text())["cases"]
}
# All agree to 4e-15; these have each layer, padding, stride and number of axes once.
TESTED = (
    "conv 1-D, same, stride 2",
    "conv 1-D, valid, stride 1",
    "conv 2-D, circular, stride 2",
    "mean behind two convolutions",
    "sum, then a hidden layer",
    "gelu, pixels kept",
    "avg_pool, edges normalised",
    "sum_pool, circular, stride 1",
    "layer_norm over channels",
    "layer_norm over all, pool",
    "dropout, flatten",
    "attention, softmax",
    "attention, square root",
    "attention, positions, in values True",
    "wide residual block of stride 2",
    "conv_local",
    "conv_transpose, valid",
    "concat",
    "product",
    "mask, pool",
    "mask, attention",
)


def hidden(x, masked):
    mask = np.zeros(x.shape[:-1], bool)
    mask[:, -masked:] = True
    return wl.Masked(x, mask)


@pytest.mark.parametrize("name", TESTED)
def test_neural_tangents_in_float64(name):
    case = CASES[name]
    x1, x2 = np.array(case["x1"]), np.array(case["x2"])
    if case["masked"]:
        x1, x2 = hidden(x1, case["masked"]), hidden(x2, case["masked"])
    found = wl.kernels(network(case["network"]), x1, x2)
    for kind in ("nngp", "ntk"):
        theirs = np.array(case[kind])
        assert abs(getattr(found, kind) - theirs).max() <= 1e-13 * abs(theirs).max()
