"""Errors that suggest the nearest name."""

import difflib
from collections.abc import Iterable


def unknown(kind: str, name: object, known: Iterable[str]) -> str:
    """The message for a name that is not in the list, with the nearest ones."""
    known = sorted(known)
    lowered = {other.lower(): other for other in known}
    near = difflib.get_close_matches(str(name).lower(), lowered, n=2, cutoff=0.5)
    near = [lowered[other] for other in near]
    hint = f" Did you mean {' or '.join(repr(n) for n in near)}?" if near else ""
    return f"Unknown {kind} {name!r}.{hint} Known: {', '.join(known)}."
