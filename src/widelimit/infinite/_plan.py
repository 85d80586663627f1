"""What is decided before a kernel is evaluated; each decision is a function, and is taken once.

A network is taken apart into its form (structure, and which numbers are exactly zero) and its other
numbers. Facts follow from the form alone, choices of precision from the numbers and the sizes of
the inputs. All are cached by value, so that an equal network, typed again, costs nothing.
"""

import dataclasses
import functools
from collections.abc import Hashable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Int

from widelimit._base.arrays import evaluating_now, value_of
from widelimit._base.scalars import Scalar
from widelimit._base.thresholds import CERTIFIED, CUT_OFF, EQUAL_NORMS, UNROLLED
from widelimit.activations import Activation, How
from widelimit.interpret import Facts
from widelimit.interpret import facts as facts_of
from widelimit.layers import Dense, Identity, Layer, Repeat, Serial

from ._loops import with_loops
from ._variances import choose_how

Numbers = tuple[Scalar | int | Int[Array, ""], ...]  # depths are among them (`_loops.py`)


class Form(NamedTuple):
    """A network without its numbers.

    Attributes:
        structure: The tree.
        zeros: Which numbers are exactly 0 (biases that are not there).
    """

    structure: Hashable
    zeros: tuple[bool, ...]


class Scope(NamedTuple):
    """The inputs that a kernel was prepared for.

    Attributes:
        low: The smallest |x|^2/d.
        high: The largest.
    """

    low: float
    high: float

    def covers(self, other: "Scope") -> bool:
        """Whether the other lies inside, up to rounding of norms."""
        slack = 1 + 1e-6
        return self.low <= other.low * slack and other.high <= self.high * slack


class Plan(NamedTuple):
    """What is fixed at compile time.

    Attributes:
        form: The network's, without widths.
        wanted: "nngp", "ntk" or both.
        path: "layers", "profile", or "either": decided at run time.
        degree: Of homogeneity, if the profile holds for inputs of any norm.
        how: How moments are evaluated.
        terms: How many coefficients of each wanted profile are used, if known beforehand.
    """

    form: Form
    wanted: tuple[str, ...]
    path: str
    degree: float | None
    how: How
    terms: tuple[int, ...] = ()


def split(net: Layer) -> tuple[Form, Numbers]:
    """The form, and the numbers that are not exactly zero."""
    leaves, structure = jax.tree.flatten(net)
    zeros = tuple(isinstance(v, float) and v == 0 for v in leaves)
    return Form(structure, zeros), tuple(v for v, z in zip(leaves, zeros, strict=True) if not z)


def join(form: Form, numbers: Numbers) -> Layer:
    """The network again."""
    rest = iter(numbers)
    return jax.tree.unflatten(form.structure, [0.0 if z else next(rest) for z in form.zeros])


def recalled(form: Form, numbers: Numbers) -> Layer:
    """The network again; for plain numbers the object that was made before, of which much is known already."""
    plain = [v for v in numbers if isinstance(v, float | int)]
    return _recalled(form, *plain) if len(plain) == len(numbers) else join(form, numbers)


@functools.lru_cache(maxsize=512, typed=True)
def _recalled(form: Form, *numbers: float) -> Layer:
    return join(form, numbers)


def known(numbers: Numbers) -> tuple[float, ...]:
    """The numbers as floats, by which decisions are cached."""
    return tuple(v if isinstance(v, float) else float(value_of(v)) for v in numbers)


def example(form: Form) -> Layer:
    """A network of this form, all numbers but the zeros being 1."""
    return join(form, (1.0,) * form.zeros.count(False))


@functools.lru_cache(maxsize=512)
def without_widths(form: Form) -> Form:
    """The same form for networks of any stated widths: at infinite width they mean nothing."""
    wide = lambda node: isinstance(node, Layer) and getattr(node, "width", None) is not None
    bare = lambda node: dataclasses.replace(node, width=None) if wide(node) else node
    return split(jax.tree.map(bare, example(form), is_leaf=wide))[0]


@functools.lru_cache(maxsize=512)
def looped(form: Form, numbers: tuple[float, ...]) -> tuple[Form, Numbers]:
    """The network with loops for repetitions: all depths share a program."""
    return split(with_loops(join(form, numbers)))


