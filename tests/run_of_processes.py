"""One process of a run of several, for test_processes.py: solve, and perhaps die on the way."""

import os
import signal
import sys
from pathlib import Path

import jax
import numpy as np

import widelimit as wl
from widelimit.linalg import _checkpoint, conjugate_gradients

KILL = int(signal.SIGKILL)
HEARTBEAT = 30


def problem():
    x = np.random.default_rng(0).standard_normal((200, 12))
    return wl.prepare(wl.mlp(2)), x, np.sin(2 * x[:, 0])


def solve(mesh=None, **more):
    kernel, x, y = problem()
    gram = kernel.operator(x, mesh=mesh)
    return conjugate_gradients(gram, y, 0.1, rank=20, tolerance=1e-12, **more)


def run(port, count, index, folder, victim, at):
    """Solve with the others; the victim is killed at a step."""
    folder = Path(folder)
    sys.stderr = (folder / f"words_{index}").open("w", buffering=1)
    jax.config.update("jax_compilation_cache_dir", str(folder / "programs"))
    jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.0)
    _checkpoint._SECONDS = -1.0

    def strike(step):
        if index == victim and step == at:
            os.kill(os.getpid(), KILL)

    with wl.processes(f"127.0.0.1:{port}", count, index, heartbeat=HEARTBEAT) as mesh:
        found = solve(mesh, callback=strike, checkpoint=folder / "state.npz")
    if index == 0:
        np.savez(folder / "found.npz", x=found.x, steps=found.steps)
