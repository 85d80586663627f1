"""BibTeX of the works whose formulas a network uses."""

from widelimit.interpret import facts
from widelimit.layers import Layer

BIBLIOGRAPHY = {
    "neal1996priors": (
        "incollection",
        "Neal, Radford M.",
        "Priors for Infinite Networks",
        "booktitle = {Bayesian Learning for Neural Networks}, publisher = {Springer}",
        1996,
    ),
    "lee2018deep": (
        "inproceedings",
        "Lee, Jaehoon and Bahri, Yasaman and Novak, Roman and Schoenholz, Samuel S. and Pennington, "
        "Jeffrey and Sohl-Dickstein, Jascha",
        "Deep Neural Networks as Gaussian Processes",
        "booktitle = {International Conference on Learning Representations}",
        2018,
    ),
    "jacot2018neural": (
        "inproceedings",
        "Jacot, Arthur and Gabriel, Franck and Hongler, Cl{\\'e}ment",
        "Neural Tangent Kernel: Convergence and Generalization in Neural Networks",
        "booktitle = {Advances in Neural Information Processing Systems}",
        2018,
    ),
    "tirer2022kernel": (
        "inproceedings",
        "Tirer, Tom and Bruna, Joan and Giryes, Raja",
        "Kernel-Based Smoothness Analysis of Residual Networks",
        "booktitle = {Mathematical and Scientific Machine Learning}, "
        "series = {Proceedings of Machine Learning Research}, volume = {145}",
        2022,
    ),
    "cho2009kernel": (
        "inproceedings",
        "Cho, Youngmin and Saul, Lawrence K.",
        "Kernel Methods for Deep Learning",
        "booktitle = {Advances in Neural Information Processing Systems}",
        2009,
    ),
    "williams1997computing": (
        "inproceedings",
        "Williams, Christopher K. I.",
        "Computing with Infinite Networks",
        "booktitle = {Advances in Neural Information Processing Systems}",
        1997,
    ),
    "tsuchida2021avoiding": (
        "inproceedings",
        "Tsuchida, Russell and Pearce, Tim and van der Heide, Chris and Roosta, Fred and Gallagher, "
        "Marcus",
        "Avoiding Kernel Fixed Points: Computing with {ELU} and {GELU} Infinite Networks",
        "booktitle = {AAAI Conference on Artificial Intelligence}",
        2021,
    ),
    "andrews1974scale": (
        "article",
        "Andrews, David F. and Mallows, Colin L.",
        "Scale Mixtures of Normal Distributions",
        "journal = {Journal of the Royal Statistical Society, Series B}, volume = {36}",
        1974,
    ),
    "stefanski1991normal": (
        "article",
        "Stefanski, Leonard A.",
        "A Normal Scale Mixture Representation of the Logistic Distribution",
        "journal = {Statistics \\& Probability Letters}, volume = {11}",
        1991,
    ),
    "rahimi2007random": (
        "inproceedings",
        "Rahimi, Ali and Recht, Benjamin",
        "Random Features for Large-Scale Kernel Machines",
        "booktitle = {Advances in Neural Information Processing Systems}",
        2007,
    ),
    "daniely2016toward": (
        "inproceedings",
        "Daniely, Amit and Frostig, Roy and Singer, Yoram",
        "Toward Deeper Understanding of Neural Networks: The Power of Initialization and a Dual View "
        "on Expressivity",
        "booktitle = {Advances in Neural Information Processing Systems}",
        2016,
    ),
    "novak2019bayesian": (
        "inproceedings",
        "Novak, Roman and Xiao, Lechao and Lee, Jaehoon and Bahri, Yasaman and Yang, "
        "Greg and Hron, Jiri and Abolafia, Daniel A. and Pennington, Jeffrey and Sohl-Dickstein, Jascha",
        "Bayesian Deep Convolutional Networks with Many Channels are {G}aussian Processes",
        "booktitle = {International Conference on Learning Representations}",
        2019,
    ),
    "arora2019exact": (
        "inproceedings",
        "Arora, Sanjeev and Du, Simon S. and Hu, Wei and Li, Zhiyuan and Salakhutdinov, Ruslan and Wang, Ruosong",
        "On Exact Computation with an Infinitely Wide Neural Net",
        "booktitle = {Advances in Neural Information Processing Systems}",
        2019,
    ),
    "li2019enhanced": (
        "article",
        "Li, Zhiyuan and Wang, Ruosong and Yu, Dingli and Du, Simon S. and Hu, Wei and "
        "Salakhutdinov, Ruslan and Arora, Sanjeev",
        "Enhanced Convolutional Neural Tangent Kernels",
        "journal = {arXiv preprint arXiv:1911.00809}",
        2019,
    ),
    "yang2019wide": (
        "inproceedings",
        "Yang, Greg",
        "Wide Feedforward or Recurrent Neural Networks of Any Architecture are {G}aussian Processes",
        "booktitle = {Advances in Neural Information Processing Systems}",
        2019,
    ),
    "novak2020neural": (
        "inproceedings",
        "Novak, Roman and Xiao, Lechao and Hron, Jiri and Lee, Jaehoon and Alemi, "
        "Alexander A. and Sohl-Dickstein, Jascha and Schoenholz, Samuel S.",
        "Neural Tangents: Fast and Easy Infinite Neural Networks in {P}ython",
        "booktitle = {International Conference on Learning Representations}",
        2020,
    ),
    "hron2020infinite": (
        "inproceedings",
        "Hron, Jiri and Bahri, Yasaman and Sohl-Dickstein, Jascha and Novak, Roman",
        "Infinite Attention: {NNGP} and {NTK} for Deep Attention Networks",
        "booktitle = {International Conference on Machine Learning}",
        2020,
    ),
    "du2019graph": (
        "inproceedings",
        "Du, Simon S. and Hou, Kangcheng and Salakhutdinov, Ruslan and "
        "Poczos, Barnabas and Wang, Ruosong and Xu, Keyulu",
        "Graph Neural Tangent Kernel: Fusing Graph Neural Networks with Graph Kernels",
        "booktitle = {Advances in Neural Information Processing Systems}",
        2019,
    ),
}


def cite(net: Layer) -> str:
    """BibTeX of the works that the kernels of this network come from.

    Args:
        net: The network.

    Returns:
        BibTeX entries.

    Example:
        >>> import widelimit as wl
        >>> print(cite(wl.mlp(depth=1, activation="erf")).split("@")[-1])
        inproceedings{williams1997computing,
          author = {Williams, Christopher K. I.},
          title = {Computing with Infinite Networks},
          booktitle = {Advances in Neural Information Processing Systems},
          year = {1997}
        }
    """
    keys = dict.fromkeys(("neal1996priors", "lee2018deep", "jacot2018neural", *facts(net).cites))
    return "\n\n".join(_entry(key) for key in keys)


def _entry(key: str) -> str:
    kind, author, title, venue, year = BIBLIOGRAPHY[key]
    fields = [f"author = {{{author}}}", f"title = {{{title}}}", venue, f"year = {{{year}}}"]
    return f"@{kind}{{{key},\n  " + ",\n  ".join(fields) + "\n}"