@functools.lru_cache(maxsize=512)
def facts(form: Form) -> Facts:
    """What follows from the form; a bias that is not exactly 0 may be there."""
    return facts_of(example(form))


def closed(form: Form) -> bool:
    """Whether all moments are formulas."""
    return all(act.closed_form for act in facts(form).activations)


def angular(form: Form) -> bool:
    """Whether all activations act on correlations alone, by a short formula."""
    return all(act.angular is not None for act in facts(form).activations)


@functools.lru_cache(maxsize=512)
def unrolled(form: Form, numbers: tuple[float, ...]) -> tuple[Form, Numbers]:
    """The network with its repetitions written out: a GPU computes all its layers in one pass."""
    is_repeat = lambda node: isinstance(node, Repeat)

    def write_out(node: Any) -> Any:
        if not is_repeat(node):
            return node
        body = jax.tree.map(write_out, node.body, is_leaf=is_repeat)
        return Serial(*[body] * node.times) if node.times else Identity()

    return split(jax.tree.map(write_out, join(form, numbers), is_leaf=is_repeat))


def for_backend(form: Form, numbers: tuple[float, ...], dtype: str) -> tuple[Form, Numbers]:
    """Loops where a tile's state stays in the cache; on a GPU few and short layers written out."""
    light = dtype == "float32" and angular(form) and facts(form).evaluated <= UNROLLED
    flat = light and jax.default_backend() != "cpu"
    return (unrolled if flat else looped)(form, numbers)


def integrated(form: Form, how: How) -> list[Activation]:
    """The activations whose moments take a two-dimensional quadrature for each entry."""
    acts = facts(form).activations
    slow = lambda a: not a.closed_form and how.table(a) is None and (a.breaks or how.terms == 0)
    return [a for a in acts if slow(a)]


def series(form: Form, numbers: Numbers, scope: Scope, dtype: str, *, many: bool) -> How:
    """How moments without closed form are evaluated, for inputs of these sizes."""
    if closed(form):
        return How()
    return _series(form, known(numbers), scope, dtype, many)


@functools.lru_cache(maxsize=512)
def _series(form: Form, numbers: tuple[float, ...], scope: Scope, dtype: str, many: bool) -> How:
    with evaluating_now():
        return choose_how(join(form, numbers), [*scope], jnp.dtype(dtype), many=many)


def equal_norms(scope: Scope, dtype: str) -> bool:
    """Whether all inputs have one norm, up to rounding, and it is not zero."""
    return scope.high > 0 and scope.high - scope.low <= norm_tolerance(dtype) * scope.high


@functools.lru_cache(maxsize=512)
def bias_as_feature(form: Form, numbers: tuple[float, ...]) -> tuple[Form, Numbers, float] | None:
    r"""The network whose first bias has become a feature of the inputs, if it then is homogeneous.

    $\sigma_w^2\langle x,x'\rangle/d+\sigma_b^2=\sigma_w^2\langle(x,c),(x',c)\rangle/d$ with
    $c=\sqrt d\,\sigma_b/\sigma_w$, so the kernel is a function of one angle after all.

    Returns:
        Form and numbers of the network without that bias, and $\sigma_b/\sigma_w$; None where the
        first layer is no Dense with a bias, or the rest is not homogeneous.
    """
    net = join(form, numbers)
    layers = net.layers if isinstance(net, Serial) else (net,)
    first = layers[0] if layers else None
    if not (isinstance(first, Dense) and first.w_std > 0 and first.b_std > 0):
        return None
    rest, values = split(Serial(Dense(width=first.width, w_std=first.w_std), *layers[1:]))
    found = facts(rest)
    if found.degree is None or not found.zonal:
        return None
    return rest, values, float(first.b_std) / float(first.w_std)


def norm_tolerance(dtype: str) -> float:
    """How far squared norms may differ, relatively, and still count as equal."""
    return EQUAL_NORMS * float(np.finfo(dtype).eps)


def cut_off(dtype: str) -> float:
    """Where a profile's coefficients are cut, relative to the largest value."""
    return CUT_OFF[dtype]


def error_limit(dtype: str) -> float:
    """The truncation error up to which a profile counts as right to rounding."""
    return CERTIFIED[dtype]
