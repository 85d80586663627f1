"""How a regression is solved, as a value: one place decides."""

import dataclasses
import functools
import time
import warnings
from collections.abc import Callable
from pathlib import Path

import jax
import numpy as np
from jax.sharding import Mesh
from jaxtyping import Float

from widelimit._base.mesh import as_mesh
from widelimit._base.watch import Watch, announce
from widelimit.infinite import PreparedKernel
from widelimit.linalg import InverseDiagonal, KernelOperator, Solution, System, inverse_diagonal

from ._data import Targets
from ._problem import Problem

DENSE = 20_000  # points up to which the matrix is held in memory (3 GiB)
_QUICK = 4000  # points that no factorisation takes a minute for
_PROBE = 768  # rows of the product by which the speed of this machine is measured
_FACTOR, _EIGEN = 0.3, 4.0  # times of Cholesky and eigh in units of a product of two matrices
_LIGHT = 4096  # points up to which float64 costs nothing
_BRIEF = 200_000  # points up to which no GPU takes a minute
_BIDED = 2**21  # points up to which a GPU takes a second or two for a product, which is measured
_SOME = 2**18  # points whose product tells of more
_LOOSE = 1e-3  # residual of probes, whose noise is larger
_TYPICAL = (
    27,
    50,
)  # steps to 1e-6 at 10^5 points on a GPU and, of half the rank, a CPU; they grow like n^0.35
_CAREFUL = 15, 3  # the price of a residual in float64, in products


@dataclasses.dataclass(frozen=True)
class Cholesky:
    """Factorise the matrix; up to 2000 points an eigendecomposition instead where a ridge is chosen.

    Attributes:
        verbose: Whether its steps are told; None: where they take longer than a minute.
    """

    verbose: bool | None = None


@dataclasses.dataclass(frozen=True)
class CG:
    """Conjugate gradients: the matrix is never stored.

    Attributes:
        rank: Columns of the preconditioner; None: about 5 sqrt(n), 10 on a GPU.
        precision: "float64": products in float32, refined until a residual in float64 is below the
            tolerance; "float32": residuals in float32 too.
        tolerance: Of the relative residual, which is computed anew in the end.
        checkpoint: A file from which a run that was stopped goes on.
        verbose: Whether progress is shown; None: where it takes longer than a minute.
        mesh: The devices that share the work; None: all of this process.
        probes: Random right-hand sides by which leave-one-out errors are estimated, when they are asked for; at
            least 3.
    """

    rank: int | None = None
    precision: str = "float64"
    tolerance: float = 1e-6
    checkpoint: str | Path | None = None
    verbose: bool | None = None
    mesh: Mesh | None = None
    probes: int = 16

    def __post_init__(self) -> None:
        if self.precision not in ("float32", "float64"):
            raise ValueError(f"precision must be 'float32' or 'float64', got {self.precision!r}.")
        if self.rank is not None and (int(self.rank) != self.rank or self.rank < 0):
            raise ValueError(f"rank is a number of columns, at least 0; got {self.rank!r}.")
        if int(self.probes) != self.probes or self.probes < 3:
            raise ValueError(f"probes is a number of vectors, at least 3; got {self.probes!r}.")

    def system(
        self, problem: Problem, ridges: Float[np.ndarray, " n"], times: float = 1.0
    ) -> System:
        """The system of a problem, with the preconditioner that all right-hand sides share.

        How long it takes to solve some times is said beforehand, where there are many points.
        """
        n, outputs = len(problem.x), problem.data.targets.shape[1]
        own = problem.unstored and isinstance(problem.kernel, PreparedKernel)
        cpu = jax.default_backend() == "cpu"
        if cpu or not own:
            self._herald(n, times, lambda: probe_seconds(problem, _LIGHT) if own else 0.0)
        if own and as_mesh(self.mesh) is None:
            System.expect(n, outputs, self.rank, _narrow(n))
        gram, exact = operators(problem, self.precision, self.mesh)
        system = System(gram, ridges, exact=exact, rank=self.rank)
        for matrix, rank in ((gram, system.expected_rank), (exact, 0)):
            if hasattr(matrix, "expect"):
                matrix.expect(outputs, rank)  # pyright: ignore[reportOptionalMemberAccess, reportAttributeAccessIssue]
        if own and not cpu and n > _BRIEF:
            few = functools.partial(probe_seconds, problem, _SOME, outputs)
            self._herald(n, times, few if n > _BIDED else lambda: _seconds(gram, outputs))
        return system

    def _herald(self, n: int, times: float, product: Callable[[], float]) -> None:
        if n > DENSE and self.verbose is not False:
            rounds = 2 if n <= _BRIEF else np.ceil(np.log(self.tolerance / 2) / np.log(1e-4)) - 1
            careful = rounds * _CAREFUL[jax.default_backend() == "cpu"]
            steps = _expected_steps(n, self.tolerance)
            seconds = times * (steps + careful) * product()
            announce(f"conjugate gradients with {n} points", seconds, self.verbose)

    def solve(self, system: System, right: Targets) -> Solution:
        """Solve for some right-hand sides; an outcome that did not converge is warned of."""
        watch = _watch(len(right), self.verbose, self.tolerance)
        outcome = system.solve(
            right, tolerance=self.tolerance, checkpoint=self.checkpoint, callback=watch
        )
        watch.close()
        return self._told(outcome, self.tolerance)

    def inverse_diagonal(
        self, system: System, seconds: float = 0.0, beside: Targets | None = None
    ) -> InverseDiagonal:
        """An estimate of the diagonal of the system's inverse; to solve has taken some seconds."""
        n = system.gram.size
        label = f"leave-one-out errors of {n} points from {self.probes} probes"
        announce(label, seconds, self.verbose)
        watch = _watch(n, self.verbose, _LOOSE)
        found = inverse_diagonal(
            system, self.probes, tolerance=_LOOSE, callback=watch, beside=beside
        )
        watch.close()
        self._told(found.outcome, _LOOSE)
        return found

    @staticmethod
    def _told(outcome: Solution, tolerance: float) -> Solution:
        if not outcome.converged:
            warnings.warn(
                f"CG stopped after {outcome.steps} steps with residual {outcome.residual:.1e}; "
                f"{tolerance:.1e} was asked for. A larger ridge or rank converges faster.",
                UserWarning,
                stacklevel=5,
            )
        return outcome


