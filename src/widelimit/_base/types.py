"""Names for the values that pass the borders of the library."""

from typing import TYPE_CHECKING, Any

import jax
import numpy as np
from jaxtyping import Float, PRNGKeyArray, PyTree

# NumPy in, NumPy out; JAX in, JAX out: where a signature says Tensor, both come and go.
Tensor = jax.Array | np.ndarray
# Weights: a tree of arrays, shaped like the description.
Params = PyTree[Float[Tensor, "..."]]
# What randomness starts from.
Seed = int | np.integer | PRNGKeyArray | np.ndarray

if TYPE_CHECKING:
    from typing import Self as Self
else:  # run-time checks look at one method at a time, where "this class" has no meaning
    Self = Any
