"""What an activation is: a name, a function, and what is known of its Gaussian moments."""

import dataclasses
import functools
import math
import re
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp

from widelimit._base.arrays import evaluating_now
from widelimit._base.names import unknown

from ._aliases import name_of, spelt
from ._cov import Cov, Matrix
from ._identity import identity_of

Formula = Callable[[Cov], Matrix]


@dataclasses.dataclass(frozen=True, eq=False)
class Activation:
    r"""A scalar non-linearity $\varphi$ as a value.

    Give as much as is known. With `dual` the kernels are closed forms; without it the expectations
    are computed numerically, which needs nothing but `fn`.

    Attributes:
        name: How it is found, printed, compared, copied and pickled.
        fn: $\varphi$ itself, elementwise and differentiable by JAX.
        dual: $E[\varphi(u)\varphi(v)]$ as a function of `Cov`.
        dual_dot: $E[\varphi'(u)\varphi'(v)]$; by default the derivative of `dual` in the covariance.
        dual_and_dot: Both at once, where that costs less than one after the other.
        angular: For positively homogeneous activations: (1-rho, 1+rho) to the same of the output
            and the slope of the output's correlation; exact to rounding at both ends. None in place
            of 1+rho, both ways, says that rho is known to be at least 0.
        by_angle: The same from the smaller of (1-rho, 1+rho), negative where that is the latter, from the angle to
            that end, for who evaluates it apart, and from whether rho is known to be at least 0.
        correlation: The output's correlation and its slope as a function of `Cov`, for functions whose
            moments soon overflow.
        mean_dot: The mean of `dual_dot` between $\rho\ge0$ and 1, without cancellation: it keeps the digits
            of $1-\rho'$ near $\rho=1$; by default a few nodes.
        gap: $1-\rho'$ at $\rho=1$ as a function of the two variances, without cancellation; by default
            a sum of squares over the line.
        hermite: For polynomials: the finitely many Hermite coefficients at variance q; if `moment` is
            given, up to a common positive factor.
        degree: $\varphi(cx)=c^{degree}\varphi(x)$ for $c>0$, if there is such a number.
        parity: "odd", "even" or None.
        breaks: Points where $\varphi$ or a derivative of it jumps.
        lipschitz: $C_\varphi=\sup|\varphi'|$, where finite (for the Jacobian bounds).
        moment: $E[\varphi(\sqrt q z)^2]$ as a function of q; by default `dual` at $u=v$.
        fourth: The fourth moments as a function of `Cov` (see `Fourth`), which corrections of finite
            width need; by default Hermite series, or a quadrature where there are breaks.
        local: The same in other coordinates (see `Local`), for functions with kinks: it keeps the digits
            that `fourth` loses near x = x'; by default from `fourth`.
        cost: What an entry takes, erf being 1: small tiles and well compiled programs are for large ones.
        has_ntk: Whether $\varphi'$ is square integrable, so that the tangent kernel exists.
        registered: Whether the name finds this object (set by `register`).
        latex: $\varphi$ in LaTeX.
        cites: Keys of the works that give the formulas.
    """

    name: str
    fn: Callable[[Any], Any]
    dual: Formula | None = None
    dual_dot: Formula | None = None
    angular: Callable[[Matrix, Matrix | None], tuple[Matrix, Matrix | None, Matrix]] | None = None
    correlation: Callable[[Cov], tuple[Matrix, Matrix]] | None = None
    mean_dot: Formula | None = None
    gap: Callable[[Matrix, Matrix], Matrix] | None = None
    hermite: Callable[[Matrix], Matrix] | None = None
    degree: float | None = None
    parity: str | None = None
    breaks: tuple[float, ...] = ()
    lipschitz: float | None = None
    has_ntk: bool = True
    registered: bool = False
    latex: str = ""
    cites: tuple[str, ...] = ()
    moment: Callable[[Matrix], Matrix] | None = None
    dual_and_dot: Callable[[Cov], tuple[Matrix, Matrix]] | None = None
    fourth: Callable[[Cov], Any] | None = None
    local: Callable[[Cov], Any] | None = None
    by_angle: Callable[[Matrix, Matrix, bool], tuple[Matrix, Matrix | None, Matrix]] | None = None
    cost: float = 1.0

    @property
    def closed_form(self) -> bool:
        """Whether the kernels are formulas rather than quadratures."""
        return not (self.dual is None and self.angular is None and self.hermite is None)

    @property
    def vanishes(self) -> bool:
        r"""Whether $\varphi(0)=0$."""
        return self.parity == "odd" or (self.degree or 0) > 0 or _at_zero(self) == 0

    @functools.cached_property  # once: the values of global names may change, what was compiled does not
    def _key(self) -> tuple[Any, ...]:
        if self.registered:
            return (self.name,)
        return self.name, identity_of(self.fn), identity_of(self.dual), self.breaks

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Activation) and self._key == other._key

    def __hash__(self) -> int:
        return hash(self._key)

    def __repr__(self) -> str:
        return self.name

    def __call__(self, x: Any) -> Any:
        """Apply the activation elementwise."""
        return self.fn(x)

    def __copy__(self) -> "Activation":
        return self

    def __deepcopy__(self, memo: dict[int, Any]) -> "Activation":
        return self

    def __reduce__(self) -> Any:
        if self.registered:
            return get, (self.name,)
        return _rebuild, (tuple(getattr(self, f.name) for f in dataclasses.fields(self)),)


@functools.cache
def _at_zero(activation: Activation) -> float:
    with evaluating_now():
        return float(activation.fn(jnp.zeros(())))


