"""The tangent kernel of any PyTorch module, by `torch.func`, within a memory limit."""

import math
from collections.abc import Callable, Mapping, Sequence

import torch
from torch import Tensor, nn

from widelimit._base.names import unknown
from widelimit._base.scalars import as_float

from ._derivatives import Derivatives, Jacobians

_RULES = {"full": "iap,jbp->ijab", "diagonal": "iap,jap->ija", "trace": "iap,jap->ij"}


def empirical_ntk(
    module: nn.Module,
    x1: Tensor,
    x2: Tensor | None = None,
    *,
    outputs: str = "full",
    where: Callable[[str], bool] | Sequence[str] | None = None,
    groups: str | Callable[[str], str] | None = None,
    weights: Mapping[str, float] | None = None,
    memory: float = 512.0,
) -> Tensor | dict[str, Tensor]:
    r"""$\hat\Theta(x,x')=\partial_\theta f(x)\,\partial_\theta f(x')^\top$ of a module, at the weights it has.

    A `Linear` that sees vectors adds $\langle a,a'\rangle\langle\delta,\delta'\rangle$, $a$ its input and $\delta$ the
    derivative in its output, so that its Jacobian is never formed. Jacobians of all other parameters are contracted, of
    as many points at a time as memory allows; of a symmetric kernel half the blocks are computed. The module is called
    on single points behind an axis of size 1, in the mode that it is in: put it into `eval()` if it has layers that mix
    points or drop entries.

    Args:
        module: Any module of one tensor, with outputs of shape (points, ...).
        x1: Points, shape (n1, ...).
        x2: Points, shape (n2, ...); None stands for `x1`.
        outputs: For several outputs: "full" (n1, n2, k, k), "diagonal" (n1, n2, k), or "trace" (n1, n2), their sum.
        where: Which parameters count: names (or beginnings of names), or a function of the name. None: all that
            require a gradient.
        groups: None: one kernel. "parameter" or "layer", or a function of a parameter's name: a kernel for each
            group; their sum is the kernel.
        weights: A factor for each parameter's part, by name; those without one have 1. With `initial_variances` it is
            the kernel of the same network in NTK parameterisation.
        memory: MiB of Jacobians held at a time; a pair of points is the least.

    Returns:
        The kernel, of shape (n1, n2) for a single output, without history; or a dictionary of kernels.

    Example:
        >>> model = nn.Linear(2, 1)
        >>> x = torch.tensor([[1.0, 2.0], [3.0, 4.0]])
        >>> empirical_ntk(model, x)  # x x^T + 1
        tensor([[ 6., 12.],
                [12., 26.]])
        >>> empirical_ntk(model, x, groups="parameter")["bias"]
        tensor([[1., 1.],
                [1., 1.]])

    Reference:
        Novak, Sohl-Dickstein and Schoenholz (2022), Fast finite width neural tangent kernel.
    """
    if outputs not in _RULES:
        raise ValueError(unknown("value of outputs", outputs, _RULES))
    if not isinstance(module, nn.Module):
        raise TypeError(
            f"A torch.nn.Module was expected, got {type(module).__name__}. For functions of JAX: wl.empirical_ntk."
        )
    live = _chosen(module, where)
    limit = as_float(memory, "memory")
    with torch.no_grad():
        shape = _output(module, x1)
    k = math.prod(shape)
    scales = {name: float((weights or {}).get(name, 1.0)) for name in live}
    owners = {name: _group(name, groups) for name in live}
    with Derivatives(module, live, x1[:1]) as derivatives:
        size = k * derivatives.numbers * x1.element_size()
        points = max(1, int(limit * 2**20 / (2 * size)))
        kernels = _Blocks(derivatives, scales, owners, outputs).fill(x1, x2, points)
    tail = {"full": (*shape, *shape), "diagonal": shape, "trace": ()}[outputs]
    tail = () if k == 1 else tail
    found = {name: kernel.reshape(*kernel.shape[:2], *tail) for name, kernel in kernels.items()}
    return found[""] if groups is None else found


