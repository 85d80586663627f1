"""A network, and its kernel recursion, in LaTeX."""

from typing import Any

from widelimit._base.passes import layer_pass
from widelimit._base.scalars import concrete
from widelimit.layers import Dense, Identity, Layer, Phi, Repeat, Residual, Scale, Serial, Sum

from ._check import check


def _number(value: Any) -> str:
    number = concrete(value)
    return r"\cdot" if number is None else f"{number:.6g}"


@layer_pass("it is written in LaTeX")
def _forward(layer: Layer, x: str, lines: list[str], label: list[int]):
    """The symbol of the layer's output; appends its equations to `lines`."""


def _fresh(label: list[int], letter: str) -> str:
    label[0] += 1
    return f"{letter}_{{{label[0]}}}"


@_forward.register
def _forward_dense(layer: Dense, x: str, lines: list[str], label: list[int]) -> str:
    out = _fresh(label, "g")
    gain = _number(layer.w_std)
    weight = rf"\frac{{{gain}}}{{\sqrt n}}" if gain != "1" else r"\frac{1}{\sqrt n}"
    bias = _number(layer.b_std)
    tail = "" if bias == "0" else rf" + {bias}\,b_{{{label[0]}}}"
    lines.append(rf"{out} &= {weight} W_{{{label[0]}}}\, {x}{tail}")
    return out


@_forward.register
def _forward_phi(layer: Phi, x: str, lines: list[str], label: list[int]) -> str:
    out = _fresh(label, "x")
    rule = layer.activation.latex or rf"\text{{{layer.activation.name}}}(x)"
    lines.append(rf"{out} &= \varphi({x}), \quad \varphi(x) = {rule}")
    return out


@_forward.register
def _forward_identity(layer: Identity, x: str, lines: list[str], label: list[int]) -> str:
    return x


@_forward.register
def _forward_scale(layer: Scale, x: str, lines: list[str], label: list[int]) -> str:
    return rf"{_number(layer.factor)}\,{x}"


@_forward.register
def _forward_serial(layer: Serial, x: str, lines: list[str], label: list[int]) -> str:
    for part in layer.layers:
        x = _forward(part, x, lines, label)
    return x


@_forward.register
def _forward_repeat(layer: Repeat, x: str, lines: list[str], label: list[int]) -> str:
    lines.append(rf"&\text{{{layer.times} times, with weights of its own each time:}}")
    return _forward(layer.body, x, lines, label)


@_forward.register
def _forward_residual(layer: Residual, x: str, lines: list[str], label: list[int]) -> str:
    body = _forward(layer.body, x, lines, label)
    out = _fresh(label, "x")
    lines.append(rf"{out} &= {x} + {_number(layer.alpha)}\,{body}")
    return out


@_forward.register
def _forward_sum(layer: Sum, x: str, lines: list[str], label: list[int]) -> str:
    parts = [_forward(branch, x, lines, label) for branch in layer.branches]
    out = _fresh(label, "x")
    lines.append(rf"{out} &= {' + '.join(parts)}")
    return out


@layer_pass("its kernel recursion is written in LaTeX")
def _recursion(layer: Layer, k: str, theta: str, lines: list[str], label: list[int]):
    """The symbols of the output's kernels; appends their equations to `lines`."""


def _pair(label: list[int]) -> tuple[str, str]:
    label[0] += 1
    return f"K_{{{label[0]}}}", rf"\Theta_{{{label[0]}}}"


@_recursion.register
def _recursion_dense(layer: Dense, k: str, theta: str, lines: list[str], label: list[int]) -> Any:
    k2, theta2 = _pair(label)
    gain, bias = _number(layer.w_std), _number(layer.b_std)
    square = "" if gain == "1" else rf"{gain}^2\,"
    tail = "" if bias == "0" else rf" + {bias}^2"
    lines.append(rf"{k2} &= {square}{k}{tail}")
    old = "" if theta == "0" else rf" + {square}{theta}"
    lines.append(rf"{theta2} &= {k2}{old}")
    return k2, theta2


@_recursion.register
def _recursion_phi(layer: Phi, k: str, theta: str, lines: list[str], label: list[int]) -> Any:
    k2, theta2 = _pair(label)
    lines.append(rf"{k2} &= \mathbb E[\varphi(u)\varphi(v)], \quad (u,v)\sim\mathcal N(0, {k})")
    lines.append(rf"{theta2} &= \mathbb E[\varphi'(u)\varphi'(v)]\,{theta}")
    return k2, theta2


