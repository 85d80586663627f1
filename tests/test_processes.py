"""Several processes over the loopback address: one answer, one end, one failure."""

import multiprocessing
import os
import socket
import time

import jax
import numpy as np
import pytest

import run_of_processes
import widelimit as wl
from widelimit._base import processes as start
from widelimit._base.link import GONE, PULSE, Link
from widelimit._base.mesh import as_mesh


@pytest.fixture(scope="module")
def server():
    """A process without JAX's threads that has imported everything, and from which others are forked."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["run_of_processes"])
    return context


def free_port():
    with socket.create_server(("127.0.0.1", 0)) as found:
        return found.getsockname()[1]


def run(server, count, folder, victim=-1, at=6):
    """Exit codes of all processes, and how long the survivors outlived the victim."""
    port = free_port()
    (folder / "found.npz").unlink(missing_ok=True)
    make = lambda i: server.Process(
        target=run_of_processes.run, args=(port, count, i, str(folder), victim, at)
    )
    all_of_them = [make(i) for i in range(count)]
    for one in all_of_them:
        one.start()
    if victim >= 0:
        all_of_them[victim].join(100)
    struck = time.monotonic()
    for one in all_of_them:
        one.join(100)
    return [one.exitcode for one in all_of_them], time.monotonic() - struck


def found(folder):
    return np.load(folder / "found.npz")["x"]


def test_losses_stop_all_and_checkpoints_go_on(server, tmp_path):
    alone, state = run_of_processes.solve().x, tmp_path / "state.npz"
    dead, patience = -run_of_processes.KILL, 2 * run_of_processes.HEARTBEAT
    codes, seconds = run(server, 4, tmp_path, victim=0)  # the coordinator
    assert codes == [dead, GONE, GONE, GONE]
    assert seconds < patience
    words = (tmp_path / "words_3").read_text()
    assert "process 3 of 4 stops, because process 0 is gone. Start all of them again" in words
    left = state.read_bytes()
    assert run(server, 2, tmp_path)[0] == [0, 0]  # another number of processes
    whole = found(tmp_path)
    assert np.abs(whole - alone).max() < 1e-12 * np.abs(alone).max()
    assert not state.exists()
    state.write_bytes(left)
    codes, seconds = run(server, 2, tmp_path, victim=1, at=9)  # a worker
    assert codes == [GONE, dead]
    assert seconds < patience
    assert "because process 1 is gone" in (tmp_path / "words_0").read_text()
    assert run(server, 2, tmp_path)[0] == [0, 0]  # the same number: bit for bit
    np.testing.assert_array_equal(found(tmp_path), whole)


def test_a_process_by_itself_needs_no_cluster():
    with wl.processes(count=1) as mesh:
        assert mesh.size == jax.device_count()
    assert as_mesh(mesh) is None  # one device of one process: as ever


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "[::1]"])
def test_a_loopback_address_is_refused_on_several_machines(host):
    for environment in (
        {"SLURM_JOB_NUM_NODES": "2"},
        {"OMPI_COMM_WORLD_SIZE": "8", "OMPI_COMM_WORLD_LOCAL_SIZE": "4"},
    ):
        with pytest.raises(ValueError, match="other 1 machines cannot reach"):
            start._refuse_loopback(f"{host}:1234", environment)
        start._refuse_loopback("node1:1234", environment)
    start._refuse_loopback(f"{host}:1234", {})


def test_what_is_no_mesh_is_refused():
    with pytest.raises(TypeError, match="Mesh, or None for all devices"):
        wl.prepare(wl.mlp(1)).operator(np.eye(3), mesh=4)


WORDS = {
    "silent": "process 1 has been silent",
    "stuck": "no step was done for",
    "failed": "process 1 failed with MemoryError",
}


@pytest.mark.parametrize("what", WORDS)
def test_silence_standstill_and_failure_are_noticed(monkeypatch, capsys, what):
    ended = []
    first, second = Link(0, 2, 0.2 if what == "silent" else 60.0, 0.1), Link(1, 2, 60.0, 60.0)
    monkeypatch.setattr(os, "_exit", lambda code: (ended.append(code), first._over.set()))
    second.join("127.0.0.1", first.listen())  # and never says a word
    if what == "stuck":
        PULSE.beat()
    if what == "failed":
        second.fail(MemoryError())
    first.start()
    for _ in range(100):
        time.sleep(0.05)
        if ended:
            break
    PULSE.rest()
    assert ended[0] == GONE
    assert f"process 0 of 2 stops, because {WORDS[what]}" in capsys.readouterr().err
    for peer in (*first._peers.values(), *second._peers.values()):
        peer.close()
