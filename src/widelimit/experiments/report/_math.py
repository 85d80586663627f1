"""Formulas in LaTeX as MathML, which browsers draw by themselves: no script, no font, no network."""

import html
import re

_TOKEN = re.compile(r"\\text\{[^}]*\}|\\[A-Za-z]+|\\.|\d+(?:\.\d+)?|\S")


def _table(names: str, drawn: str) -> dict[str, str]:
    return dict(zip(names.split(), drawn.split(), strict=True))


_GREEK = _table(
    "alpha beta gamma delta epsilon eta theta kappa lambda mu xi pi rho sigma tau phi varphi "
    "Gamma Delta Theta Lambda Pi Sigma Phi",
    "α β γ δ ϵ η θ κ λ μ ξ π ρ σ τ ϕ φ Γ Δ Θ Λ Π Σ Φ",
)
_SYMBOL = _table(
    "le ge ne approx sim to in cdot times pm odot dots mid langle rangle | { } top circ",
    "≤ ≥ ≠ ≈ ∼ → ∈ ⋅ × ± ⊙ … ∣ ⟨ ⟩ ‖ { } ⊤ ∘",
)
_LETTER = {"infty": "∞", "nabla": "∇", "partial": "∂", "ell": "ℓ"}
_NAMES = {"cos", "sin", "exp", "max", "min", "log", "arccos", "tanh", "erf", "sup"}
_LARGE = {"sum": "∑", "int": "∫", "prod": "∏"}
_SPACE = {",": "0.17em", ";": "0.28em", "quad": "1em", "qquad": "2em", "!": "0em", " ": "0.25em"}
_ACCENT = {"hat": "^", "bar": "¯", "dot": "˙", "tilde": "~", "overline": "¯"}
_ALPHABET = {
    "mathbb": dict(zip("ERNPZ", "𝔼ℝℕℙℤ", strict=True)),
    "mathcal": dict(zip("HNOLX", "ℋ𝒩𝒪ℒ𝒳", strict=True)),
}
_FENCES = "()[]|⟨⟩‖{}"


def mathml(latex: str, *, display: bool = False) -> str:
    r"""A formula as a `math` element.

    Args:
        latex: Letters, numbers, scripts, fractions, roots, sums, accents, Greek letters, and the
            `aligned` environment: all that `widelimit.latex` writes.
        display: On a line of its own.

    Returns:
        MathML, with the LaTeX as an annotation that is copied but not drawn.

    Example:
        >>> mathml(r"\sqrt n")[:58]
        '<math><semantics><msqrt><mi>n</mi></msqrt><annotation enco'
    """
    parser = _Parser(_TOKEN.findall(latex), display)
    body = _row(parser.until(None))
    source = f"<annotation encoding='application/x-tex'>{html.escape(latex.strip())}</annotation>"
    kind = " display='block'" if display else ""
    return f"<math{kind}><semantics>{body}{source}</semantics></math>"


def _row(parts: list[str]) -> str:
    return parts[0] if len(parts) == 1 else f"<mrow>{''.join(parts)}</mrow>"


def _operator(sign: str, stretchy: bool = False) -> str:
    if sign == "/":
        return "<mo lspace='0' rspace='0'>/</mo>"
    if sign not in _FENCES:
        return f"<mo>{html.escape(sign)}</mo>"
    tight = " lspace='0' rspace='0'" if sign in "|‖" else ""
    return f"<mo stretchy='{'true' if stretchy else 'false'}'{tight}>{sign}</mo>"


