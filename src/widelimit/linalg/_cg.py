"""A system with a kernel matrix that is not stored, and the iteration that solves it."""

import copy
import functools
import time
from collections.abc import Callable
from pathlib import Path

import jax
import numpy as np
from jaxtyping import Float
from numpy.typing import ArrayLike

from widelimit._base.keys import as_generator
from widelimit._base.link import PULSE
from widelimit._base.types import Seed
from widelimit._base.watch import Watch, say

from ._checkpoint import Checkpoint
from ._cholesky import _ridge
from ._judged import judged_by_rows
from ._low_rank import Preconditioner, partial_cholesky
from ._nystrom import Nystrom, usual_rank
from ._operator import KernelOperator
from ._solution import Solution
from ._steps import Columns, expect_steps, steps_on

_GAIN = 1e-4  # of the residual in one round: beyond, entries in float32 only pretend
_POOR = 50.0  # gain of a round: below, products are made more careful where that is possible
_ROUNDS = 8
_PACE = 5  # steps after which their pace is known


class System:
    r"""The matrix $K+\mathrm{diag}(\mathrm{ridge})$, to be solved with several times.

    Its preconditioner is made when it is first needed, and kept.

    Args:
        gram: $K$.
        ridge: A number or one for each row.
        exact: The same matrix in higher precision, for the residuals; None: `gram` itself.
        rank: Columns of the preconditioner; None chooses, 0 none.
        key: Of the preconditioner's pivots.

    Attributes:
        gram: $K$.
        exact: Its careful version.
    """

    def __init__(
        self,
        gram: KernelOperator,
        ridge: ArrayLike = 0.0,
        *,
        exact: KernelOperator | None = None,
        rank: int | None = None,
        key: Seed = 0,
    ):
        self.gram, self.exact = gram, exact or gram
        self._host = _ridge(ridge, gram.size)
        self._ridge = gram.vector(self._host[:, None])
        self._wanted, self._key = rank, key

    @staticmethod
    def expect(size: int, outputs: int, rank: int | None, precision: str) -> None:
        """Begin to compile what a matrix of so many rows will need, where it is not on the host.

        Args:
            size: The number of rows.
            outputs: Right-hand sides.
            rank: Of the preconditioner, as for a system.
            precision: Of the matrix's entries.
        """
        expect_steps(size, outputs)
        rank = usual_rank(rank, size, False, None, np.dtype(precision).itemsize)
        if rank:
            Nystrom.expect(size, rank, outputs, precision)

    def solve(
        self,
        b: ArrayLike,
        *,
        tolerance: float = 1e-6,
        max_steps: int = 1000,
        callback: Callable[[int], None] | None = None,
        checkpoint: str | Path | None = None,
    ) -> Solution:
        """Solve for b of shape (n,) or (n, k); the arguments are those of `conjugate_gradients`."""
        b = np.asarray(b, dtype=np.float64)
        if b.ndim not in (1, 2) or len(b) != self.gram.size:
            raise ValueError(f"b must have {self.gram.size} rows, got shape {b.shape}.")
        if not np.isfinite(b).all():
            raise ValueError("b contains NaN or infinite values.")
        if tolerance <= 0:
            raise ValueError(f"tolerance must be positive, got {tolerance}.")
        if not b.any():
            return Solution(np.zeros_like(b), True, 0, 0.0)
        start = time.perf_counter()
        mesh = getattr(self.gram, "mesh", None)
        saved = Checkpoint.at(checkpoint, b, self._host, tolerance, mesh=mesh)
        with jax.enable_x64(True):
            run = _Run(self, b.reshape(len(b), -1), max_steps, callback, saved)
            try:
                x, residual = run.until(tolerance)
            finally:
                PULSE.rest()
        saved.remove()
        return Solution(
            np.asarray(x).reshape(b.shape),
            residual <= tolerance,
            run.steps,
            residual,
            run.rounds,
            self.rank,
            time.perf_counter() - start,
        )

    @functools.cached_property
    def preconditioner(self) -> Preconditioner | Nystrom | None:
        """An approximate inverse, on the host or where products are computed."""
        gram, rank = self.gram, self.expected_rank
        if not rank:
            return None
        if not isinstance(self._ridge, np.ndarray):
            return Nystrom(gram, gram.vector(self._host), rank, key=self._key)  # pyright: ignore[reportArgumentType]
        self._low = low = partial_cholesky(gram, rank, key=self._key)
        return Preconditioner.of(low, self._host) if len(low.pivots) else None

    def shifted(self, ridge: ArrayLike) -> "System":
        """The system of another ridge; what its preconditioner knows of $K$ is shared."""
        other = copy.copy(self)
        known = vars(other).pop("preconditioner", None)
        other._host = _ridge(ridge, self.gram.size)
        other._ridge = self.gram.vector(other._host[:, None])
        if isinstance(known, Nystrom):
            vars(other)["preconditioner"] = known.shifted(self.gram.vector(other._host))  # pyright: ignore[reportArgumentType]
        elif known is not None:
            vars(other)["preconditioner"] = Preconditioner.of(self._low, other._host)
        return other

    def roughly(self) -> "System":
        """The same with residuals in the precision of the iteration."""
        self.preconditioner  # noqa: B018 - to be shared
        other = copy.copy(self)
        other.exact = self.gram
        return other

    @property
    def ridge(self) -> Float[np.ndarray, " n"]:
        """What is added to the diagonal, one number for each row."""
        return self._host

    @property
    def expected_rank(self) -> int:
        """Of the preconditioner, also while there is none."""
        gram, host = self.gram, isinstance(self._ridge, np.ndarray)
        each = np.dtype(getattr(gram, "precision", "float64")).itemsize
        return usual_rank(self._wanted, gram.size, host, getattr(gram, "mesh", None), each)

    @property
    def rank(self) -> int:
        """Of the preconditioner."""
        return 0 if self.preconditioner is None else self.preconditioner.rank

    def settle(self) -> bool:
        """Make products more careful; whether there is such a way, and it was not taken yet."""
        settle = getattr(self.gram, "settle", None)
        return settle is not None and settle()

    def inverse(self, v: Columns) -> Columns:
        """An approximate solution of A u = v."""
        return v if self.preconditioner is None else self.preconditioner(v)  # pyright: ignore[reportArgumentType]

    def product(self, v: Columns) -> Columns:
        """A v."""
        return steps_on(isinstance(v, np.ndarray)).plus(self.gram @ v, self._ridge, v)

    def judged(
        self, b: Float[np.ndarray, "n k"], x: Columns, r: Columns, times: int
    ) -> Float[np.ndarray, " k"] | None:
        """A bound of |b - A x| from some rows, where r was found for it with less care; None: ask for all."""
        rng = as_generator(self._key).spawn(times)[-1]
        careful = None if self.exact is self.gram else self.exact
        return judged_by_rows(careful, self._host, b, x, r, rng)

    def residual(self, b: Columns, x: Columns) -> Columns:
        """The residual b - A x, carefully."""
        return steps_on(isinstance(x, np.ndarray)).residual(b, self.exact @ x, self._ridge, x)


