"""What is done with a network is a pass: one `functools.singledispatch` function over its layers."""

import functools
import weakref
from collections.abc import Callable
from typing import Any, TypeVar

import jax

T = TypeVar("T")


def layer_pass(
    question: str, otherwise: Callable[..., Any] | None = None
) -> Callable[[Callable[..., Any]], Any]:
    """Make a pass out of a function whose docstring and signature describe it.

    The decorated function becomes the default rule's face: calling it on a layer without a
    registered rule raises an error that names the layer, the pass, and how to add the rule.

    Args:
        question: What the pass answers, for the error, e.g. `"its weights are drawn"`.
        otherwise: The rule of layers that have none; where it does not know, `NotImplemented`.

    Returns:
        A decorator that turns a function into a `singledispatch` pass.
    """

    def decorate(template: Callable[..., Any]) -> Any:
        @functools.singledispatch
        @functools.wraps(template)
        def dispatch(layer: Any, *args: Any, **kwargs: Any) -> Any:
            known = NotImplemented if otherwise is None else otherwise(layer, *args, **kwargs)
            if known is not NotImplemented:
                return known
            raise TypeError(
                f"No rule says how {question} for {type(layer).__name__}. "
                f"If this is your own layer, add one: @{template.__name__}.register on a function "
                f"whose first argument is annotated {type(layer).__name__}. "
                f"Otherwise a network made of widelimit layers was expected; got {layer!r}."
            )

        return dispatch

    return decorate


class _Key:
    """A network whose hash, which visits every layer, is computed once."""

    __slots__ = ("hash", "net")

    def __init__(self, net: Any) -> None:
        self.net, self.hash = net, hash(net)

    def __hash__(self) -> int:
        return self.hash

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Key) and (self.net is other.net or self.net == other.net)


def once_for_each_network(function: Callable[..., T]) -> Callable[..., T]:
    """Remember what a function said of a network; one whose numbers are traced is asked anew.

    The very object that was asked for before is known without visiting its layers.
    """
    remembered = functools.lru_cache(maxsize=512)(lambda key, *args: function(key.net, *args))
    seen: dict[Any, tuple[weakref.ref[Any], T]] = {}

    @functools.wraps(function)
    def ask(net: Any, *args: Any) -> T:
        place = id(net), *args
        before = seen.get(place)
        if before is not None and before[0]() is net:
            return before[1]
        try:
            key = _Key(net)
        except jax.errors.ConcretizationTypeError:
            return function(net, *args)
        found = remembered(key, *args)
        seen[place] = weakref.ref(net, lambda _: seen.pop(place, None)), found
        return found

    return ask
