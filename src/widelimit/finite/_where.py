"""Which arrays of a parameter tree are trained."""

from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
from jaxtyping import PyTree

Where = Callable[[Any], Any] | str | PyTree[bool]


def trained(params: PyTree, where: Where | None) -> PyTree:
    """Which leaves are differentiated.

    Args:
        params: The tree.
        where: A function that picks a part of it, text that paths contain, a tree of truth values, or None for all.

    Returns:
        A truth value for each leaf.
    """
    if where is None:
        return jax.tree.map(eqx.is_inexact_array, params)
    if isinstance(where, str):
        return _by_path(params, where)
    if not callable(where):
        return _by_flags(params, where)
    try:
        none = jax.tree.map(lambda _: False, params)
        some = lambda part: jax.tree.map(lambda _: True, part)
        picked = eqx.tree_at(where, none, replace_fn=some)
    except Exception as error:
        raise ValueError(
            f"where must pick a part of params, as lambda p: p['dense']; it gave "
            f"{type(error).__name__}: {str(error)[:160]}."
        ) from error
    return jax.tree.map(lambda p, flag: flag and eqx.is_inexact_array(p), params, picked)


def _by_path(params: PyTree, text: str) -> PyTree:
    """Arrays whose path contains the text."""
    names = [jax.tree_util.keystr(path) for path, _ in jax.tree_util.tree_leaves_with_path(params)]
    if not any(text in name for name in names):
        some = ", ".join(names[:6]) + (", ..." if len(names) > 6 else "")
        raise ValueError(f"No path in params contains where={text!r}; there are {some}.")
    inside = lambda path, leaf: text in jax.tree_util.keystr(path) and eqx.is_inexact_array(leaf)
    return jax.tree_util.tree_map_with_path(inside, params)


def _by_flags(params: PyTree, flags: PyTree) -> PyTree:
    """A tree of truth values, one for each leaf."""
    try:
        return jax.tree.map(lambda p, flag: bool(flag) and eqx.is_inexact_array(p), params, flags)
    except (ValueError, TypeError) as error:
        raise ValueError(
            "where is a function that picks a part of params, text that paths contain, or a tree of truth values "
            f"shaped like params; got {str(flags)[:80]}."
        ) from error