class _Run:
    """The iteration; its state is what a checkpoint holds."""

    def __init__(
        self,
        system: System,
        b: Float[np.ndarray, "n k"],
        max_steps: int,
        callback: Callable[[int], None] | None,
        saved: Checkpoint,
    ):
        self.system, self.max_steps, self.callback, self.saved = system, max_steps, callback, saved
        self.given, self.b = b, system.gram.vector(b)
        self.zero = system.gram.vector(np.zeros(b.shape))
        self.length = _norms(self.b)
        self.length = np.where(self.length > 0, self.length, 1)
        self.steps, self.rounds, self.target = 0, 0, 1.0

    def until(self, tolerance: float) -> tuple[Columns, float]:
        """Rounds until the careful residual of every column is below the tolerance."""
        x, left, step = self.zero, self.b, steps_on(isinstance(self.b, np.ndarray))
        inner: tuple[Columns, ...] | None = None
        if self.saved.found is not None:
            state = self.saved.found
            self.steps, self.rounds = int(state["steps"]), int(state["rounds"])
            x, left = (self.system.gram.vector(state[name]) for name in ("x", "left"))
            if "d" in state:
                inner = tuple(self.system.gram.vector(state[name]) for name in ("d", "r", "p"))
        worst, self.target = float((_norms(left) / self.length).max()), tolerance / 2
        while self.rounds < _ROUNDS:
            goal = max(tolerance / 2 / worst, _GAIN)
            d, rough = self._round(x, left, goal, inner)
            x = step.add(x, d)
            inner, before, self.rounds = None, worst, self.rounds + 1
            if goal > _GAIN:  # the last one, if all is well
                bound = self.system.judged(self.given, x, rough, self.rounds)
                if bound is not None and (bound <= tolerance * self.length).all():
                    return x, float((bound / self.length).max())
            left = self.system.residual(self.b, x)
            worst = float((_norms(left) / self.length).max())
            self._save(x, left)
            if worst <= tolerance or self.steps >= self.max_steps:
                break
            # No round may hope for more than the arithmetic gives, unless that can be made better.
            better = worst > before / _POOR and self.system.settle()
            if worst > before / 4 and not better:
                break
        return x, worst

    def _round(
        self, x: Columns, left: Columns, goal: float, inner: tuple[Columns, ...] | None
    ) -> tuple[Columns, Columns]:
        """An approximate solution of A d = left, and what of the right side it leaves."""
        step = steps_on(isinstance(self.b, np.ndarray))
        d, r, p = inner or (self.zero, left, self.system.inverse(left))
        rz = step.dot(r, p if inner is None else self.system.inverse(r))
        limit, size = goal * _norms(left), _norms(r)
        done = d, r, p
        try:
            while self.steps < self.max_steps and (size > limit).any():
                d, r, square = step.advance(d, r, p, self.system.product(p), rz)
                p, rz = step.turn(r, self.system.inverse(r), p, rz)
                size = np.sqrt(np.asarray(square))
                done, self.steps = (d, r, p), self.steps + 1
                PULSE.beat()
                self._tell(size)
                if self.saved.due:
                    self._save(x, left, *done)
        except KeyboardInterrupt:
            if isinstance(self.callback, Watch):
                self.callback.close()
            if self.saved.path is not None:
                self._save(x, left, *done)
                say(
                    f"Stopped after {self.steps} steps; {self.saved.path} goes on from there.", True
                )
            raise
        self._save(x, left, *done)  # a careful residual may take long
        return d, r

    def _tell(self, size: Float[np.ndarray, " k"]) -> None:
        """Call back; a watch is told how many steps the pace until now amounts to."""
        left = float((size / self.length).max())
        if isinstance(self.callback, Watch) and self.steps >= _PACE and 0 < left < 1:
            self.callback.expect(max(self.steps * np.log(self.target) / np.log(left), self.steps))
        if self.callback is not None:
            self.callback(self.steps)

    def _save(self, x: Columns, left: Columns, *inner: Columns) -> None:
        more = dict(zip("drp", inner, strict=False))
        self.saved.write(steps=self.steps, rounds=self.rounds, x=x, left=left, **more)


def _norms(v: Columns) -> Float[np.ndarray, " k"]:
    return np.sqrt(np.asarray(steps_on(isinstance(v, np.ndarray)).dot(v, v)))
