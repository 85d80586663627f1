"""The networks of the acceptance file: from its records to layers."""

import widelimit as wl

PLAIN = {
    "dense": wl.Dense,
    "conv": wl.Conv,
    "conv_local": wl.ConvLocal,
    "conv_transpose": wl.ConvTranspose,
    "phi": wl.Phi,
    "avg_pool": wl.AvgPool,
    "sum_pool": wl.SumPool,
    "global_avg_pool": wl.GlobalAvgPool,
    "global_sum_pool": wl.GlobalSumPool,
    "flatten": wl.Flatten,
    "layer_norm": wl.LayerNorm,
    "dropout": wl.Dropout,
    "identity": wl.Identity,
    "scale": wl.Scale,
}


def network(records):
    """A list of records as a network."""
    return wl.Serial(*map(_layer, records))


def _layer(record):
    fields = {key: tuple(v) if isinstance(v, list) else v for key, v in record.items()}
    name = fields.pop("layer")
    if name == "residual":
        return wl.Residual(network(record["body"]), alpha=fields["alpha"])
    if name in ("sum", "concat", "product"):
        branches = [network(branch) for branch in fields.pop("branches")]
        return {"sum": wl.Sum, "concat": wl.Concat, "product": wl.Product}[name](
            *branches, **fields
        )
    if name == "attention":
        kind, std = fields.pop("positions", None), fields.pop("p_std", 1.0)
        inside = fields.pop("positions_in_values", False)
        positions = wl.Positions(std, in_values=inside) if kind == "sum" else None
        return wl.Attention(positions=positions, **fields)
    return PLAIN[name](**fields)
