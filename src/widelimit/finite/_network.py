"""The finite network: the same description with weights."""

import math
from collections.abc import Sequence
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.typing import DTypeLike
from jaxtyping import Array, Float

from widelimit._base.arrays import convention, is_transformed
from widelimit._base.keys import as_key
from widelimit._base.names import unknown
from widelimit._base.shown import shown
from widelimit._base.structured import Data
from widelimit._base.types import Params, Seed, Tensor
from widelimit.describe import infer
from widelimit.interpret import facts
from widelimit.layers import Layer

from ._blocks import kernel_in_blocks
from ._convention import settle
from ._distance import around_limit, with_distance
from ._forward import forward
from ._init import draw
from ._parameterise import How
from ._readout import readout_kernel
from ._shapes import as_input_dim, as_output_dim, check_features, is_frozen, pixels_apart
from ._tangent import OUTPUTS, tangent_kernel
from ._values import Signals, as_values


@shown("a network of finite width; init draws its weights")
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
        input_dim: int | Sequence[int],
        output_dim: int | None = None,
        dtype: DTypeLike | None = None,
    ) -> Params:
        """Draw the weights.

        Args:
            key: A JAX key, or an integer.
            input_dim: The number of features of a point; for points with pixels their shape
                (*spatial, channels), `x.shape[1:]`.
            output_dim: The number of outputs; by default the width that the last `Dense` states,
                or 1.
            dtype: Of the weights, and hence of everything computed with them; by default JAX's
                default, float32. With float64 the weights are NumPy arrays unless JAX itself runs
                in 64 bits.

        Returns:
            Nested lists of `{"w": (fan_in, fan_out), "b": (fan_out,)}`, shaped like the description. Weights
            of a `Conv` have shape (*window, fan_in, fan_out), of a `ConvLocal` (*pixels, *window, fan_in, fan_out);
            those inside `Frozen` stand behind the name "frozen".

        Example:
            >>> import widelimit as wl
            >>> net = wl.finite(wl.mlp(depth=2, b_std=0.1), width=5)
            >>> shapes = jax.tree.map(jnp.shape, net.init(0, input_dim=3))
            >>> shapes[0][0]
            [{'b': (5,), 'w': (3, 5)}, {}]
        """
        sizes = as_input_dim(input_dim), as_output_dim(output_dim)
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

    def _draw(
        self, key: Seed, sizes: tuple[tuple[int, ...], int | None], dtype: DTypeLike
    ) -> Params:
        (*sites, channels), output_dim = sizes
        if sites and not facts(self.net).pixels:
            raise ValueError(
                f"input_dim={sizes[0]} is the shape of inputs with pixels, which no layer of {self.net} reads. Put "
                f"Flatten() or a convolution first, or say input_dim={math.prod(sizes[0])} for flattened inputs."
            )
        root = infer(self.net, channels, self.width, output_dim, tuple(sites)).root
        return draw(self.net, root, key, dtype, self._how)

    def apply(
        self, params: Params, x: Data, key: Seed | None = None
    ) -> Float[Tensor, "n *pixels outputs"]:
        r"""The outputs $f(x)$, shape (points, outputs), or (points, *pixels, outputs) where pixels remain.

        Args:
            params: From `init`.
            x: Points, shape (points, features) or (points, *spatial, channels); `Masked` or `Graphs`.
            key: What `Dropout` drops entries by; None: it drops none.

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
        inputs = settle(self.net, params, x, key=key)
        check_features(self.net, params, inputs.x1)
        with convention(inputs):
            return inputs.answer(_apply(self, params, inputs.x1))

    def ntk(
        self,
        params: Params,
        x1: Data,
        x2: Data | None = None,
        outputs: str = "full",
        key: Seed | None = None,
    ) -> Float[Tensor, "n1 n2 *outputs"]:
        r"""The empirical tangent kernel $\hat\Theta(x,x')=\langle\nabla_\theta f(x),\nabla_\theta f(x')\rangle$.

        Every fully connected layer $z=c_wWx+c_bb$ adds $(c_w^2\langle x,x'\rangle+c_b^2)\langle\delta,\delta'\rangle$,
        $\delta=\partial f/\partial z$: two small Gram matrices instead of a Jacobian. A convolution adds
        $\sum_{p,r}(c_w^2\langle x_{\to p},x'_{\to r}\rangle+c_b^2)\langle\delta_p,\delta'_r\rangle$, $x_{\to p}$ the
        patch that pixel p reads, or, where that costs more, the products of its own gradients.

        Args:
            params: From `init`.
            x1: Data, shape (n1, features) or (n1, *spatial, channels).
            x2: Data, likewise; None stands for `x1`.
            outputs: For several outputs: "full" (n1, n2, k, k), "diagonal" (n1, n2, k), or
                "trace" (n1, n2), the sum over the outputs.
            key: What `Dropout` drops entries by; None: it drops none.

        Returns:
            The kernel; of shape (n1, n2) for a single output. Where the output has pixels, the axes (*pixels, *pixels)
            of both points stand behind (n1, n2).

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
        inputs = settle(self.net, params, x1, x2, key)
        check_features(self.net, params, inputs.x1)
        with convention(inputs):
            shape = _apply.eval_shape(self, params, inputs.x1).shape
            how = "full" if len(shape) > 2 else outputs
            given = self.net, params, inputs.x1, inputs.x2, self._how, how
            traced = is_transformed((params, inputs.x1, inputs.x2))
            kernel = tangent_kernel(*given) if traced else kernel_in_blocks(*given)
            if len(shape) > 2:
                kernel = pixels_apart(kernel, shape[1:], outputs)
            if outputs != "trace" and shape[-1] == 1:
                kernel = kernel.reshape(kernel.shape[: 2 + 2 * (len(shape) - 2)])
            return inputs.answer(kernel)

    def nngp(
        self,
        params: Params,
        x1: Data,
        x2: Data | None = None,
        key: Seed | None = None,
    ) -> Float[Tensor, "n1 n2 *pixels"]:
        r"""The empirical NNGP kernel: the covariance of an output over the last layer's weights.

        $\hat K=\sigma_w^2\langle x^{(L)},x'^{(L)}\rangle/n+\sigma_b^2$, which converges to the NNGP kernel; the product
        $f(x)f(x')$ of one network does not.

        Args:
            params: From `init`.
            x1: Data, shape (n1, features) or (n1, *spatial, channels).
            x2: Data, likewise; None stands for `x1`.
            key: What `Dropout` drops entries by; None: it drops none.

        Returns:
            The kernel, shape (n1, n2); (n1, n2, *pixels, *pixels) where the output has pixels.

        Example:
            >>> import widelimit as wl
            >>> net = wl.finite(wl.mlp(depth=1), width=4096)
            >>> x = np.array([[1.0, 0.0], [0.6, 0.8]])
            >>> k = net.nngp(net.init(0, input_dim=2), x)
            >>> bool(abs(k - wl.nngp(net.net, x)).max() < 0.05)
            True
        """
        inputs = settle(self.net, params, x1, x2, key)
        check_features(self.net, params, inputs.x1)
        with convention(inputs):
            return inputs.answer(_nngp(self, params, inputs.x1, inputs.x2))

    def num_params(self, input_dim: int | Sequence[int], output_dim: int | None = None) -> int:
        """The number of weights and biases that are trained.

        Args:
            input_dim: The number of features, or the shape of a point with pixels; as in `init`.
            output_dim: The number of outputs; as in `init`.

        Returns:
            The count.

        Example:
            >>> import widelimit as wl  # n + 2 L n^2 + n d
            >>> wl.finite(wl.resnet(depth=5), width=500).num_params(input_dim=2)
            2501500
        """
        shapes = jax.eval_shape(lambda: self.init(0, input_dim, output_dim))
        leaves = jax.tree.leaves_with_path(shapes)
        return sum(math.prod(leaf.shape) for path, leaf in leaves if not is_frozen(path))

    def fluctuations(self, x1: Data, x2: Data | None = None) -> Any:
        """How far its kernels are from their limits: `widelimit.fluctuations` at its width."""
        return around_limit(self.net, self._how, x1, x2)

    def __str__(self) -> str:
        return with_distance(self.net, self._how)


@jax.jit
def _apply(network: FiniteNetwork, params: Params, x: Signals) -> Float[Array, "n *pixels outputs"]:
    return jnp.asarray(as_values(forward(network.net, params, x, None, network._how)[0]).x)


@jax.jit
def _nngp(
    network: FiniteNetwork, params: Params, x1: Signals, x2: Signals | None
) -> Float[Array, "n1 n2 *pixels"]:
    return readout_kernel(network.net, params, x1, x2, network._how)
