r"""The few signs that texts of the interview room may hold, and the forms they are shown in.

A text is plain words with `code` between backticks and formulas between dollars, in TeX:
"the standard deviation is $\sqrt{d_k}$". In JupyterLab its own MathJax sets the formulas, in Anki
Anki's; where there is neither they are drawn (`helpers.pictures.formula`), or written in words.
"""

from __future__ import annotations

import html as _html
import re
from collections.abc import Callable, Iterable

from helpers.practice.style import lowered

_PARTS = re.compile(r"\$([^$]+)\$|`([^`]+)`")

# What a formula may hold besides letters, digits and + − = / ( ) [ ] | , . < >: TeX → plain.
SIGNS = {
    r"\cdot": "·", r"\times": "×", r"\sqrt": "√", r"\sum": "Σ", r"\partial": "∂",
    r"\infty": "∞", r"\le": "≤", r"\ge": "≥", r"\ne": "≠", r"\approx": "≈", r"\ll": "≪",
    r"\gg": "≫", r"\to": "→", r"\in": "∈", r"\pm": "±", r"\propto": "∝", r"\top": "ᵀ",
    r"\ldots": "…", r"\odot": "⊙", r"\|": "‖", r"\lceil": "⌈", r"\rceil": "⌉",
    r"\sigma": "σ", r"\mu": "μ", r"\rho": "ρ", r"\tau": "τ", r"\alpha": "α", r"\beta": "β",
    r"\gamma": "γ", r"\delta": "δ", r"\epsilon": "ε", r"\lambda": "λ", r"\theta": "θ",
    r"\ell": "ℓ", r"\Sigma": "Σ", r"\Delta": "Δ",
    r"\exp": "exp", r"\ln": "ln", r"\log": "log", r"\max": "max", r"\min": "min",
    r"\tanh": "tanh", r"\quad": " ", r"\,": " ", r"\;": " ", r"\left": "", r"\right": "",
    r"\{": "{", r"\}": "}", r"\%": "%",
}  # fmt: skip
_SUPERSCRIPT = str.maketrans("0123456789+-−nTᵀ", "⁰¹²³⁴⁵⁶⁷⁸⁹⁺⁻⁻ⁿᵀᵀ")


def _map(text: str, words: Callable, formula: Callable, code: Callable) -> str:
    """The text with each of its parts put into another form."""
    done, at = [], 0
    for match in _PARTS.finditer(text):
        done.append(words(text[at : match.start()]))
        done.append(formula(match[1]) if match[1] is not None else code(match[2]))
        at = match.end()
    done.append(words(text[at:]))
    return "".join(done)


def _escaped(text: str) -> str:
    return _html.escape(text, quote=False)


def _words(text: str) -> str:
    return lowered(_escaped(text))


def _code(text: str) -> str:
    return f"<code>{_escaped(text)}</code>"


def html(text: str) -> str:
    """For pages that MathJax reads, such as JupyterLab's: formulas stay between dollars."""
    return _map(text, _words, lambda tex: f"${_escaped(tex)}$", _code)


def anki(text: str) -> str:
    r"""For Anki, which sets what stands between \( and \)."""
    return _map(text, _words, lambda tex: rf"\({_escaped(tex)}\)", _code)


def drawn(text: str) -> str:
    """For a page of its own: each formula an SVG picture, with its words for screen readers."""
    from helpers.pictures.formula import formula

    return _map(text, _words, lambda tex: formula(tex, in_words(tex)), _code)


def bullets(texts: Iterable[str], form: Callable[[str], str] = html) -> str:
    """Texts as a list in HTML, each in one of the forms above."""
    return f"<ul>{''.join(f'<li>{form(text)}</li>' for text in texts)}</ul>"


def plain(text: str) -> str:
    """For a terminal and a screen reader: formulas in Unicode, no signs around code.

    Raises ValueError for a dollar or a backtick without its partner, and for TeX that is not among
    SIGNS, \\frac and \\mathrm, \\mathbf, \\operatorname.
    """
    shown = _map(text, str, in_words, str)
    if "$" in _map(text, str, lambda _: "", lambda _: ""):
        raise ValueError("a dollar stands alone: formulas are between two.")
    if "`" in _map(text, str, lambda _: "", lambda _: ""):
        raise ValueError("a backtick stands alone: code is between two.")
    return shown


_BRACED = r"\{((?:[^{}]|\{[^{}]*\})*)\}"
_ONE = re.compile(r"[\w.∞ℓσμρταβγδελθ]+(?:[_^₀-₉][\w]+)?")  # needs no parentheses


def in_words(tex: str) -> str:
    """A formula in Unicode: `\\frac{a}{b + c}` becomes a/(b + c). Raises ValueError as `plain`."""
    was, text = "", tex
    while was != text:  # from the outside in, until nothing is left to do
        was = text
        text = re.sub(rf"\\(?:mathrm|mathbf|operatorname|text){_BRACED}", r"\1", text)
        text = re.sub(rf"\\frac{_BRACED}{_BRACED}", _fraction, text)
        text = re.sub(rf"\\sqrt{_BRACED}", lambda m: "√" + _bracketed(m[1]), text)
    for sign in sorted(SIGNS, key=len, reverse=True):
        tail = r"(?![a-zA-Z])" if sign[-1].isalpha() else ""
        text = re.sub(re.escape(sign) + tail, SIGNS[sign], text)
    text = re.sub(rf"\^{_BRACED}", _power, text)
    text = re.sub(r"\^(\S)", _power, text)
    text = re.sub(rf"_{_BRACED}", lambda m: "_" + m[1], text)
    if found := re.search(r"\\[a-zA-Z]+|\\.", text):
        raise ValueError(
            f"the formula ${tex}$ holds {found[0]!r}, which this series does not write: use the "
            "signs in helpers/interview/markup.py, or add it there."
        )
    return re.sub(r" +", " ", text.replace("-", "−")).strip()


def _fraction(match) -> str:
    return f"{_bracketed(match[1])}/{_bracketed(match[2])}"


def _bracketed(tex: str) -> str:
    simple = re.sub(r"\\(?:mathrm|operatorname)\{(\w+)\}|\\(?=[a-z]+\b)", r"\1", tex)
    return tex if _ONE.fullmatch(re.sub(r"[{}]", "", simple)) else f"({tex})"


def _power(match) -> str:
    if all(ord(sign) in _SUPERSCRIPT for sign in match[1]):
        return match[1].translate(_SUPERSCRIPT)
    return f"^{match[1]}" if len(match[1]) == 1 else f"^({match[1]})"
