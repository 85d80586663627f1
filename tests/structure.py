"""What the source of the library says about its own shape: borders, sizes, public names, types.

`python tests/structure.py` writes the list of public names and prints sizes and shares of `Any`.
"""

import ast
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[1]
SNAPSHOT = Path(__file__).with_name("public_names.txt")
# From the ground up: a folder may import from its own level and from those before it.
ORDER = (
    {"_base"},
    {"activations"},
    {"layers"},
    {"interpret"},
    {"describe"},
    {"infinite", "width", "finite", "linalg"},
    {"regression", "extend"},
    {"dynamics"},
    {"training", "analysis"},
    {"estimators", "plot", "testing", "extend", "explorer", "compat", "torch"},
    {"gpytorch", "gpjax"},
    {"experiments", "bench"},
    {"cli", "__main__"},
)
LEVEL = {folder: level for level, folders in enumerate(ORDER) for folder in folders}
LONGEST_MODULE, LONGEST_FUNCTION = 300, 60
# Modules and functions that may be longer than that; an entry that is no longer needed fails.
LONG: set[str] = set()
# The largest share of annotations that are plain `Any`, where it is limited; infinite comes next.
ANY = {"finite": 0.10, "linalg": 0.10, "regression": 0.10}


class Module(NamedTuple):
    name: str
    is_package: bool
    tree: ast.Module
    lines: int

    @property
    def folder(self) -> str:
        """The part of the library that it belongs to; empty for the top."""
        return (*self.name.split("."), "")[1]


def parsed(name: str, source: str, is_package: bool = False) -> Module:
    return Module(name, is_package, ast.parse(source), source.count("\n"))


def library() -> list[Module]:
    found = []
    for path in sorted((ROOT / "src" / "widelimit").rglob("*.py")):
        parts = path.relative_to(ROOT / "src").with_suffix("").parts
        package = parts[-1] == "__init__"
        name = ".".join(parts[:-1] if package else parts)
        found.append(parsed(name, path.read_text(), package))
    return found


