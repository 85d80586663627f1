"""The exact kernels of a network of infinite width."""

from typing import Any

from widelimit._base.arrays import is_traced
from widelimit._base.scalars import as_scalar, concrete
from widelimit._base.structured import Data
from widelimit.describe import check
from widelimit.interpret import facts
from widelimit.layers import Layer

from ._kernel import Kernels, matrices, prepare
from ._plan import Scope, cut_off, known, series, split, without_widths
from ._profile import Profile, compiled


def nngp(net: Layer, x1: Data, x2: Data | None = None) -> Any:
    r"""The NNGP kernel $K(x,x')=E[f(x)f(x')]$ of an infinitely wide network.

    $K^{(1)}=\sigma_w^2\langle x,x'\rangle/d+\sigma_b^2$, $K^{(l+1)}=\sigma_w^2E[\varphi(u)\varphi(v)]+\sigma_b^2$ with
    $(u,v)\sim N(0,K^{(l)})$. For several outputs the kernel is $K\otimes I$.

    Args:
        net: The network.
        x1: Data, shape (n1, d), or (n1, *spatial, channels) where the network reads pixels; `Masked`,
            `Graphs`. NumPy in, NumPy out; JAX in, JAX out.
        x2: Data, shape (n2, d); None stands for `x1`, and the diagonal is then exact.

    Returns:
        The kernel matrix, shape (n1, n2), in the dtype of the inputs; shape (n1, n2, *pixels, *pixels)
        where the network's output has pixels.

    Example:
        >>> import widelimit as wl
        >>> wl.nngp(wl.mlp(depth=1), [[1.0, 0.0], [0.0, 1.0]]).round(4)
        array([[0.25  , 0.0796],
               [0.0796, 0.25  ]])

    Reference:
        Lee et al. (2018), Deep neural networks as Gaussian processes.
    """
    return matrices(prepare(net, "nngp"), ("nngp",), x1, x2)[0]


def ntk(net: Layer, x1: Data, x2: Data | None = None) -> Any:
    r"""The neural tangent kernel $\Theta(x,x')=\lim\,\langle\nabla_\theta f(x),\nabla_\theta f(x')\rangle$.

    $\Theta^{(1)}=K^{(1)}$, $\Theta^{(l+1)}=K^{(l+1)}+\sigma_w^2\,E[\varphi'(u)\varphi'(v)]\,\Theta^{(l)}$ with
    $(u,v)\sim N(0,K^{(l)})$. For several outputs the kernel is $\Theta\otimes I$.

    Args:
        net: The network.
        x1: Data, shape (n1, d), or (n1, *spatial, channels) where the network reads pixels; `Masked`,
            `Graphs`. NumPy in, NumPy out; JAX in, JAX out.
        x2: Data, shape (n2, d); None stands for `x1`, and the diagonal is then exact.

    Returns:
        The kernel matrix, shape (n1, n2), in the dtype of the inputs; shape (n1, n2, *pixels, *pixels)
        where the network's output has pixels.

    Example:
        >>> import widelimit as wl
        >>> wl.ntk(wl.resnet(depth=5, alpha=0.1), [[1.0, 0.0], [0.0, 1.0]]).round(4)
        array([[1.0508, 0.0081],
               [0.0081, 1.0508]])

    Reference:
        Jacot, Gabriel and Hongler (2018); Tirer, Bruna and Giryes (2022), Theorem 2.
    """
    return matrices(prepare(net, "ntk"), ("ntk",), x1, x2)[0]


def kernels(net: Layer, x1: Data, x2: Data | None = None) -> Kernels:
    """Both kernels at once, for little more than the price of one.

    Args:
        net: The network.
        x1: Data, shape (n1, d).
        x2: Data, shape (n2, d), or None for `x1`.

    Returns:
        A record with `nngp` and `ntk`.

    Example:
        >>> import widelimit as wl
        >>> k = wl.kernels(wl.mlp(depth=3, activation="erf"), [[1.0], [2.0]])
        >>> k.nngp.shape, k.ntk.shape
        ((2, 2), (2, 2))
    """
    return Kernels(*matrices(prepare(net, "ntk"), ("nngp", "ntk"), x1, x2))


def profile(net: Layer, variance: float = 1.0) -> Profile:
    r"""The kernels as functions of the cosine between two inputs of equal norm.

    If the activations are homogeneous and there is no bias, the kernel of any two inputs is
    $\Theta(x,x')=\frac{|x||x'|}{d}\,\mathrm{profile.ntk}(\rho)$ (activations of degree 1).

    Args:
        net: The network, its numbers concrete.
        variance: $|x|^2/d$ of the inputs; a unit vector in d dimensions has 1/d.

    Returns:
        The compiled profile.

    Example:
        >>> import widelimit as wl
        >>> p = wl.profile(wl.mlp(depth=15))
        >>> bool(p.error < 1e-13)
        True
        >>> round(p.ntk(1.0) * 2**15, 12)  # (L + 1) / 2^L
        16.0
    """
    check(net, ntk=False)
    if facts(net).pixels:
        raise ValueError(
            "A profile is a function of the angle between two vectors; the kernel of a network that reads pixels "
            "depends on the angles between all of them. Use widelimit.kernels(net, x)."
        )
    q = concrete(as_scalar(variance))
    if q is None or not 0 < q < float("inf"):
        raise ValueError(
            f"variance is |x|^2/d of the inputs and must be positive, got {variance!r}."
        )
    if is_traced(net):
        raise TypeError("profile needs concrete numbers; inside jit use nngp, ntk or kernels.")
    form, numbers = split(net)
    form, values = without_widths(form), known(numbers)
    how = series(form, values, Scope(q, q), "float64", many=False)
    profiles = compiled(form, values, q, how, cut_off("float64"))
    return Profile(q, float(profiles.scale), profiles)
