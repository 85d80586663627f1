"""Several processes, on one machine or on many, as one run: they begin, stop and fail together."""

import contextlib
import ipaddress
import os
import socket
from collections.abc import Iterator, Mapping

import jax
import numpy as np
from jax.experimental import multihost_utils
from jax.sharding import Mesh

from .link import Link
from .mesh import AXIS

_PATIENCE = 600  # seconds that processes wait for each other when they begin: queues are slow
_ADDRESS = 128  # bytes in which process 0 tells the others where it listens


@contextlib.contextmanager
def processes(
    coordinator: str | None = None,
    count: int | None = None,
    index: int | None = None,
    *,
    heartbeat: int = 20,
    stuck: float = 3600.0,
) -> Iterator[Mesh]:
    """Join the processes of a run, and get their devices.

    The same script runs on a laptop, where it is one process with all local devices, and on a cluster,
    where each process runs it: SLURM, Open MPI and TPU pods are recognised by JAX itself, others name the
    coordinator, the number of processes and each one's index. It must be entered before JAX has computed
    anything. When a process is lost, all others stop within two heartbeats and say so; started again with
    the same `checkpoint=` they go on.

    Args:
        coordinator: "host:port" of process 0, at which processes meet; None: found by JAX.
        count: How many processes there are; None: found.
        index: Which one this is, from 0; None: found.
        heartbeat: Seconds after which a silent process counts as lost, 10 to 30 as a rule.
        stuck: Seconds without a step of a solver after which the run is given up.

    Yields:
        All devices of all processes, to be passed on as `mesh=`.

    Example:
        >>> import numpy as np, widelimit as wl
        >>> with wl.processes(count=1) as mesh:  # alone
        ...     model = wl.ridge(wl.mlp(2), np.eye(3), np.ones(3), solver="cg", mesh=mesh)
        >>> bool(model.outcome.converged)
        True
    """
    if heartbeat < 1:
        raise ValueError(f"heartbeat is a time in seconds, at least 1; got {heartbeat}.")
    _refuse_loopback(coordinator, os.environ)
    if count == 1 or not _begin(coordinator, count, index, heartbeat):
        yield Mesh(np.array(jax.devices()), (AXIS,))
        return
    link = _linked(coordinator, heartbeat, stuck)
    try:
        yield Mesh(np.array(jax.devices()), (AXIS,))
        multihost_utils.sync_global_devices("widelimit: all have come to the end")
    except BaseException as error:
        link.fail(error)
        raise
    link.close()
    jax.distributed.shutdown()


def _begin(coordinator: str | None, count: int | None, index: int | None, heartbeat: int) -> bool:
    """Whether there are several processes, which have then met."""
    jax.config.update("jax_cpu_collectives_implementation", "gloo")
    try:
        jax.distributed.initialize(
            coordinator,
            count,
            index,
            initialization_timeout=_PATIENCE,
            heartbeat_timeout_seconds=heartbeat,
            shutdown_timeout_seconds=2 * heartbeat,
        )
    except ValueError as error:
        if coordinator is None and count is None and index is None and "defined" in str(error):
            return False  # no cluster: a process by itself
        raise ValueError(
            f"The processes cannot meet: {error} Give coordinator='host:port', count and index, or start "
            "them by SLURM or MPI."
        ) from error
    except RuntimeError as error:
        if "before" in str(error):
            raise RuntimeError(
                "wl.processes() must come before JAX computes anything: enter it at the top of the script."
            ) from error
        raise
    return jax.process_count() > 1


def _refuse_loopback(coordinator: str | None, environment: Mapping[str, str]) -> None:
    """A coordinator that other machines cannot reach is refused, rather than waited for."""
    if coordinator is None:
        return
    host = coordinator.rsplit(":", 1)[0].strip("[]")
    try:
        loopback = ipaddress.ip_address(host).is_loopback
    except ValueError:
        loopback = host == "localhost"
    number = lambda name: int(environment.get(name, "1") or 1)
    nodes = max(number("SLURM_JOB_NUM_NODES"), number("SLURM_NNODES"))
    nodes = max(nodes, number("OMPI_COMM_WORLD_SIZE") // number("OMPI_COMM_WORLD_LOCAL_SIZE"))
    if loopback and nodes > 1:
        raise ValueError(
            f"coordinator={coordinator!r} is this machine's own address, which the other {nodes - 1} "
            "machines cannot reach. Give the name of the first machine; under SLURM or MPI leave it out."
        )


def _linked(coordinator: str | None, heartbeat: float, stuck: float) -> Link:
    """Connections between process 0 and all others, by which losses are noticed at once."""
    first = jax.process_index() == 0
    link = Link(jax.process_index(), jax.process_count(), heartbeat, stuck)
    place = b""
    if first:
        host = socket.gethostname() if coordinator is None else coordinator.rsplit(":", 1)[0]
        place = f"{host.strip('[]')}:{link.listen()}".encode()
    told = np.frombuffer(place.ljust(_ADDRESS)[:_ADDRESS], np.uint8)
    told = np.asarray(multihost_utils.broadcast_one_to_all(told)).astype(np.uint8)
    host, port = told.tobytes().decode().strip().rsplit(":", 1)
    if not first:
        link.join(host, int(port))
    link.start()
    return link
