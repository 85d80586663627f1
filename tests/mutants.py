"""Small faults put into the numbers, one at a time: do the tests notice?

`python tests/mutants.py COUNT SEED` copies the tree to a temporary folder, changes one operator, comparison or
number of `infinite/`, `activations/`, `width/` or `_base/numerics.py`, runs the tests that concern the file, and prints
what survived. `python tests/mutants.py COUNT SEED PART ...` changes only files whose path contains a part.
"""

import ast
import copy
import os
import random
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).parents[1]
PLACES = ("infinite", "activations", "width", "_base/numerics.py")
TESTS = ["numerics", "golden", "extremes", "activations", "kernels"]
# What these files do is tested elsewhere; names begin so.
ELSEWHERE = {
    ("_table",): ["table"],
    ("_fourth", "_orthants", "_charts"): ["width_oracle", "width"],
    ("_operator", "_whole", "_tile"): ["operator"],
    ("_kernel.", "_kernels", "_patience"): ["prepare", "kernels"],
    (
        *(
            "_attend",
            "_block",
            "_choose",
            "_cost",
            "_demand",
            "_displacements",
            "_edges",
            "_ends",
            "_fast",
            "_groups",
            "_precise",
            "_steps",
        ),
        *("_images", "_linear_map", "_masks", "_meet", "_slices", "_spatial", "_stages"),
    ): ["spatial"],
    ("_trace",): ["trace", "signal"],
}
SWAPS = {
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.Div,
    ast.Div: ast.Mult,
    ast.Lt: ast.GtE,
    ast.Gt: ast.LtE,
    ast.LtE: ast.Gt,
    ast.GtE: ast.Lt,
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.And: ast.Or,
    ast.Or: ast.And,
}


def spots(tree: ast.Module) -> list[ast.AST]:
    """Nodes that can be changed; annotations are none of them."""
    hints = {id(n) for node in ast.walk(tree) for n in _hints(node)}
    return [n for n in ast.walk(tree) if id(n) not in hints and _changed(n) is not None]


def _hints(node: ast.AST) -> list[ast.AST]:
    found = [getattr(node, name, None) for name in ("annotation", "returns")]
    return [n for hint in found if isinstance(hint, ast.AST) for n in ast.walk(hint)]


def _changed(node: ast.AST) -> ast.AST | None:
    other = copy.deepcopy(node)
    if isinstance(other, ast.BinOp | ast.BoolOp) and type(other.op) in SWAPS:
        other.op = SWAPS[type(other.op)]()
    elif isinstance(other, ast.Compare) and type(other.ops[0]) in SWAPS:
        other.ops[0] = SWAPS[type(other.ops[0])]()
    elif isinstance(other, ast.Constant) and isinstance(other.value, float | int):
        if isinstance(other.value, bool):
            return None
        other.value = other.value + 1 if other.value in (0, 1) else 2 * other.value
    elif isinstance(other, ast.UnaryOp) and isinstance(other.op, ast.USub):
        other.op = ast.UAdd()
    else:
        return None
    return other


def mutate(source: str, choose: random.Random) -> tuple[str, str] | None:
    """The source with one change, and the change in words."""
    tree = ast.parse(source)
    found = spots(tree)
    if not found:
        return None
    chosen = choose.choice(found)
    other = _changed(chosen)
    assert other is not None
    words = f"{getattr(chosen, 'lineno', 0)}: {ast.unparse(chosen)} -> {ast.unparse(other)}"

    class Replace(ast.NodeTransformer):
        def visit(self, node: ast.AST) -> ast.AST:
            return other if node is chosen else self.generic_visit(node)

    return ast.unparse(ast.fix_missing_locations(Replace().visit(tree))), words


def tests_of(path: Path) -> list[str]:
    """The tests that should notice a fault in a file."""
    if path.parent.name == "width":
        return ["tests/test_width_oracle.py", "tests/test_width.py"]
    own = (tests for names, tests in ELSEWHERE.items() if path.name.startswith(names))
    files = [f"tests/test_{name}.py" for name in next(own, TESTS)]
    return [name for name in files if (ROOT / name).exists()]


def survives(folder: Path, tests: list[str]) -> bool:
    """Whether the tests pass in the copy."""
    run = [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", *tests]
    env = {**os.environ, "PYTHONPATH": str(folder / "src")}
    try:
        done = subprocess.run(run, cwd=folder, env=env, capture_output=True, timeout=1800)
    except subprocess.TimeoutExpired:
        return False
    return done.returncode == 0


def main(count: int, seed: int, parts: list[str]) -> int:
    """Print the survivors; their number."""
    choose, survivors = random.Random(seed), 0
    base = ROOT / "src" / "widelimit"
    files = [
        f for p in PLACES for f in ([base / p] if p.endswith(".py") else (base / p).glob("*.py"))
    ]
    files = [f for f in files if not parts or any(part in str(f) for part in parts)]
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for part in ("src", "tests", "pyproject.toml"):
            copier = shutil.copytree if (ROOT / part).is_dir() else shutil.copy
            copier(ROOT / part, folder / part)
        for number in range(count):
            path = choose.choice(sorted(files))
            found = mutate(path.read_text(), choose)
            if found is None:
                continue
            target = folder / path.relative_to(ROOT)
            target.write_text(found[0])
            lives = survives(folder, tests_of(path))
            survivors += lives
            state = "SURVIVED" if lives else "caught"
            print(f"{number} {state} {path.relative_to(base)}:{found[1]}"[:200], flush=True)
            target.write_text(path.read_text())
    print(f"{survivors} of {count} survived.")
    return survivors


if __name__ == "__main__":
    sys.exit(bool(main(int(sys.argv[1]), int(sys.argv[2]), sys.argv[3:])))
