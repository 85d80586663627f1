"""All methods on all sets, side by side in processes; what is finished is kept."""

import concurrent.futures
import contextlib
import hashlib
import json
import multiprocessing
import os
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from widelimit._base.files import write_file
from widelimit._base.folder import own_folder
from widelimit._base.names import unknown

from ._methods import METHODS, Scores
from ._uci import TableSet, find_sets, read_set

RESULTS = "results"
_VERSION = 1  # of what is kept; results of another version are computed again
_ONE_THREAD: dict[str, str] = dict.fromkeys(
    ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1"
)


class StoppedError(Exception):
    """A process was lost; the message says what is kept and what to do."""


class Task(NamedTuple):
    """A method on a set.

    Attributes:
        method: Its key in `METHODS`.
        table: The set.
    """

    method: str
    table: TableSet


class Done(NamedTuple):
    """A finished task.

    Attributes:
        method: Its key in `METHODS`.
        name: Of the set.
        scores: Of all candidates.
        seconds: Of one core.
    """

    method: str
    name: str
    scores: Scores
    seconds: float


def run_tables(
    data: Path,
    out: Path,
    *,
    methods: Sequence[str] = (),
    sets: Sequence[str] = (),
    jobs: int = 0,
    again: bool = False,
    watch: Callable[[int, int, float, str], None] = lambda done, of, share, what: None,
) -> list[Done]:
    """Score methods on the sets of the collection.

    Args:
        data: The collection's folder.
        out: Where results are kept; what is there is not computed again.
        methods: Keys of `METHODS`; none for all.
        sets: Names of sets; none for all.
        jobs: Processes; 0 for as many as there are cores.
        again: Whether kept results are computed again.
        watch: Told the number of finished tasks, of all, the share of the work, and what was finished.

    Returns:
        All results.

    Raises:
        ValueError: An unknown method or set, or a damaged file of the collection; nothing was computed.
        FolderError: The folder cannot be written, or another run is at work there.
        StoppedError: A process was killed.
    """
    for name in methods:
        if name not in METHODS:
            raise ValueError(unknown("method", name, METHODS))
    tables = _tables(data, sets)
    asked = list(methods or METHODS)
    computed = dict.fromkeys(
        part for method in asked for part in METHODS[method].within or [method]
    )
    tasks = [Task(method, table) for table in tables for method in computed]
    tasks.sort(key=lambda task: -_work(task))
    with own_folder(out):
        (out / RESULTS).mkdir(exist_ok=True)
        results = [None if again else _kept(out, task) for task in tasks]
        todo = [task for task, result in zip(tasks, results, strict=True) if result is None]
        found = [result for result in results if result is not None]
        whole, left = sum(map(_work, tasks)), sum(map(_work, todo))
        watch(len(found), len(tasks), 1 - left / whole, "")
        for task, done in _in_processes(todo, jobs or os.cpu_count() or 1):
            _keep(out, task, done)
            found.append(done)
            left -= _work(task)
            watch(len(found), len(tasks), 1 - left / whole, f"{done.name}, {done.method}")
    by = {(done.method, done.name): done for done in found}
    return [_part(by, method, table.name) for method in asked for table in tables]


def _part(by: dict[tuple[str, str], Done], method: str, name: str) -> Done:
    """A method's result, or its candidates among those of others."""
    within = METHODS[method].within
    if not within:
        return by[method, name]
    scores, seconds = {}, 0.0
    for whole in (by[part, name] for part in within):
        own = {c: values for c, values in whole.scores.items() if METHODS[method].takes(c)}
        seconds += whole.seconds * len(own) / len(whole.scores)
        scores |= {f"{METHODS[whole.method].title}, {c}": v for c, v in own.items()}
    return Done(method, name, scores, seconds)


def _tables(data: Path, sets: Sequence[str]) -> list[TableSet]:
    folders = {folder.name: folder for folder in find_sets(data)}
    for name in sets:
        if name not in folders:
            raise ValueError(unknown("set", name, folders))
    return [read_set(folders[name]) for name in (sets or folders)]


def _work(task: Task) -> float:
    """About how long a task takes, relative to others."""
    n = len(task.table.y)
    return 1.0 + (n / 300) ** 2


def _path(out: Path, task: Task) -> Path:
    return out / RESULTS / f"{task.table.name}.{task.method}.json"


def _print_of(table: TableSet) -> str:
    """A digest of a set's numbers and splits."""
    parts = [table.x, table.y, *(rows for split in table.splits for rows in split)]
    return hashlib.sha256(b"".join(np.ascontiguousarray(p).tobytes() for p in parts)).hexdigest()


def _keep(out: Path, task: Task, done: Done) -> None:
    content = {"version": _VERSION, "data": _print_of(task.table), **done._asdict()}
    write_file(_path(out, task), json.dumps(content, indent=1))


def _kept(out: Path, task: Task) -> Done | None:
    """A result of the same data that can be trusted."""
    try:
        found = json.loads(_path(out, task).read_text(encoding="utf-8"))
        if found["version"] != _VERSION or found["data"] != _print_of(task.table):
            return None
        splits = len(task.table.splits)
        scores = {str(k): [float(s) for s in v] for k, v in found["scores"].items()}
        if not scores or any(len(values) != splits for values in scores.values()):
            return None
        return Done(task.method, task.table.name, scores, float(found["seconds"]))
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return None


def _in_processes(tasks: Sequence[Task], jobs: int) -> Iterator[tuple[Task, Done]]:
    """Results in the order in which they are finished; each process computes with one thread."""
    if not tasks:
        return
    with _environment(_ONE_THREAD):  # read by the libraries when a process starts
        context = multiprocessing.get_context("spawn")
        pool = concurrent.futures.ProcessPoolExecutor(min(jobs, len(tasks)), mp_context=context)
        futures = {pool.submit(_score, task): task for task in tasks}
    try:
        for future in concurrent.futures.as_completed(futures):
            try:
                yield futures[future], future.result()
            except concurrent.futures.process.BrokenProcessPool:
                raise StoppedError(
                    "A process was killed, perhaps for want of memory. What was finished is kept; "
                    "the same command continues after it, with --jobs 1 in less memory."
                ) from None
    finally:
        pool.shutdown(wait=True, cancel_futures=True)


@contextlib.contextmanager
def _environment(values: dict[str, str]) -> Iterator[None]:
    old = {name: os.environ.get(name) for name in values}
    os.environ.update(values)
    try:
        yield
    finally:
        for name, value in old.items():
            os.environ.pop(name) if value is None else os.environ.update({name: value})


def _score(task: Task) -> Done:
    begin = time.process_time()
    scores = METHODS[task.method].run(task.table)
    return Done(task.method, task.table.name, scores, time.process_time() - begin)