def _rebuild(values: tuple[Any, ...]) -> Activation:
    return Activation(*values)


_REGISTRY: dict[str, Activation] = {}
_FAMILIES: dict[str, tuple[Callable[..., Activation], tuple[tuple[float, ...], ...]]] = {}


def register(activation: Activation) -> Activation:
    """Make an activation findable by its name, so that text, JSON and pickle know it.

    Args:
        activation: The new value; its name must be free.

    Returns:
        The registered activation. Use this one from now on.

    Example:
        >>> import jax.numpy as jnp, widelimit as wl
        >>> _ = wl.activations.register(wl.Activation(
        ...     "cubic_demo", lambda x: x**3, degree=3, parity="odd",
        ...     dual=lambda c: 9 * c.q1 * c.q2 * c.k + 6 * c.k**3))
        >>> wl.mlp(depth=1, activation="cubic_demo")
        Repeat(Dense() >> Phi('cubic_demo'), 1) >> Dense()
    """
    if activation.name in _REGISTRY or activation.name in _FAMILIES:
        raise ValueError(
            f"The activation name {activation.name!r} is taken. Names identify activations in "
            "text, JSON and pickles, so they must be unique: choose another."
        )
    if not re.fullmatch(r"[A-Za-z_]\w*", activation.name):
        raise ValueError(
            f"An activation's name must be an identifier such as 'my_relu', got {activation.name!r}."
        )
    known = dataclasses.replace(activation, registered=True)
    _REGISTRY[activation.name] = known
    return known


def register_family(name: str, *examples: tuple[float, ...]) -> Any:
    """Decorate a factory of activations with numbers in their names, such as `leaky_relu(0.1)`."""

    def decorate(factory: Callable[..., Activation]) -> Callable[..., Activation]:
        @functools.cache
        def cached(*numbers: float) -> Activation:
            made = factory(*numbers)
            return _REGISTRY.get(made.name) or dataclasses.replace(made, registered=True)

        @functools.wraps(factory)
        def make(*args: float, **kwargs: float) -> Activation:
            if kwargs:
                names = factory.__code__.co_varnames[: factory.__code__.co_argcount]
                args += tuple(kwargs.pop(n) for n in names[len(args) :] if n in kwargs)
            if kwargs:
                raise TypeError(f"{name} does not take {', '.join(kwargs)}.")
            try:
                return cached(*args)
            except TypeError as error:
                raise ValueError(f"{name} cannot be made of the numbers {args}: {error}.") from None

        _FAMILIES[name] = (make, examples)
        return make

    return decorate


def family_name(family: str, *numbers: float) -> str:
    """`leaky_relu(0.1)`: the name under which a member of a family is found again."""
    return f"{family}({', '.join(f'{n:g}' if float(f'{n:g}') == n else repr(n) for n in numbers)})"


def names() -> list[str]:
    """The names of all registered activations; families stand with their parentheses."""
    return sorted([*_REGISTRY, *(f"{name}(...)" for name in _FAMILIES)])


def examples() -> list[Activation]:
    """Every registered activation and a few members of every family: what the laws run over."""
    members = [make(*numbers) for make, sets in _FAMILIES.values() for numbers in sets]
    return [*_REGISTRY.values(), *members]


def get(activation: Any) -> Activation:
    """Find an activation by name; pass an `Activation` through; wrap a plain function.

    Args:
        activation: `"relu"`, `"leaky_relu(0.1)"`, an `Activation`, or any elementwise function
            that JAX can trace. Names are read without regard to case, hyphens and underscores
            (`"Leaky-ReLU"`); functions of JAX and NumPy that have a name here are found
            (`jax.nn.relu`, `np.tanh`). Others are integrated numerically; if yours has kinks,
            declare them: `Activation("mine", fn, breaks=(0.0,))`.

    Returns:
        The activation.

    Example:
        >>> get("leaky_relu(0.1)").fn(-2.0)
        Array(-0.2, dtype=float32, weak_type=True)
        >>> get("SiLU"), get(jnp.tanh), get("erf(1, 0.5)")
        (silu, tanh, erf(1, 0.5))
    """
    if isinstance(activation, Activation):
        return activation
    if callable(activation):
        known = name_of(activation)
        if known is not None:
            return get(known)
        return Activation(getattr(activation, "__name__", "custom").strip("<>"), activation)
    if not isinstance(activation, str):
        raise TypeError(
            f"An activation is a name, an Activation or a function, got {activation!r} "
            f"({type(activation).__name__})."
        )
    if activation in _REGISTRY:
        return _REGISTRY[activation]
    match = re.fullmatch(r"\s*([\w\s-]*\w)\s*(?:\(([^()]*)\))?\s*", activation)
    name = spelt(match[1], [*_REGISTRY, *_FAMILIES]) if match else None
    if match and name in _REGISTRY and match[2] is None:
        return _REGISTRY[name]
    if match and name in _FAMILIES:
        try:
            numbers = [float(n) for n in (match[2] or "").split(",") if n.strip()]
        except ValueError as error:
            raise ValueError(f"The numbers in {activation!r} could not be read: {error}.") from None
        if not all(map(math.isfinite, numbers)):
            raise ValueError(f"The numbers in {activation!r} must be finite.")
        return _FAMILIES[name][0](*numbers)
    raise ValueError(unknown("activation", activation, {*_REGISTRY, *_FAMILIES}))


def derivative(activation: Activation) -> Callable[[Any], Any]:
    """The elementwise derivative of an activation, by automatic differentiation."""

    def prime(x: Any) -> Any:
        return jax.jvp(activation.fn, (x,), (jnp.ones_like(x),))[1]

    return prime
