# ruff: noqa: RUF009  (column() only declares a field)
"""How a monitor prints, and what a notebook shows of it."""

from __future__ import annotations

import html
import textwrap
from dataclasses import dataclass, replace

import numpy as np

from helpers._table import Table, column
from helpers.monitor.table import Head, by_layer, span_of, table_of

_MOST_LINES = 64  # of the printed table; beyond, it has a line for each layer
_WIDTH = 100  # of a printed line; JupyterLab shows 107 characters on a small laptop
_LONGEST_NAME = 30  # of a layer: with it a line of the table has 107 characters
_PRINTED = ("layer", "head", "calls", "T_q", "T_k", "d_head", "scale_ratio", "entropy",
            "largest_weight", "score_std")  # fmt: skip
_SUMMARISED = "Ranges are over the heads of a layer; table() has a line for each head."


@dataclass(frozen=True, eq=False, repr=False)
class _Layers(Table):
    """One line for each layer."""

    layer: np.ndarray = column("layer")
    heads: np.ndarray = column("heads")
    d_head: np.ndarray = column("d_head")
    scale_ratio: np.ndarray = column("scale·√d")
    entropy: np.ndarray = column("entropy")
    largest_weight: np.ndarray = column("largest weight")
    score_std: np.ndarray = column("score std")


def as_text(seen: str, heads: list[Head], sentences: list[tuple[str, str]]) -> str:
    """What was seen, the table, and sentences, each with what kind it is."""
    parts = [seen]
    if len(heads) > _MOST_LINES:
        parts += [_shortened(_layers(heads)).text(), _SUMMARISED]
    else:
        parts.append(_shortened(table_of(heads)).text(*_PRINTED))
    parts += [_wrapped(f"{kind}: {words}") for kind, words in sentences]
    return "\n".join(parts)


def _shortened(table: Table) -> Table:
    """A layer's last parts tell it from its neighbours, so of a long name the beginning goes."""
    names = [
        name if len(name) <= _LONGEST_NAME else "…" + name[1 - _LONGEST_NAME :]
        for name in table.layer.tolist()
    ]
    return replace(table, layer=names)


def _wrapped(sentence: str) -> str:
    """JupyterLab would break it within words."""
    return textwrap.fill(
        sentence, _WIDTH, subsequent_indent="  ", break_long_words=False, break_on_hyphens=False
    )


def as_html(seen: str, heads: list[Head], sentences: list[tuple[str, str]]) -> str:
    """The same for a notebook."""
    parts = [f"<p>{seen}</p>"]
    if len(heads) > _MOST_LINES:
        unbroken = _layers(heads)._repr_html_().replace(" to ", "&nbsp;to&nbsp;")
        parts += [unbroken, f"<p>{_SUMMARISED}</p>"]
    else:
        parts.append(table_of(heads)._repr_html_())
    parts += [f"<p><strong>{kind}.</strong> {html.escape(words)}</p>" for kind, words in sentences]
    return f"<div>{''.join(parts)}</div>"


def _layers(heads: list[Head]) -> _Layers:
    lines = [
        {
            "layer": layer,
            "heads": len(some),
            "d_head": some[0].d_head,
            "scale_ratio": span_of(head.scale_ratio for head in some),
            "entropy": span_of((head.entropy for head in some), 3),
            "largest_weight": span_of((head.largest_weight for head in some), 3),
            "score_std": span_of((head.score_std for head in some), 3),
        }
        for layer, some in by_layer(heads).items()
    ]
    return _Layers.from_rows(lines)
