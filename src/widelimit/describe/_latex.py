"""A network, and its kernel recursion, in LaTeX."""

from widelimit.interpret import interpret
from widelimit.layers import Layer

from ._check import check
from ._equations import Equations
from ._recursion import Recursion
from ._words import Book


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
    out = interpret(net, Equations("x", Book())).trained()
    return out.book.aligned(f"f(x) &= {out.x}")


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
    out = interpret(net, Recursion("K_{0}", "0", Book(r"K_{0} &= \langle x, x'\rangle/d")))
    return out.book.aligned(rf"K &= {out.k}, \quad \Theta = {out.theta}")