def imports(module: Module) -> Iterator[tuple[str, int]]:
    """The full name of everything that is imported, at the top or inside a function, and where."""
    package = module.name if module.is_package else module.name.rpartition(".")[0]
    for node in ast.walk(module.tree):
        if isinstance(node, ast.Import):
            yield from ((alias.name, node.lineno) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            home = package.rsplit(".", node.level - 1)[0] if node.level else ""
            home = ".".join(filter(None, (home, node.module)))
            yield from ((f"{home}.{alias.name}", node.lineno) for alias in node.names)


def within(modules: list[Module]) -> Iterator[tuple[Module, str, int]]:
    """Imports inside the library: who imports, what, and where."""
    for module in modules:
        for target, line in imports(module):
            if target.split(".")[0] == "widelimit":
                yield module, target, line


def private_imports(modules: list[Module]) -> list[str]:
    """Imports of what begins with an underscore, from outside the folder that holds it."""
    wrong = []
    for module, target, line in within(modules):
        parts = target.split(".")
        hidden = [i for i, p in enumerate(parts) if p.startswith("_") and not p.startswith("__")]
        hidden = [i for i in hidden if parts[i] != "_base"]
        if hidden and not f"{module.name}.".startswith(".".join(parts[: hidden[0]]) + "."):
            wrong.append(f"{module.name}:{line} imports the private {target}")
    return wrong


def upward_imports(modules: list[Module]) -> list[str]:
    """Imports of a folder that stands above, and of the library itself from inside."""
    wrong = []
    for module, target, line in within(modules):
        if not module.folder:
            continue
        folder = target.split(".")[1] if "." in target else ""
        assert module.folder in LEVEL, f"{module.folder} has no place in ORDER"
        if LEVEL.get(folder, len(ORDER)) > LEVEL[module.folder]:
            wrong.append(f"{module.name}:{line} imports upwards: {target}")
    return wrong


def cycles(modules: list[Module]) -> list[str]:
    """Modules that import themselves by way of others."""
    names = {module.name for module in modules}
    edges: dict[str, set[str]] = {name: set() for name in names}
    for module, target, _ in within(modules):
        home = target if target in names else target.rpartition(".")[0]
        edges[module.name] |= {home} & names
    path: list[str] = []
    done: set[str] = set()
    found: list[str] = []

    def visit(name: str) -> None:
        if name in path:
            found.append(" -> ".join([*path[path.index(name) :], name]))
        elif name not in done:
            path.append(name)
            for other in sorted(edges[name]):
                visit(other)
            done.add(path.pop())

    for name in sorted(names):
        visit(name)
    return found


def private_jax(modules: list[Module]) -> list[str]:
    """Uses of the parts of JAX that change without notice."""
    banned = ("jax._src", "jax.core", "jax.interpreters")
    wrong = []
    for module in modules:
        used = list(imports(module))
        for node in ast.walk(module.tree):
            if isinstance(node, ast.Attribute):
                used.append((ast.unparse(node), node.lineno))
        for name, line in used:
            if any(f"{name}.".startswith(f"{part}.") for part in banned):
                wrong.append(f"{module.name}:{line} uses {name}")
    return wrong


def matplotlib_elsewhere(modules: list[Module]) -> list[str]:
    """Imports of Matplotlib outside plot."""
    return [
        f"{module.name}:{line} imports {target}"
        for module in modules
        for target, line in imports(module)
        if target.split(".")[0] == "matplotlib" and module.folder != "plot"
    ]


def sizes(modules: list[Module]) -> dict[str, int]:
    """Lines of the modules, and of the functions below their docstring, that are too long."""
    found = {m.name: m.lines for m in modules if m.lines > LONGEST_MODULE}
    for module in modules:
        for node in ast.walk(module.tree):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                first = node.body[1] if ast.get_docstring(node) and len(node.body) > 1 else node
                length = (node.end_lineno or 0) - first.lineno + 1
                if length > LONGEST_FUNCTION:
                    found[f"{module.name}.{node.name}"] = length
    return found


def too_long(modules: list[Module]) -> list[str]:
    return [f"{name}: {lines} lines" for name, lines in sizes(modules).items() if name not in LONG]


def annotations(tree: ast.AST) -> Iterator[ast.expr]:
    for node in ast.walk(tree):
        if isinstance(node, ast.arg | ast.AnnAssign) and node.annotation is not None:
            yield node.annotation
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.returns is not None:
            yield node.returns


def share_of_any(modules: list[Module]) -> dict[str, tuple[int, int]]:
    """For each folder the annotations that say nothing, and all annotations."""
    counts: dict[str, tuple[int, int]] = {}
    for module in modules:
        found = list(annotations(module.tree))
        empty = sum(ast.unparse(a) in ("Any", "typing.Any") for a in found)
        before = counts.get(module.folder, (0, 0))
        counts[module.folder] = (before[0] + empty, before[1] + len(found))
    return counts


def too_much_any(modules: list[Module]) -> list[str]:
    counts = share_of_any(modules)
    return [
        f"{folder}: {empty} of {total} annotations are Any, at most {ANY[folder]:.0%} may be"
        for folder, (empty, total) in counts.items()
        if folder in ANY and empty > ANY[folder] * total
    ]


def public_names(modules: list[Module]) -> list[str]:
    """`X as X` and definitions without underscore, of each module whose name has none either."""
    found = set()
    for module in modules:
        if "._" in module.name:
            continue
        for node in ast.walk(module.tree):
            if isinstance(node, ast.ImportFrom):
                names = {a.name for a in node.names if a.name == a.asname}
                found |= {f"{module.name}.{name}" for name in names if not name.startswith("_")}
        for node in module.tree.body:
            if isinstance(node, ast.FunctionDef | ast.ClassDef) and not node.name.startswith("_"):
                found.add(f"{module.name}.{node.name}")
    return sorted(found)


def promised_and_loaded(modules: list[Module]) -> tuple[set[str], set[str]]:
    """Lazy names of the library: those that type checkers are told, and those of the table."""
    top = next(module for module in modules if module.name == "widelimit")
    branch = next(node for node in top.tree.body if isinstance(node, ast.If))
    promised = {
        f"{node.module or alias.name}.{alias.name}"
        for node in branch.body
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }
    table = next(node for node in branch.orelse if isinstance(node, ast.Assign))
    later: dict[str, str] = ast.literal_eval(table.value)
    loaded = {f"{home}.{name}" for home, names in later.items() for name in (home, *names.split())}
    return promised, loaded


def lazy_names_apart(modules: list[Module]) -> list[str]:
    """Lazy names that only one of the two lists has, or that importing a subpackage would hide."""
    promised, loaded = promised_and_loaded(modules)
    folders = {module.folder for module in modules}
    hidden = {n for n in loaded if len(set(n.split("."))) == 2 and n.rpartition(".")[2] in folders}
    return sorted((promised ^ loaded) | hidden)


CHECKS = (
    private_imports,
    upward_imports,
    cycles,
    private_jax,
    matplotlib_elsewhere,
    too_long,
    too_much_any,
    lazy_names_apart,
)


if __name__ == "__main__":
    everything = library()
    SNAPSHOT.write_text("\n".join(public_names(everything)) + "\n")
    print(f"{len(public_names(everything))} public names in {SNAPSHOT.name}")
    for name, lines in sorted(sizes(everything).items(), key=lambda item: -item[1]):
        print(f"{lines:5d} lines  {name}")
    for folder, (empty, total) in sorted(share_of_any(everything).items()):
        print(f"{empty:5d} of {total:4d} annotations in {folder or 'the top'} are Any")
