"""Checkpoints: arrays and a JSON text in one .npz file, written whole or not at all."""

import io
import json
from pathlib import Path
from typing import Any

import jax
import numpy as np

from widelimit._base.files import reason, why_not_writable, write_file
from widelimit._base.functions import digest
from widelimit.finite import FiniteNetwork
from widelimit.interpret import facts

from ._records import Run

_FORMAT = 2
_START_ANEW = "Use another file name, or delete it to start anew."


def identity(run: Run, params: Any, key: Any) -> dict[str, str]:
    """What a run depends on, part by part: words where they are short, else digests."""
    model, options = run.program.model, run.options
    network: Any = model
    if isinstance(model, FiniteNetwork):
        own = [act for act in facts(model.net).activations if not act.registered]
        network = repr(model.net), model.width, model.parameterisation, model.bias, own
    rate = options.learning_rate
    named = isinstance(options.optimiser, str)
    return {
        "network": _hashed(network),
        "initial parameters": _hashed(jax.tree.leaves(params)),
        "x": _hashed(run.x),
        "y": _hashed(run.y),
        "key": _hashed(key),
        "optimiser": options.optimiser if named else _hashed(options.optimiser),
        "learning_rate": "by default" if rate is None else repr(float(rate)),
        "loss": options.loss if isinstance(options.loss, str) else _hashed(options.loss),
        "batch_size": str(run.program.batch),
        "shuffle": str(options.shuffle),
        "tolerance": "none" if options.tolerance is None else repr(float(options.tolerance)),
        "probe": "none" if run.probe is None else _hashed(run.probe),
        "path": str(options.path),
        "drift": str(options.drift),
        "keep_best": str(options.keep_best),
    }


def _hashed(value: object) -> str:
    return f"sha256:{digest(value)}"


def check_place(path: Path) -> None:
    """Refuse, before any work, a file that could not be written."""
    why = "it is a folder" if path.is_dir() else why_not_writable(path.parent)
    if why:
        raise ValueError(
            f"The checkpoint {path} cannot be written ({why}). Make its folder first, or choose "
            "another place."
        )


def save(path: Path, mark: dict[str, str], trees: dict[str, Any], rows: dict[str, Any]) -> None:
    """Write trees of arrays and the rows recorded so far; a crash leaves the old file intact."""
    arrays: dict[str, Any] = {f"row/{name}": np.asarray(value) for name, value in rows.items()}
    for name, tree in trees.items():
        leaves = jax.tree.leaves(tree)
        arrays |= {f"{name}/{i}": np.asarray(leaf) for i, leaf in enumerate(leaves)}
    text = json.dumps({"format": _FORMAT, "run": mark, "rows": list(rows)})
    file = io.BytesIO()
    np.savez(file, json=np.array(text), **arrays)
    try:
        write_file(path, file.getvalue())
    except OSError as error:
        raise OSError(
            f"The checkpoint {path} could not be written ({reason(error)}); the one before it, if "
            "there is one, is intact. Make room, and call again to continue from there."
        ) from error


def load(
    path: Path, mark: dict[str, str], trees: dict[str, Any], run: Run
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Read what `save` wrote, in the structure of `trees`, for a run that is to continue it."""
    try:
        with np.load(io.BytesIO(path.read_bytes()), allow_pickle=False) as file:
            meta = json.loads(str(file["json"]))
            arrays = {name: file[name] for name in file.files}
        version, stored, names = int(meta["format"]), dict(meta.get("run", {})), meta["rows"]
        rows = {name: arrays[f"row/{name}"] for name in names}
    except Exception as error:  # zip, pickle, NumPy and JSON each have errors of their own
        raise _damaged(path, f"{type(error).__name__}: {error}") from error
    if version != _FORMAT:
        raise ValueError(f"{path} was written by another version of widelimit. {_START_ANEW}")
    differs = [_difference(name, stored.get(name), now) for name, now in mark.items()]
    _refuse(path, differs)
    found = {name: _tree(path, name, tree, arrays) for name, tree in trees.items()}
    done = int(found["state"].step)
    _refuse(path, _other_records(done, rows, run))
    kept = np.isin(rows.get("steps", np.zeros(0, int)), run.record)
    return found, {name: row[kept] for name, row in rows.items()}


def _refuse(path: Path, differs: list[str]) -> None:
    what = "; ".join(filter(None, differs))
    if what:
        raise ValueError(f"{path} belongs to another run. What differs: {what}. {_START_ANEW}")


def _damaged(path: Path, what: str) -> ValueError:
    return ValueError(f"{path} is damaged, or not a checkpoint ({what}). {_START_ANEW}")


def _tree(path: Path, name: str, tree: Any, arrays: dict[str, Any]) -> Any:
    leaves, structure = jax.tree.flatten(tree)
    stored = [arrays.get(f"{name}/{i}") for i in range(len(leaves))]
    fits = (
        s is not None and (s.shape, s.dtype) == (np.shape(leaf), leaf.dtype)
        for s, leaf in zip(stored, leaves, strict=True)
    )
    if not all(fits):
        raise _damaged(path, f"the arrays of {name!r} do not fit")
    return jax.tree.unflatten(structure, stored)


def _difference(name: str, before: str | None, now: str) -> str:
    if before == now:
        return ""
    shown = before is not None and not f"{before}{now}".count("sha256:")
    return f"{name} (then {before}, now {now})" if shown else name


def _other_records(done: int, rows: dict[str, Any], run: Run) -> list[str]:
    """A shorter run, or other steps recorded; the last may be the end of a run that is continued."""
    if done > run.total:
        return [f"steps ({done} are done, {run.total} are asked for)"]
    before = [int(s) for s in rows.get("steps", ()) if s < done]
    now = [int(s) for s in run.record if s < done]
    if before == now:
        return []
    return [f"record (before step {done} then {_shown(before)}, now {_shown(now)})"]


def _shown(steps: list[int]) -> str:
    return ", ".join(map(str, steps[:6])) + (", ..." if len(steps) > 6 else "") or "none"
