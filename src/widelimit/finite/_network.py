"""The finite network: the same description with weights."""

import math
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.typing import DTypeLike
from jaxtyping import Array, Float
from numpy.typing import ArrayLike

from widelimit._base.arrays import convention, is_transformed
from widelimit._base.keys import as_key
from widelimit._base.names import unknown
from widelimit._base.scalars import as_count, concrete
from widelimit._base.types import Params, Seed, Tensor
from widelimit.describe import expect_network, infer
from widelimit.layers import Dense, Layer

from ._blocks import kernel_in_blocks
from ._convention import settle
from ._distance import around_limit, with_distance
from ._forward import forward
from ._init import draw
from ._parameterise import How, check_parameterisation
from ._tangent import OUTPUTS, readout_kernel, tangent_kernel


class FiniteNetwork(eqx.Module):
    """A network of finite width: a description, widths, and a parameterisation.

    It holds no weights; `init` draws them, and the other methods take them. All methods can be
    jitted, differentiated and mapped over.

    Attributes:
        net: The description.
        width: The width of every hidden layer that does not state its own.
        parameterisation: "ntk", "standard", "xavier" or "torch".
        bias: Whether every layer (True) or none (False) has a bias; None: as described.
    """

    net: Layer
    width: int = eqx.field(static=True)
    parameterisation: str = eqx.field(static=True)
    bias: bool | None = eqx.field(static=True)

    @property
    def _how(self) -> How:
        return How(self.width, self.parameterisation, self.bias)

    def init(
        self,
        key: Seed,
        input_dim: int,
        output_dim: int | None = None,
        dtype: DTypeLike | None = None,
    ) -> Params:
        """Draw the weights.

        Args:
            key: A JAX key, or an integer.
            input_dim: The number of features of a point.
            output_dim: The number of outputs; by default the width that the last `Dense` states,
                or 1.
            dtype: Of the weights, and hence of everything computed with them; by default JAX's
                default, float32. With float64 the weights are NumPy arrays unless JAX itself runs
                in 64 bits.

        Returns:
            Nested lists of `{"w": (fan_in, fan_out), "b": (fan_out,)}`, shaped like the description.

        Example:
            >>> import widelimit as wl
            >>> net = wl.finite(wl.mlp(depth=2, b_std=0.1), width=5)
            >>> shapes = jax.tree.map(jnp.shape, net.init(0, input_dim=3))
            >>> shapes[0][0]
            [{'b': (5,), 'w': (3, 5)}, {}]
        """
        outputs = None if output_dim is None else as_count(output_dim, "output_dim", minimum=1)
        sizes = as_count(input_dim, "input_dim", minimum=1), outputs
        key = as_key(key)
        dtype = jnp.result_type(float) if dtype is None else np.dtype(dtype)
        if not jnp.issubdtype(dtype, jnp.floating):
            raise TypeError(f"dtype must be a floating point type, got {dtype}.")
        if dtype == jax.dtypes.canonicalize_dtype(dtype):
            return self._draw(key, sizes, dtype)
        if is_transformed(key):
            raise ValueError(
                f"Weights of dtype {dtype} cannot be drawn inside jit or vmap while JAX runs in 32 "
                "bits. Call init outside, once for each key, or set jax_enable_x64."
            )
        with jax.enable_x64(True):
            return jax.tree.map(np.array, self._draw(key, sizes, dtype))

    def _draw(self, key: Seed, sizes: tuple[int, int | None], dtype: DTypeLike) -> Params:
        input_dim, output_dim = sizes
        root = infer(self.net, input_dim, self.width, output_dim).root
        return draw(self.net, root, key, dtype, self._how)

    def apply(self, params: Params, x: ArrayLike) -> Float[Tensor, "n outputs"]:
        r"""The outputs $f(x)$, shape (points, outputs).

        Args:
            params: From `init`.
            x: Points, shape (points, features). NumPy in, NumPy out; JAX in, JAX out.

        Returns:
            The outputs, in the dtype of the weights.

        Example:
            >>> import widelimit as wl
            >>> net = wl.finite(wl.mlp(depth=1, w_std=2.0), width=4)
            >>> params = net.init(0, input_dim=1)
            >>> w, v = params[0][0][0]["w"], params[1]["w"]
            >>> x = jnp.ones((1, 1))
            >>> y = 2 * jax.nn.relu(2 * x @ w) @ v / 2  # 2 / sqrt(4)
            >>> bool(jnp.allclose(net.apply(params, x), y))
            True
        """
        inputs = settle(params, x)
        self._check_features(params, inputs.x1)
        with convention(inputs):
            return inputs.answer(_apply(self, params, inputs.x1))

    def ntk(
        self, params: Params, x1: ArrayLike, x2: ArrayLike | None = None, outputs: str = "full"
    ) -> Float[Tensor, "n1 n2 *outputs"]:
        r"""The empirical tangent kernel $\hat\Theta(x,x')=\langle\nabla_\theta f(x),\nabla_\theta f(x')\rangle$.

        Every fully connected layer $z=c_wWx+c_bb$ adds $(c_w^2\langle x,x'\rangle+c_b^2)\langle\delta,\delta'\rangle$,
        $\delta=\partial f/\partial z$: two small Gram matrices instead of a Jacobian.

        Args:
            params: From `init`.
            x1: Points, shape (n1, features).
            x2: Points, shape (n2, features); None stands for `x1`.
            outputs: For several outputs: "full" (n1, n2, k, k), "diagonal" (n1, n2, k), or
                "trace" (n1, n2), the sum over the outputs.

        Returns:
            The kernel; of shape (n1, n2) for a single output.

        Example:
            >>> import widelimit as wl
            >>> net = wl.finite(wl.mlp(depth=1), width=4096)
            >>> x = np.array([[1.0, 0.0], [0.6, 0.8]])
            >>> theta = net.ntk(net.init(0, input_dim=2), x)
            >>> bool(abs(theta - wl.ntk(net.net, x)).max() < 0.05)
            True

        Reference:
            Jacot, Gabriel and Hongler (2018).
        """
        if outputs not in OUTPUTS:
            raise ValueError(unknown("value of outputs", outputs, OUTPUTS))
        inputs = settle(params, x1, x2)
        self._check_features(params, inputs.x1)
        with convention(inputs):
            if is_transformed((params, inputs.x1, inputs.x2)):
                kernel = tangent_kernel(self.net, params, inputs.x1, inputs.x2, self._how, outputs)
            else:
                kernel = kernel_in_blocks(
                    self.net, params, inputs.x1, inputs.x2, self._how, outputs
                )
            single = outputs != "trace" and kernel.shape[2] == 1
            return inputs.answer(kernel.reshape(kernel.shape[:2]) if single else kernel)

    def nngp(
        self, params: Params, x1: ArrayLike, x2: ArrayLike | None = None
    ) -> Float[Tensor, "n1 n2"]:
        r"""The empirical NNGP kernel: the covariance of an output over the last layer's weights.

        $\hat K=\sigma_w^2\langle x^{(L)},x'^{(L)}\rangle/n+\sigma_b^2$, which converges to the NNGP kernel; the product
        $f(x)f(x')$ of one network does not.

        Args:
            params: From `init`.
            x1: Points, shape (n1, features).
            x2: Points, shape (n2, features); None stands for `x1`.

        Returns:
            The kernel, shape (n1, n2).

        Example:
            >>> import widelimit as wl
            >>> net = wl.finite(wl.mlp(depth=1), width=4096)
            >>> x = np.array([[1.0, 0.0], [0.6, 0.8]])
            >>> k = net.nngp(net.init(0, input_dim=2), x)
            >>> bool(abs(k - wl.nngp(net.net, x)).max() < 0.05)
            True
        """
        inputs = settle(params, x1, x2)
        self._check_features(params, inputs.x1)
        with convention(inputs):
            return inputs.answer(_nngp(self, params, inputs.x1, inputs.x2))

    def num_params(self, input_dim: int, output_dim: int | None = None) -> int:
        """The number of weights and biases.

        Args:
            input_dim: The number of features.
            output_dim: The number of outputs; as in `init`.

        Returns:
            The count.

        Example:
            >>> import widelimit as wl  # n + 2 L n^2 + n d
            >>> wl.finite(wl.resnet(depth=5), width=500).num_params(input_dim=2)
            2501500
        """
        shapes = jax.eval_shape(lambda: self.init(0, input_dim, output_dim))
        return sum(math.prod(leaf.shape) for leaf in jax.tree.leaves(shapes))

    def fluctuations(self, x1: ArrayLike, x2: ArrayLike | None = None) -> Any:
        """How far its kernels are from their limits: `widelimit.fluctuations` at its width."""
        return around_limit(self.net, self._how, x1, x2)

    def __str__(self) -> str:
        return with_distance(self.net, self._how)

    def _check_features(self, params: Params, x: Float[Tensor, "n d"]) -> None:
        if not jax.tree.leaves(params):
            raise ValueError(f"{self.net} has no weights; put a Dense() in it.")
        expected = _input_dim(params)
        if expected is not None and expected != x.shape[1]:
            raise ValueError(
                f"The weights were drawn for {expected} features, the points have {x.shape[1]}. "
                f"Draw them again with init(key, input_dim={x.shape[1]})."
            )


