"""What an activation is: a name, a function, and what is known of its Gaussian moments."""

import dataclasses
import functools
import math
import re
import types
from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from widelimit._base.arrays import evaluating_now
from widelimit._base.names import unknown
from widelimit._base.numerics import angle

Matrix = Float[Array, "..."]


class Cov(eqx.Module):
    r"""The covariance of two jointly Gaussian pre-activations $(u,v)$, without lost digits.

    Attributes:
        q1: $E[u^2]$.
        q2: $E[v^2]$.
        minus: $1-\rho$, $\rho$ the correlation: exact near $\rho=1$, where $\rho$ is not.
        plus: $1+\rho$.
    """

    q1: Matrix
    q2: Matrix
    minus: Matrix
    plus: Matrix

    @property
    def rho(self) -> Matrix:
        """The correlation."""
        return (self.plus - self.minus) / 2

    @property
    def scale(self) -> Matrix:
        r"""$\sqrt{q_1q_2}$."""
        return jnp.sqrt(self.q1) * jnp.sqrt(self.q2)

    @property
    def k(self) -> Matrix:
        """The covariance E[uv]."""
        return self.scale * self.rho

    @property
    def det(self) -> Matrix:
        r"""$q_1q_2-k^2\ge0$, free of cancellation."""
        return self.q1 * self.q2 * self.minus * self.plus

    @property
    def theta(self) -> Matrix:
        """The angle arccos(rho)."""
        return angle(self.minus, self.plus)

    @staticmethod
    def diagonal(q: Matrix) -> "Cov":
        """U = v: the pair that an input forms with itself."""
        return Cov(q, q, jnp.zeros_like(q), jnp.full_like(q, 2))

    def at(self, minus: Matrix, plus: Matrix) -> "Cov":
        """The same variances with another correlation."""
        return Cov(self.q1, self.q2, minus, plus)


Formula = Callable[[Cov], Matrix]


def identity_of(fn: Callable[..., Any] | None) -> Any:
    """What a function is, so that an equal one, typed again, is the same: its code and what it sees.

    Defaults and captured values count by value where they can be hashed, global names by the objects
    that they stand for. A function that is no plain Python function is itself.
    """
    if not isinstance(fn, types.FunctionType):
        return fn
    captured = tuple(_seen(cell) for cell in fn.__closure__ or ())
    extras = (*(fn.__defaults__ or ()), *sorted((fn.__kwdefaults__ or {}).items()))
    scope = tuple(_Same(fn.__globals__.get(name)) for name in _names(fn.__code__))
    found = (_code(fn.__code__), captured, tuple(map(_valued, extras)), scope)
    try:
        hash(found)
    except TypeError:  # something that cannot be compared: the function is itself
        return fn
    return found


def _code(code: types.CodeType) -> tuple[Any, ...]:
    constants = tuple(
        _code(c) if isinstance(c, types.CodeType) else _valued(c) for c in code.co_consts
    )
    signature = code.co_argcount, code.co_posonlyargcount, code.co_kwonlyargcount, code.co_flags
    return (*signature, code.co_code, constants, code.co_names, code.co_varnames, code.co_freevars)


def _names(code: types.CodeType) -> list[str]:
    inner = [c for c in code.co_consts if isinstance(c, types.CodeType)]
    return sorted({*code.co_names, *(name for c in inner for name in _names(c))})


def _seen(cell: types.CellType) -> Any:
    try:
        return _valued(cell.cell_contents)
    except ValueError:  # not bound yet
        return _Same(cell)


class _Same:
    """An object that equals itself only; held, so that no other takes its place in memory."""

    def __init__(self, value: object) -> None:
        self.value = value

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Same) and self.value is other.value

    def __hash__(self) -> int:
        return id(self.value)


def _valued(value: Any) -> Any:
    """A value and its type: 1 == 1.0 == True, but functions of them differ."""
    if isinstance(value, types.FunctionType):
        return identity_of(value)
    return type(value), repr(value) if isinstance(value, float) else value


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
        angular: For positively homogeneous activations: (1-rho, 1+rho) to the same of the output
            and the slope of the output's correlation; exact to rounding at both ends. None in place
            of 1+rho, both ways, says that rho is known to be at least 0.
        hermite: For polynomials: the finitely many Hermite coefficients at variance q.
        degree: $\varphi(cx)=c^{degree}\varphi(x)$ for $c>0$, if there is such a number.
        parity: "odd", "even" or None.
        breaks: Points where $\varphi$ or a derivative of it jumps.
        lipschitz: $C_\varphi=\sup|\varphi'|$, where finite (for the Jacobian bounds).
        moment: $E[\varphi(\sqrt q z)^2]$ as a function of q; by default `dual` at $u=v$.
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

    @property
    def closed_form(self) -> bool:
        """Whether the kernels are formulas rather than quadratures."""
        return not (self.dual is None and self.angular is None and self.hermite is None)

    @property
    def vanishes(self) -> bool:
        r"""Whether $\varphi(0)=0$."""
        return self.parity == "odd" or (self.degree or 0) > 0 or _at_zero(self) == 0

    def _key(self) -> tuple[Any, ...]:
        if self.registered:
            return (self.name,)
        return self.name, identity_of(self.fn), identity_of(self.dual), self.breaks

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Activation) and self._key() == other._key()

    def __hash__(self) -> int:
        return hash(self._key())

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
            return dataclasses.replace(factory(*numbers), registered=True)

        @functools.wraps(factory)
        def make(*args: float, **kwargs: float) -> Activation:
            if kwargs:
                names = factory.__code__.co_varnames[: factory.__code__.co_argcount]
                args += tuple(kwargs.pop(n) for n in names[len(args) :] if n in kwargs)
            if kwargs:
                raise TypeError(f"{name} does not take {', '.join(kwargs)}.")
            return cached(*args)

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
            that JAX can trace. Functions are integrated numerically; if yours has kinks, declare
            them: `Activation("mine", fn, breaks=(0.0,))`.

    Returns:
        The activation.

    Example:
        >>> get("leaky_relu(0.1)").fn(-2.0)
        Array(-0.2, dtype=float32, weak_type=True)
    """
    if isinstance(activation, Activation):
        return activation
    if callable(activation):
        return Activation(getattr(activation, "__name__", "custom").strip("<>"), activation)
    if not isinstance(activation, str):
        raise TypeError(
            f"An activation is a name, an Activation or a function, got {activation!r} "
            f"({type(activation).__name__})."
        )
    if activation in _REGISTRY:
        return _REGISTRY[activation]
    match = re.fullmatch(r"\s*(\w+)\s*(?:\(([^()]*)\))?\s*", activation)
    if match and match[1] in _FAMILIES:
        try:
            numbers = [float(n) for n in (match[2] or "").split(",") if n.strip()]
        except ValueError as error:
            raise ValueError(f"The numbers in {activation!r} could not be read: {error}.") from None
        if not all(map(math.isfinite, numbers)):
            raise ValueError(f"The numbers in {activation!r} must be finite.")
        return _FAMILIES[match[1]][0](*numbers)
    raise ValueError(unknown("activation", activation, [*_REGISTRY, *_FAMILIES]))


def derivative(activation: Activation) -> Callable[[Any], Any]:
    """The elementwise derivative of an activation, by automatic differentiation."""

    def prime(x: Any) -> Any:
        return jax.jvp(activation.fn, (x,), (jnp.ones_like(x),))[1]

    return prime
