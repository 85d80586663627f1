"""The acceptance cases of networks with pixels: descriptions as JSON, made into networks."""

import json
from pathlib import Path

import numpy as np

import widelimit as wl

FILE = Path(__file__).parent / "golden" / "spatial.json"


def read():
    """The named inputs and the cases."""
    found = json.loads(FILE.read_text())
    inputs = {
        name: {key: np.array(x) for key, x in both.items()}
        for name, both in found["inputs"].items()
    }
    return inputs, found["cases"]


def network(layers):
    """The network of a list of layers."""
    return wl.Serial() if not layers else _chain([_layer(dict(entry)) for entry in layers])


def _chain(layers):
    return layers[0] if len(layers) == 1 else layers[0] >> _chain(layers[1:])


def _window(given):
    changed = {name: tuple(given[name]) for name in ("window", "stride") if name in given}
    return {**given, **changed, "padding": given["padding"].lower()}


def _attention(given):
    std = given.pop("p_std", 1.0)
    inside = given.pop("positions_in_values", False)
    if given.pop("positions", "none") == "sum":
        given["positions"] = wl.Positions(std, in_values=inside)
    return wl.Attention(**given)


_BRANCHES = {"sum": wl.Sum, "concat": wl.Concat, "product": wl.Product}
_WINDOWS = {
    "conv": wl.Conv,
    "conv_local": wl.ConvLocal,
    "conv_transpose": wl.ConvTranspose,
    "avg_pool": wl.AvgPool,
    "sum_pool": wl.SumPool,
}
_OTHERS = {
    "dense": wl.Dense,
    "phi": wl.Phi,
    "global_avg_pool": wl.GlobalAvgPool,
    "global_sum_pool": wl.GlobalSumPool,
    "flatten": wl.Flatten,
    "layer_norm": wl.LayerNorm,
    "dropout": wl.Dropout,
    "identity": wl.Identity,
    "scale": wl.Scale,
    "attention": None,
}


def _layer(given):
    kind = given.pop("layer")
    if kind == "residual":
        return wl.Residual(network(given["body"]), alpha=given["alpha"])
    if kind in _BRANCHES:
        branches = [network(branch) for branch in given.pop("branches")]
        widths = {name: tuple(value) for name, value in given.items()}
        return _BRANCHES[kind](*branches, **widths)
    if kind in _WINDOWS:
        return _WINDOWS[kind](**_window(given))
    return _attention(given) if kind == "attention" else _OTHERS[kind](**given)
