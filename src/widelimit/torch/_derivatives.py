"""Derivatives of a module at single points: Jacobians, and for linear layers the two vectors they are made of."""

from collections import Counter
from typing import Any, NamedTuple, Self

import torch
from torch import Tensor, nn
from torch.func import functional_call, jacrev, vmap
from torch.nn.attention import SDPBackend, sdpa_kernel


class Jacobians(NamedTuple):
    """Derivatives of the outputs at some points.

    Attributes:
        plain: For each parameter that is treated as any, shape (points, outputs, numbers).
        behind: For each linear layer, in its output, shape (points, outputs, width).
        before: Its input, shape (points, features).
    """

    plain: dict[str, Tensor]
    behind: dict[str, Tensor]
    before: dict[str, Tensor]


class Derivatives:
    """A function of points; inside its context the module's linear layers are listened to."""

    def __init__(self, module: nn.Module, live: dict[str, Tensor], point: Tensor) -> None:
        self.module, self.point = module, point
        self.linear = _linear_layers(module, live, point)
        taken = {f"{name}.{part}" for name in self.linear for part in ("weight", "bias")}
        self.plain = {name: p for name, p in live.items() if name not in taken}
        rest = {n: p.detach() for n, p in module.named_parameters() if n not in self.plain}
        self.held = rest | dict(module.named_buffers())
        make = lambda layer: torch.zeros(layer.out_features, dtype=point.dtype, device=point.device)
        self.probes = {name: make(layer) for name, layer in self.linear.items()}
        self._moves: dict[str, Tensor] = {}
        self._seen: dict[str, Tensor] = {}
        self._handles: list[Any] = []

    @property
    def numbers(self) -> int:
        """How many are held for each output of each point."""
        return sum(p.numel() for p in (*self.plain.values(), *self.probes.values()))

    def __enter__(self) -> Self:
        for name, layer in self.linear.items():
            self._handles.append(layer.register_forward_hook(self._listener(name)))
        return self

    def __exit__(self, *_: object) -> None:
        for handle in self._handles:
            handle.remove()

    def _listener(self, name: str) -> Any:
        def listen(_: nn.Module, inputs: tuple[Tensor, ...], output: Tensor) -> Tensor:
            self._seen[name] = inputs[0][0]
            return output + self._moves[name]

        return listen

    def _single(
        self, plain: dict[str, Tensor], probes: dict[str, Tensor], point: Tensor
    ) -> tuple[Tensor, dict[str, Tensor]]:
        self._moves, self._seen = probes, {}
        out = functional_call(self.module, plain | self.held, (point[None],))
        return out[0].reshape(-1), dict(self._seen)

    def __call__(self, x: Tensor) -> Jacobians:
        """The derivatives at some points."""
        which = (0, 1) if self.plain and self.probes else int(not self.plain)
        mapped = vmap(jacrev(self._single, argnums=which, has_aux=True), (None, None, 0))
        # Fused attention cannot be mapped over points; its plain form can.
        with torch.no_grad(), sdpa_kernel(SDPBackend.MATH):
            found, before = mapped(self.plain, self.probes, x)
        plain, behind = {}, {}
        if which == (0, 1):
            plain, behind = found
        elif which == 0:
            plain = found
        else:
            behind = found
        plain = {name: j.detach().reshape(*j.shape[:2], -1) for name, j in plain.items()}
        return Jacobians(plain, behind, before)


def _linear_layers(
    module: nn.Module, live: dict[str, Tensor], point: Tensor
) -> dict[str, nn.Linear]:
    """Linear layers that are called once, on a vector, with weights of their own that count."""
    times = Counter(id(p) for layer in module.modules() for p in layer.parameters(recurse=False))
    found = {
        name: layer
        for name, layer in module.named_modules()
        if type(layer) is nn.Linear
        and f"{name}.weight" in live
        and times[id(layer.weight)] == 1
        and (layer.bias is None or times[id(layer.bias)] == 1)
    }
    calls: dict[str, list[tuple[int, ...]]] = {name: [] for name in found}
    handles = [
        layer.register_forward_hook(
            lambda _, inputs, __, name=name: calls[name].append(tuple(inputs[0].shape))
        )
        for name, layer in found.items()
    ]
    try:
        with torch.no_grad():
            module(point)
    finally:
        for handle in handles:
            handle.remove()
    once = lambda shapes: len(shapes) == 1 and len(shapes[0]) == 2 and shapes[0][0] == 1
    return {name: layer for name, layer in found.items() if once(calls[name])}