def finite(
    net: Layer, width: int = 1000, parameterisation: str = "ntk", bias: bool | None = None
) -> FiniteNetwork:
    r"""The finite network behind a description.

    Args:
        net: The network.
        width: The width of every hidden layer that does not state its own: `Dense(width=...)`.
        parameterisation: Where the scales are.
            "ntk": weights and biases N(0, 1), factors $\sigma_w/\sqrt{n}$ and $\sigma_b$ in the forward pass.
            "standard": weights $N(0,\sigma_w^2/n)$, biases $N(0,\sigma_b^2)$, no factors.
            "xavier": weights $N(0,2\sigma_w^2/(n_{in}+n_{out}))$, no factors.
            "torch": weights and biases uniform on $\pm n_{in}^{-1/2}$, the weights times $\sigma_w$; a bias everywhere.
        bias: True adds a bias to every layer, False removes all, None follows the description.

    Returns:
        An object with `init`, `apply`, `ntk`, `nngp` and `num_params`.

    Example:
        >>> import widelimit as wl
        >>> net = wl.finite(wl.resnet(depth=5, alpha=0.1), width=200)
        >>> params = net.init(key=0, input_dim=2)
        >>> net.apply(params, np.ones((7, 2))).shape
        (7, 1)
    """
    expect_network(net)
    width = as_count(width, "width", minimum=1)
    check_parameterisation(parameterisation)
    if bias not in (None, True, False):
        raise TypeError(f"bias must be True, False or None, got {bias!r}.")
    is_dense = lambda node: isinstance(node, Dense)
    dense = [node for node in jax.tree.leaves(net, is_leaf=is_dense) if is_dense(node)]
    if bias and parameterisation == "ntk" and any(concrete(d.b_std) == 0.0 for d in dense):
        raise ValueError(
            "bias=True has no effect in a layer with b_std=0, because the NTK parameterisation "
            "multiplies the bias by b_std. Describe the biases (b_std=1.0), or choose another "
            "parameterisation."
        )
    return FiniteNetwork(net, width, parameterisation, bias)


def _input_dim(params: Params) -> int | None:
    """The fan-in of the first layer; None where a network starts with several branches."""
    while isinstance(params, list):
        filled = [p for p in params if jax.tree.leaves(p)]
        params = filled[0] if filled else {}
    return params["w"].shape[-2] if isinstance(params, dict) and "w" in params else None


@jax.jit
def _apply(
    network: FiniteNetwork, params: Params, x: Float[Tensor, "n d"]
) -> Float[Array, "n outputs"]:
    return forward(network.net, params, x, None, network._how)[0]


@jax.jit
def _nngp(
    network: FiniteNetwork,
    params: Params,
    x1: Float[Tensor, "n1 d"],
    x2: Float[Tensor, "n2 d"] | None,
) -> Float[Array, "n1 n2"]:
    return readout_kernel(network.net, params, x1, x2, network._how)
