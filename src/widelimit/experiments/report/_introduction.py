"""What a reader has to know before the figures: words, and the formulas behind them."""

from ._prose import prose

_SECTIONS = (
    (
        "A wide network is a kernel machine",
        r"""A network $f(x;\theta)$ with hidden layers of width $n$ is trained on samples $(x_i,y_i)$ by
gradient descent on $\frac12\sum_i(f(x_i)-y_i)^2$. What a small step does to its outputs is decided by
the *empirical tangent kernel*, the inner product of the gradients at two inputs:
$$\hat\Theta(x,x')=\nabla_\theta f(x)\cdot\nabla_\theta f(x').$$""",
        r"""At random initialisation $\hat\Theta$ is random, and it moves while the network learns. As
$n\to\infty$ it does neither: it converges to a fixed function $\Theta(x,x')$, the *neural tangent
kernel* (NTK; Jacot, Gabriel and Hongler 2018). For an MLP it follows from layer to layer, together with
the covariance $K$ of the signals:
$$\begin{aligned} K^{(1)} &= \Theta^{(1)}=\langle x,x'\rangle/d \\
K^{(l+1)} &= \mathbb E[\varphi(u)\varphi(v)],\quad (u,v)\sim\mathcal N(0,K^{(l)}) \\
\Theta^{(l+1)} &= K^{(l+1)}+\mathbb E[\varphi'(u)\varphi'(v)]\,\Theta^{(l)} \end{aligned}$$""",
        r"""Training is then linear and solved in closed form. With $X$ for all samples and $\Theta$ for
their kernel matrix, a network that starts as $f_0$ is at time $t$ (steps times learning rate)
$$f_t(x)=f_0(x)+\Theta(x,X)\,\Theta^{-1}(1-e^{-t\Theta})(y-f_0(X)).$$
Trained for ever, and on average over initialisations, it is the *interpolant*
$$f_\infty(x)=\sum_i c_i\,\Theta(x,x_i),\qquad \Theta c=y.$$
So what a wide network does between its samples is the shape of its kernel.""",
    ),
    (
        "The networks, and α",
        r"""The papers compare a plain network (MLP) with a residual network of $L$ blocks, whose branches
are attenuated by a factor $\alpha$; all weights $U,V,W,w$ are standard normal numbers:
$$\begin{aligned} x^{(0)} &= d^{-1/2}\,Ux \\
x^{(l)} &= x^{(l-1)}+\alpha\,n^{-1/2}\,V^{(l)}\varphi(n^{-1/2}\,W^{(l)}x^{(l-1)}) \\
f(x) &= n^{-1/2}\,w^\top x^{(L)} \end{aligned}$$
With $\alpha=0$ nothing but a linear map is left; a small $\alpha$ adds little of the non-linearity
$\varphi$, which is a ReLU where nothing else is said.""",
    ),
    (
        "The circle, and the kink",
        r"""Most experiments learn $\frac12\cos b+\sin4b$ from a few points $x=(\cos b,\sin b)$ of the
circle. There a kernel depends on the angle $\Delta$ between two inputs alone and can be drawn as a
curve $\Theta(\Delta)$. For ReLU networks that curve has a corner at $\Delta=0$,
$$\frac{\Theta(\Delta)}{\Theta(0)}=1-\kappa\,|\Delta|+\dots$$
The number $\kappa$ is the *kink*. It is $L/2\pi$ for the MLP and about $\alpha^2L/2\pi$ for a residual
network with small $\alpha$; for smooth activations such as erf it is 0. An interpolant is a sum of
copies of the kernel, so it inherits a corner at each sample: its slope jumps by $-2\kappa\,\Theta(0)\,c_i$
(Figure 2 draws both).""",
    ),
    (
        "Two measures of smoothness",
        r"""The *second-derivative measure* of a function with Fourier coefficients $f_k$ on $N$ points of
the circle; *smaller is smoother*:
$$\mu_{\mathrm{D2}}^2=\frac{\sum_k k^4|f_k|^2}{\sum_k|f_k|^2}$$
It is 1 for $\cos b$, 16 for $\sin4b$ and $\sqrt{205}\approx14.3$ for the target. A function with
corners has no second derivative: its measure grows like $\sqrt N$, so only values of the same $N$ may
be compared ($N=4096$ unless stated).""",
        r"""The *Gaussian measure* compares with the interpolant $g$ of the same samples by the smooth kernel
$e^{-|x-x'|^2/2}$, whose eigenvalues on the circle are $\lambda_k$; *larger is smoother*:
$$\mu_{\mathrm G}^2=\frac{\sum_k|g_k|^2/\lambda_k}{\sum_k|f_k|^2/\lambda_k}$$
The $\lambda_k$ fall so fast that the sum is infinite for a function with corners. Here they are
replaced by $\lambda_k+10^{-8}\lambda_0$, which makes it a number (see the part *Measures*).""",
    ),
    (
        "Verdicts",
        r"""Every claim of the papers is turned into a criterion on numbers. It *holds* where
all cases meet it, *holds in part* where some do, and *does not hold* where none does; the numbers that
decided stand below it. *Closed form* means infinite width, no training and no randomness. Samples *as in
the papers' code* include both ends of the period, which are the same point; $10^{-10}$ is then added to
the diagonal of the kernel matrix.""",
    ),
)


_WORDS = (
    (
        r"$L$, $n$",
        "Depth: the number of non-linear layers or residual blocks. Width: of each of them.",
    ),
    (r"$\alpha$", "The factor of the residual branches. Small: close to a linear network."),
    (r"$\varphi$", r"The activation; ReLU is $\max(0,x)$."),
    (
        r"$\Theta$, $\hat\Theta$",
        "The neural tangent kernel, of infinite width; and that of one finite network, which is random.",
    ),
    (
        r"$K$, NNGP",
        "The covariance of the outputs of random networks: with infinite width they are a Gaussian process.",
    ),
    (
        r"$\Delta$, $\kappa$",
        r"The angle between two inputs; the kernel's slope at $\Delta=0$, the kink.",
    ),
    (r"$\mu_{\mathrm{D2}}$, $\mu_{\mathrm G}$", "The measures: smaller, and larger, is smoother."),
    (
        r"$N$",
        "Points of the grid on which a function is measured; training images, in *Digits* and *MNIST*.",
    ),
    (
        r"$\lambda_{\min}$, $\lambda_{\max}$",
        "Extreme eigenvalues of the kernel matrix. Gradient descent on it converges fastest with the "
        r"learning rate $2/(\lambda_{\min}+\lambda_{\max})$, and the slowest direction needs about "
        r"$\lambda_{\max}/\lambda_{\min}$ steps.",
    ),
    (
        "Input-output Jacobian",
        r"$\partial f/\partial x$: how fast the output changes with the input.",
    ),
    (
        "Outside the kernel regime",
        "Narrow networks, usual initialisation, large steps: the kernel moves and the theory is silent.",
    ),
    (
        "Published, preprint, talk",
        "The versions of one work; they differ in figures and in the measure.",
    ),
)


def introduction() -> str:
    """The introduction as HTML: a section for each idea, and a list of words to open."""
    words = "".join(f"<dt>{prose(word)}</dt><dd>{prose(text)}</dd>" for word, text in _WORDS)
    sections = "".join(
        f"<h3>{title}</h3>" + "".join(f"<p>{prose(text)}</p>" for text in texts)
        for title, *texts in _SECTIONS
    )
    return f"{sections}<details><summary>Words and symbols</summary><dl class='made'>{words}</dl></details>"