def _chosen(
    module: nn.Module, where: Callable[[str], bool] | Sequence[str] | None
) -> dict[str, Tensor]:
    """The parameters that count."""
    every = {name: p.detach() for name, p in module.named_parameters() if p.requires_grad}
    if where is None:
        found = every
    elif callable(where):
        found = {name: p for name, p in every.items() if where(name)}
    else:
        starts = tuple([where] if isinstance(where, str) else where)
        found = {
            name: p
            for name, p in every.items()
            if any(name == s or name.startswith(f"{s}.") for s in starts)
        }
    if not found:
        raise ValueError(
            f"where={where!r} picks no parameter that requires a gradient; there are {', '.join(every) or 'none'}."
        )
    return found


def _group(name: str, groups: str | Callable[[str], str] | None) -> str:
    if groups is None:
        return ""
    if callable(groups):
        return groups(name)
    if groups == "parameter":
        return name
    if groups == "layer":
        return name.rpartition(".")[0]
    raise ValueError(unknown("choice of groups", groups, ("parameter", "layer")))


def _output(module: nn.Module, x: Tensor) -> tuple[int, ...]:
    found = module(x[:1])
    if not isinstance(found, Tensor) or found.ndim < 1 or found.shape[0] != 1:
        raise ValueError(
            f"The module must map points (n, ...) to one tensor (n, ...); of one point it made "
            f"{tuple(found.shape) if isinstance(found, Tensor) else type(found).__name__}."
        )
    return tuple(found.shape[1:])


class _Blocks:
    """Blocks of the kernel from derivatives of some points at a time."""

    def __init__(
        self,
        derivatives: Derivatives,
        scales: dict[str, float],
        owners: dict[str, str],
        outputs: str,
    ) -> None:
        self.derivatives, self.scales, self.owners = derivatives, scales, owners
        self.outputs = outputs
        self.rule = _RULES[outputs]

    def contract(self, first: Jacobians, second: Jacobians) -> dict[str, Tensor]:
        """A block for each group."""
        blocks: dict[str, Tensor] = {}

        def add(name: str, part: Tensor) -> None:
            if name in self.owners:
                part, owner = part * self.scales[name], self.owners[name]
                blocks[owner] = blocks[owner] + part if owner in blocks else part

        for name, left in first.plain.items():
            add(name, torch.einsum(self.rule, left, second.plain[name]))
        for name, left in first.behind.items():
            above = torch.einsum(self.rule, left, second.behind[name])
            below = first.before[name] @ second.before[name].T
            add(f"{name}.bias", above)
            add(f"{name}.weight", above * below.reshape(*below.shape, *(1,) * (above.ndim - 2)))
        return blocks

    def fill(self, x1: Tensor, x2: Tensor | None, points: int) -> dict[str, Tensor]:
        """All blocks; below the diagonal of a symmetric kernel they are transposed."""
        rows = x1.split(points)
        columns = rows if x2 is None else x2.split(points)
        grid: dict[tuple[int, int], dict[str, Tensor]] = {}
        for i, row in enumerate(rows):
            left = self.derivatives(row)
            for j, column in enumerate(columns):
                if x2 is None and j < i:
                    grid[i, j] = {name: self._turned(b) for name, b in grid[j, i].items()}
                else:
                    same = x2 is None and i == j
                    grid[i, j] = self.contract(left, left if same else self.derivatives(column))
        lines = [[grid[i, j] for j in range(len(columns))] for i in range(len(rows))]
        return {
            name: torch.cat([torch.cat([b[name] for b in line], 1) for line in lines], 0)
            for name in grid[0, 0]
        }

    def _turned(self, block: Tensor) -> Tensor:
        block = block.transpose(0, 1)
        return block.transpose(2, 3) if self.outputs == "full" else block
