"""Work that is dealt out to several devices, of one process or of many.

Points and vectors are on all of them; what is computed of a matrix is dealt out, and added up. A function that
runs so is written once: `own`, `total` and `gathered` do nothing where there is one device.
"""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh, NamedSharding, PartitionSpec
from jaxtyping import Array, Int, Shaped

AXIS = "devices"
EVERYWHERE = PartitionSpec()  # the same on all devices
BY_ROWS = PartitionSpec(AXIS)


def as_mesh(mesh: object) -> Mesh | None:
    """The devices that an argument names, in a row; None where there is but one, this process's own."""
    if mesh is None:
        mine = jax.local_devices()
        return Mesh(np.array(mine), (AXIS,)) if len(mine) > 1 else None
    if not isinstance(mesh, Mesh):
        raise TypeError(
            f"mesh must be a jax.sharding.Mesh, or None for all devices of this process; got "
            f"{type(mesh).__name__}. jax.make_mesh((jax.device_count(),), ('devices',)) makes one of all."
        )
    devices = mesh.devices.ravel()
    alone = len(devices) == 1 and jax.process_count() == 1
    return None if alone else Mesh(devices, (AXIS,))


def count(mesh: Mesh | None) -> int:
    """How many devices there are."""
    return 1 if mesh is None else mesh.size


def memory(mesh: Mesh | None) -> float:
    """Bytes that JAX may use on all of them, each taken for one of this process's; inf where that is not told."""
    here = jax.local_devices()[0] if mesh is None else mesh.local_devices[0]
    told = here.memory_stats() or {}
    return count(mesh) * float(told.get("bytes_limit", np.inf))


def index(mesh: Mesh | None) -> Int[Array, ""]:
    """Which of the devices this one is, inside `spread`."""
    return jnp.int32(0) if mesh is None else jax.lax.axis_index(AXIS)


def everywhere(mesh: Mesh | None, value: Any) -> Array:
    """An array with the same values on all devices; each process gives the same."""
    if isinstance(value, jax.Array) and (mesh is None or len(value.devices()) == mesh.size):
        return value
    if mesh is None:
        return jax.device_put(value)
    host = np.asarray(value)
    return jax.make_array_from_callback(
        host.shape, NamedSharding(mesh, EVERYWHERE), lambda at: host[at]
    )


def spread(
    mesh: Mesh | None, function: Callable[..., Any], given: Any, answer: Any
) -> Callable[..., Any]:
    """The function on all devices at once; `given` and `answer` say what each has of its arrays."""
    if mesh is None:
        return function
    return jax.shard_map(function, mesh=mesh, in_specs=given, out_specs=answer, check_vma=False)


def total(mesh: Mesh | None, part: Any) -> Any:
    """The sum of what all devices have."""
    return part if mesh is None else jax.lax.psum(part, AXIS)


def own(mesh: Mesh | None, array: Shaped[Array, "n ..."], rows: int) -> Shaped[Array, "rows ..."]:
    """This device's rows of an array that is everywhere; zeros where it ends."""
    below = [(0, rows * count(mesh) - len(array))] + [(0, 0)] * (array.ndim - 1)
    return jax.lax.dynamic_slice_in_dim(jnp.pad(array, below), index(mesh) * rows, rows)


def gathered(mesh: Mesh | None, part: Shaped[Array, "rows ..."], n: int) -> Shaped[Array, "n ..."]:
    """The first n of the rows of all devices."""
    whole = part if mesh is None else jax.lax.all_gather(part, AXIS, tiled=True)
    return whole[:n]
