"""Checkpoints: arrays and a JSON text in one .npz file, written whole or not at all."""

import hashlib
import io
import json
from pathlib import Path
from typing import Any

import jax
import numpy as np

from widelimit._base.files import write_file


def fingerprint(*parts: Any) -> str:
    """A digest of what a run depends on: arrays by their bytes, the rest by their text."""
    digest = hashlib.sha256()
    for part in parts:
        if isinstance(part, np.ndarray):
            digest.update(
                f"{part.dtype}{part.shape}".encode() + np.ascontiguousarray(part).tobytes()
            )
        else:
            digest.update(repr(part).encode())
        digest.update(b"|")
    return digest.hexdigest()


def save(path: Path, mark: str, trees: dict[str, Any], rows: dict[str, Any]) -> None:
    """Write trees of arrays and the rows recorded so far; a crash leaves the old file intact."""
    arrays: dict[str, Any] = {f"row/{name}": np.asarray(value) for name, value in rows.items()}
    counts = {}
    for name, tree in trees.items():
        leaves = jax.tree.leaves(tree)
        counts[name] = len(leaves)
        arrays |= {f"{name}/{i}": np.asarray(leaf) for i, leaf in enumerate(leaves)}
    text = json.dumps({"format": 1, "fingerprint": mark, "leaves": counts, "rows": list(rows)})
    file = io.BytesIO()
    np.savez(file, json=np.array(text), **arrays)
    write_file(path, file.getvalue())


def load(path: Path, mark: str, trees: dict[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Read what `save` wrote, in the structure of `trees`."""
    try:
        with np.load(path, allow_pickle=False) as file:
            meta = json.loads(str(file["json"]))
            arrays = {name: file[name] for name in file.files}
    except (OSError, ValueError, KeyError) as error:
        raise ValueError(f"{path} is not a checkpoint that can be read: {error}.") from error
    if meta.get("format") != 1 or meta["fingerprint"] != mark:
        raise ValueError(
            f"{path} belongs to another run: network, data, optimiser, key or what is recorded "
            "differ. Use another file name, or delete it to start anew."
        )
    found = {}
    for name, tree in trees.items():
        leaves, structure = jax.tree.flatten(tree)
        if meta["leaves"][name] != len(leaves):
            raise ValueError(f"{path} holds {meta['leaves'][name]} arrays, {len(leaves)} expected.")
        stored = [arrays[f"{name}/{i}"] for i in range(len(leaves))]
        found[name] = jax.tree.unflatten(structure, stored)
    return found, {name: arrays[f"row/{name}"] for name in meta["rows"]}
