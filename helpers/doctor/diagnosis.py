"""What the doctor says: a sentence, the evidence, the fix."""

from __future__ import annotations

import html
import re
from dataclasses import dataclass, field

import numpy as np

# JupyterLab would break lines within words, and put nothing between this and what follows.
_PRE = "white-space: pre-wrap; word-break: normal; overflow-wrap: anywhere; margin-bottom: 1em"


@dataclass(frozen=True, eq=False)
class Diagnosis:
    """The result of `examine`.

    sound : nothing wrong was found. name : "sound", the identifier of the disease, several joined
    by "|" where the doctor cannot tell them apart, or "unknown". evidence : what was seen, in
    lines. fix : what to do; "" if sound. sentence : the name in words. links : where the disease
    was met in the wild, or what it violates. remarks : further things that were seen.
    errors : identifier of each candidate -> largest error against it on the input that shows the
    disease, "right" among them. inputs : that input, as NumPy arrays in the function's layout, and
    its other arguments, by the function's own names. difference : (T_q, d_v), |output − right
    output| in the head where it is largest; None where there is nothing to compare.
    """

    sound: bool
    name: str
    evidence: str
    fix: str = ""
    sentence: str = ""
    links: tuple[str, ...] = ()
    remarks: tuple[str, ...] = ()
    errors: dict[str, float] = field(default_factory=dict, repr=False)
    inputs: dict[str, object] = field(default_factory=dict, repr=False)
    difference: np.ndarray | None = field(default=None, repr=False)

    @property
    def _head(self) -> str:
        return f"{'✓' if self.sound else '✗'} {self.name}: {self.sentence}"

    def __str__(self) -> str:
        parts = [self._head, "", "Evidence", _indented(self.evidence)]
        if self.fix:
            parts += ["", "Fix", _indented(self.fix)]
        if self.remarks:
            parts += ["", "Also", *map(_indented, self.remarks)]
        if self.links:
            parts += ["", "See", *map(_indented, self.links)]
        return "\n".join(parts)

    __repr__ = __str__

    def picture(self):
        """Where the output differs from the right one, as a figure to show in a cell.

        Raises ValueError where there is nothing to compare.
        """
        from helpers.pictures.difference import difference

        if self.difference is None:
            raise ValueError(f"{self.name}: there is no output that could be compared.")
        return difference(self.difference, f"Where the output is wrong ({self.name})")

    def _repr_mimebundle_(self, include=None, exclude=None):
        return {"text/plain": str(self), "text/html": self._repr_html_()}

    def _repr_html_(self) -> str:
        parts = [f"<p><strong>{_rich(self._head)}</strong></p>"]
        parts.append(f'<pre style="{_PRE}">{html.escape(self.evidence)}</pre>')
        if self.fix:
            parts.append(f"<p><strong>Fix.</strong> {_rich(self.fix)}</p>")
        parts += [f"<p><strong>Also.</strong> {_rich(remark)}</p>" for remark in self.remarks]
        if self.links:
            links = ", ".join(
                f'<a href="{html.escape(link)}">{html.escape(_short(link))}</a>'
                for link in self.links
            )
            parts.append(f"<p>See {links}</p>")
        return f"<div>{''.join(parts)}</div>"


def _indented(text: str) -> str:
    return "\n".join(f"    {line}" for line in text.splitlines())


def _rich(text: str) -> str:
    """HTML of a sentence; `code` between backticks."""
    return re.sub(r"`([^`]+)`", r"<code>\1</code>", html.escape(text))


def _short(link: str) -> str:
    return re.sub(r"^https?://(?:www\.)?(?:github\.com/)?", "", link)