@_recursion.register
def _recursion_identity(
    layer: Identity, k: str, theta: str, lines: list[str], label: list[int]
) -> Any:
    return k, theta


@_recursion.register
def _recursion_scale(layer: Scale, k: str, theta: str, lines: list[str], label: list[int]) -> Any:
    gain = _number(layer.factor)
    return rf"{gain}^2\,{k}", rf"{gain}^2\,{theta}"


@_recursion.register
def _recursion_serial(layer: Serial, k: str, theta: str, lines: list[str], label: list[int]) -> Any:
    for part in layer.layers:
        k, theta = _recursion(part, k, theta, lines, label)
    return k, theta


@_recursion.register
def _recursion_repeat(layer: Repeat, k: str, theta: str, lines: list[str], label: list[int]) -> Any:
    lines.append(rf"&\text{{{layer.times} times:}}")
    return _recursion(layer.body, k, theta, lines, label)


@_recursion.register
def _recursion_residual(
    layer: Residual, k: str, theta: str, lines: list[str], label: list[int]
) -> Any:
    inner, inner_theta = _recursion(layer.body, k, theta, lines, label)
    k2, theta2 = _pair(label)
    gain = _number(layer.alpha)
    lines.append(rf"{k2} &= {k} + {gain}^2\,{inner}")
    lines.append(rf"{theta2} &= {theta} + {gain}^2\,{inner_theta}")
    return k2, theta2


@_recursion.register
def _recursion_sum(layer: Sum, k: str, theta: str, lines: list[str], label: list[int]) -> Any:
    parts = [_recursion(branch, k, theta, lines, label) for branch in layer.branches]
    k2, theta2 = _pair(label)
    lines.append(rf"{k2} &= {' + '.join(p[0] for p in parts)}")
    lines.append(rf"{theta2} &= {' + '.join(p[1] for p in parts)}")
    return k2, theta2


def _aligned(lines: list[str]) -> str:
    return "\\begin{aligned}\n" + " \\\\\n".join(lines) + "\n\\end{aligned}"


def latex(net: Layer) -> str:
    r"""The network's equations in LaTeX (an `aligned` environment).

    Args:
        net: The network.

    Returns:
        LaTeX to put between `\[` and `\]`.

    Example:
        >>> import widelimit as wl
        >>> print(latex(wl.Dense() >> wl.Phi("relu") >> wl.Dense(w_std=1.5)))
        \begin{aligned}
        g_{1} &= \frac{1}{\sqrt n} W_{1}\, x \\
        x_{2} &= \varphi(g_{1}), \quad \varphi(x) = \max(0,x) \\
        g_{3} &= \frac{1.5}{\sqrt n} W_{3}\, x_{2} \\
        f(x) &= g_{3}
        \end{aligned}
    """
    check(net)
    lines: list[str] = []
    out = _forward(net, "x", lines, [0])
    return _aligned([*lines, f"f(x) &= {out}"])


def latex_kernels(net: Layer) -> str:
    r"""The recursion of the network's NNGP and tangent kernels in LaTeX.

    Args:
        net: The network.

    Returns:
        LaTeX to put between `\[` and `\]`.

    Example:
        >>> import widelimit as wl
        >>> print(latex_kernels(wl.Dense() >> wl.Phi("relu") >> wl.Dense()))
        \begin{aligned}
        K_{0} &= \langle x, x'\rangle/d \\
        K_{1} &= K_{0} \\
        \Theta_{1} &= K_{1} \\
        K_{2} &= \mathbb E[\varphi(u)\varphi(v)], \quad (u,v)\sim\mathcal N(0, K_{1}) \\
        \Theta_{2} &= \mathbb E[\varphi'(u)\varphi'(v)]\,\Theta_{1} \\
        K_{3} &= K_{2} \\
        \Theta_{3} &= K_{3} + \Theta_{2} \\
        K &= K_{3}, \quad \Theta = \Theta_{3}
        \end{aligned}
    """
    check(net)
    lines = [r"K_{0} &= \langle x, x'\rangle/d"]
    k, theta = _recursion(net, "K_{0}", "0", lines, [0])
    return _aligned([*lines, rf"K &= {k}, \quad \Theta = {theta}"])
