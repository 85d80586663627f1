"""Names of `stax` that have no meaning here: each raises, and says what to do instead."""

from collections.abc import Callable
from typing import Any, NoReturn


def _refused(name: str, reason: str) -> Callable[..., NoReturn]:
    def refuse(*_: Any, **__: Any) -> NoReturn:
        raise NotImplementedError(f"stax.{name} is not part of widelimit.compat: {reason}")

    refuse.__name__ = refuse.__qualname__ = name
    refuse.__doc__ = f"Refused: {reason}"
    return refuse


_OWN_LAYER = (
    "layers of one's own are written with widelimit.extend, as one rule that serves kernels and finite "
    "networks alike; examples/12_a_layer_of_your_own.py is complete."
)
_INSIDE = (
    "it tells neural-tangents which parts of its own state a layer needs. widelimit finds that out."
)

DotGeneral = _refused(
    "DotGeneral",
    "products with fixed matrices have no description. Multiply the data before, or use widelimit.Scale for a "
    "number and widelimit.AvgPool or SumPool for sums of pixels.",
)
Index = _refused("Index", "pixels are not picked inside a network. Cut the data before.")
layer = _refused("layer", _OWN_LAYER)
supports_masking = _refused("supports_masking", _OWN_LAYER)
requires = _refused("requires", _OWN_LAYER)
Bool = _refused("Bool", _INSIDE)
Diagonal = _refused("Diagonal", _INSIDE)
unmask_fn = _refused(
    "unmask_fn", "outputs are arrays already; masks stand in widelimit.Masked inputs."
)


class _Slice:
    """`stax.Slice[...]`."""

    def __getitem__(self, index: object) -> NoReturn:
        Index(index)


Slice = _Slice()