Solver = Cholesky | CG


def as_solver(solver: "str | Solver", n: int, **options: object) -> Solver:
    """The solver that an argument names, for n points; options are those of `CG`."""
    chosen = isinstance(solver, (Cholesky, CG))
    if chosen or solver == "cholesky":
        _warn_of_idle(solver, options)
    if chosen:
        return solver
    if not isinstance(solver, str) or solver not in ("auto", "cholesky", "cg"):
        raise ValueError(f"solver must be 'auto', 'cholesky' or 'cg', got {solver!r}.")
    if solver == "cg" or (solver == "auto" and n > DENSE):
        return CG(**options)  # pyright: ignore[reportArgumentType]
    return Cholesky(options.get("verbose"))  # pyright: ignore[reportArgumentType]


def _warn_of_idle(solver: "str | Solver", options: dict[str, object]) -> None:
    """Say which options have no effect."""
    usual = {"rank": None, "precision": "float64", "mesh": None, "checkpoint": None}
    idle = [name for name, value in usual.items() if options.get(name, value) != value]
    if idle:
        own = (
            "CG(...), which has its own" if isinstance(solver, CG) else "'cholesky', only with 'cg'"
        )
        names = " and ".join(f"{name}=" for name in idle)
        warnings.warn(f"{names}: without effect beside solver={own}.", stacklevel=5)


def forecast(n: int, *, eigen: bool = False) -> float:
    """Seconds that a factorisation, or an eigendecomposition, of n points takes here, about."""
    if n < _QUICK:
        return 0.0
    block = np.ones((_PROBE, _PROBE))
    times = []
    for _ in range(3):
        start = time.perf_counter()
        np.matmul(block, block)
        times.append(time.perf_counter() - start)
    return min(times) * (n / _PROBE) ** 3 * (_EIGEN if eigen else _FACTOR)


def _narrow(n: int) -> str:
    return "float32" if n > _LIGHT else "float64"


def operators(
    problem: Problem, precision: str, mesh: Mesh | None
) -> tuple[KernelOperator, KernelOperator | None]:
    """The matrix for the iteration, and for residuals where that needs more digits."""
    kernel = problem.kernel
    if not (problem.unstored and isinstance(kernel, PreparedKernel)):
        return problem.tiled(), None
    light = kernel.operator(problem.x, _narrow(len(problem.x)), mesh)
    refined = precision == "float64" and light.precision == "float32"
    return (light.roughly(), light.careful()) if refined else (light, None)


def probe_seconds(problem: Problem, points: int, outputs: int = 1) -> float:
    """How long a product with the matrix takes here, about, from one with few of the points."""
    part = problem.kernel.operator(problem.x[:points], "float32")  # pyright: ignore[reportAttributeAccessIssue]
    return _seconds(part, outputs) * (len(problem.x) / part.size) ** 2


def _seconds(matrix: KernelOperator, outputs: int) -> float:
    """How long a product takes; the first one compiles."""
    vectors, start = matrix.vector(np.ones((matrix.size, outputs))), 0.0
    for _ in range(2):
        start = time.perf_counter()
        np.asarray(matrix @ vectors)
    return time.perf_counter() - start


def _expected_steps(n: int, tolerance: float = 1e-6) -> float:
    typical = _TYPICAL[jax.default_backend() == "cpu"]
    return typical * max(n / 1e5, 0.1) ** 0.35 * np.log(tolerance / 10) / np.log(1e-7)


def _watch(n: int, verbose: bool | None, tolerance: float) -> Watch:
    return Watch("conjugate gradients, step", _expected_steps(n, tolerance), verbose, skip=2)