class _Parser:
    """Reads tokens from left to right; each method returns the elements that it read."""

    def __init__(self, tokens: list[str], display: bool) -> None:
        self.tokens, self.at, self.display = tokens, 0, display

    def peek(self) -> str | None:
        return self.tokens[self.at] if self.at < len(self.tokens) else None

    def take(self) -> str:
        token = self.peek()
        if token is None:
            raise ValueError(f"The formula {' '.join(self.tokens)!r} ends too early.")
        self.at += 1
        return token

    def until(self, *ends: str | None) -> list[str]:
        """Elements up to, and without, one of the ends."""
        found = []
        while self.peek() not in ends:
            if self.peek() is None:
                raise ValueError(f"The formula {' '.join(self.tokens)!r} lacks {ends[0]!r}.")
            found.append(self.scripted())
        return found

    def scripted(self) -> str:
        """An atom with what is above and below it."""
        token = self.peek()
        base, scripts = self.atom(), {}
        while self.peek() in ("^", "_", "'"):
            mark = self.take()
            if mark == "'":
                scripts["^"] = scripts.get("^", "") + "<mo>′</mo>"
            else:
                scripts[mark] = scripts.get(mark, "") + self.argument()
        wide = self.display and token in (r"\sum", r"\prod", r"\max", r"\min", r"\sup")
        below, above = scripts.get("_"), scripts.get("^")
        above = f"<mrow>{above}</mrow>" if above else None
        if below and above:
            tag = "munderover" if wide else "msubsup"
            return f"<{tag}>{base}{below}{above}</{tag}>"
        if below or above:
            tag = ("munder" if below else "mover") if wide else ("msub" if below else "msup")
            return f"<{tag}>{base}{below or above}</{tag}>"
        return base

    def argument(self) -> str:
        """What a script, fraction or root takes: a group, a command, or one letter or digit."""
        token = self.peek()
        if token is not None and len(token) > 1 and token[0].isdigit():
            self.tokens[self.at : self.at + 1] = [token[0], token[1:]]
        return self.atom()

    def atom(self) -> str:
        token = self.take()
        if token == "{":
            body = _row(self.until("}"))
            self.take()
            return body
        if token.startswith(r"\text{"):
            return f"<mtext>{html.escape(token[6:-1])}</mtext>"
        if token[0] == "\\":
            return self.command(token[1:])
        if token[0].isdigit():
            return f"<mn>{token}</mn>"
        if token.isalpha():
            return f"<mi>{token}</mi>"
        return _operator("−" if token == "-" else token)

    def command(self, name: str) -> str:
        if name in _GREEK:
            upright = " mathvariant='normal'" if name[0].isupper() else ""
            return f"<mi{upright}>{_GREEK[name]}</mi>"
        if name in _LETTER:
            return f"<mi mathvariant='normal'>{_LETTER[name]}</mi>"
        if name in _SYMBOL:
            return _operator(_SYMBOL[name])
        if name in _LARGE:
            return f"<mo>{_LARGE[name]}</mo>"
        if name in _SPACE:
            return f"<mspace width='{_SPACE[name]}'></mspace>"
        if name in _NAMES:
            apart = self.peek() not in ("(", "^", "_", "}", r"\left", None)
            return f"<mi>{name}</mi>" + ("<mspace width='0.17em'></mspace>" if apart else "")
        return self.structure(name)

    def structure(self, name: str) -> str:
        """What has arguments."""
        if name in ("frac", "tfrac"):
            return f"<mfrac>{self.argument()}{self.argument()}</mfrac>"
        if name == "sqrt":
            return f"<msqrt>{self.argument()}</msqrt>"
        if name in _ACCENT:
            accent = f"<mo stretchy='false'>{_ACCENT[name]}</mo>"
            return f"<mover accent='true'>{self.argument()}{accent}</mover>"
        if name in ("left", "right"):
            return _operator({r"\|": "‖"}.get(sign := self.take(), sign), stretchy=True)
        if name in _ALPHABET:
            letters = "".join(self.letters())
            if set(letters) <= _ALPHABET[name].keys():
                return f"<mi>{''.join(_ALPHABET[name][c] for c in letters)}</mi>"
        if name in ("mathrm", "operatorname"):
            return f"<mi mathvariant='normal'>{''.join(self.letters())}</mi>"
        if name == "begin" and "".join(self.letters()) == "aligned":
            return self.aligned()
        raise ValueError(f"\\{name} is not a command that formulas of the report may have.")

    def letters(self) -> list[str]:
        """The tokens of an argument."""
        if self.peek() != "{":
            return [self.take()]
        self.take()
        found = []
        while self.peek() != "}":
            found.append(self.take())
        self.take()
        return found

    def aligned(self) -> str:
        """Rows of two cells, the first of which ends where the second begins."""
        rows, cells = [], [""]
        while True:
            cells[-1] = _row(self.until("&", r"\\", r"\end"))
            mark = self.take()
            if mark == "&":
                cells.append("")
                continue
            rows.append("".join(f"<mtd>{cell}</mtd>" for cell in cells))
            cells = [""]
            if mark == r"\end":
                self.letters()
                body = "".join(f"<mtr>{row}</mtr>" for row in rows)
                return f"<mtable displaystyle='true'>{body}</mtable>"
