"""Names that a package offers but imports only when they are used."""

import difflib
import sys
from collections.abc import Callable, Mapping
from importlib import import_module
from importlib.util import find_spec


def lazy(
    package: str, later: Mapping[str, str], extras: Mapping[str, str]
) -> tuple[Callable[[str], object], Callable[[], list[str]]]:
    """`__getattr__` and `__dir__` of a package, some of whose names are imported on first use.

    Args:
        package: The package's name.
        later: The subpackages that are imported on first use, each with the names in it (separated
            by spaces) that the package offers as its own.
        extras: The subpackages that cannot do without a module that may not be installed, with that
            module. `dir` does not offer them then, so that `help` works; using one says what to
            install.

    Returns:
        The two functions of PEP 562. `__all__` is what `dir` shows, without underscores.
    """
    module = sys.modules[package]
    homes = {name: home for home, names in later.items() for name in (home, *names.split())}

    def names() -> list[str]:
        absent = {name for name, needed in extras.items() if find_spec(needed) is None}
        return sorted((vars(module).keys() | homes.keys()) - absent)

    def attribute(name: str) -> object:
        if name == "__all__":
            return [name for name in names() if not name.startswith("_")]
        if name not in homes:
            near = difflib.get_close_matches(name, names(), n=2, cutoff=0.6)
            hint = f". Did you mean {' or '.join(near)}?" if near else ""
            raise AttributeError(
                f"module {package!r} has no attribute {name!r}{hint}", name=name, obj=module
            )
        home = import_module(f"{package}.{homes[name]}")
        value = home if name == homes[name] else getattr(home, name)
        setattr(module, name, value)
        return value

    return attribute, names
