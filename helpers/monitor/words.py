"""What looks wrong, in words."""

from __future__ import annotations

import math
from collections.abc import Callable

from helpers.monitor.table import COLLAPSED, Head, by_layer, span_of

_MOST_LAYERS, _MOST_HEADS, _MOST_GROUPS = 3, 8, 3  # named one by one; more are counted


def warnings_about(heads: list[Head]) -> list[str]:
    """A sentence or two for each thing that looks wrong."""
    kinds: list[tuple[list[Head], Callable[[list[Head]], str]]] = [
        ([h for h in heads if h.broken], _broken_words),
        ([h for h in heads if h.collapsed and h.saturates], _saturated_words),
        ([h for h in heads if h.collapsed and not h.saturates], _copying_words),
        ([h for h in heads if h.uniform], _uniform_words),
    ]
    words = _scale_warnings(heads)
    for some, say in kinds:
        words += [f"{_layers(group)}: {who} {say(group)}" for who, group in _groups(some, heads)]
    return words


def _groups(some: list[Head], heads: list[Head]) -> list[tuple[str, list[Head]]]:
    """`some` of all `heads`: those of layers where the same ones are meant go together, and all do
    where that would still be many."""
    all_of, found = by_layer(heads), {}
    for layer, these in by_layer(some).items():
        found.setdefault(_named(these, all_of[layer]), []).append(these)
    if len(found) > _MOST_GROUPS:
        total = sum(len(all_of[layer]) for layer in by_layer(some))
        return [(f"{len(some)} of their {total} heads", some)]
    return [
        (
            who if len(layers) == 1 else f"{who} of each",
            [head for layer in layers for head in layer],
        )
        for who, layers in found.items()
    ]


def _layers(heads: list[Head]) -> str:
    names = list(by_layer(heads))
    more = len(names) - _MOST_LAYERS
    return ", ".join(names[:_MOST_LAYERS]) + (f" and {more} more" if more > 0 else "")


def _named(some: list[Head], heads: list[Head]) -> str:
    if len(heads) == 1:
        return "the only head"
    if len(some) == len(heads):
        return f"all {len(heads)} heads"
    if len(some) > _MOST_HEADS:
        return f"{len(some)} of {len(heads)} heads"
    numbers = ", ".join(str(head.head) for head in some)
    return f"head {numbers}" if len(some) == 1 else f"heads {numbers}"


def _broken_words(some: list[Head]) -> str:
    return "met scores that are nan or infinite, so nothing can be said: did q or k overflow?"


def _saturated_words(some: list[Head]) -> str:
    keys = max(head.keys for head in some)
    limit = f"√(2 ln {keys}) = {math.sqrt(2 * math.log(keys)):.1f}"
    return f"{_collapsed_words(some)}; random scores saturate softmax from about {limit} on."


def _copying_words(some: list[Head]) -> str:
    return (
        f"{_collapsed_words(some)}; that alone does not saturate softmax, so single keys stand "
        "out, as in a head that copies one position."
    )


def _collapsed_words(some: list[Head]) -> str:
    keys = max(head.keys for head in some)
    return (
        f"collapsed: normalised entropy {span_of((h.entropy for h in some), 3)}, below {COLLAPSED}."
        f" A row of {keys} keys attends to fewer than {keys}^{COLLAPSED} = {keys**COLLAPSED:.1f} "
        "of them, in effect. Standard deviation of the scaled scores within a row: "
        f"{span_of(h.score_std for h in some)}"
    )


def _uniform_words(some: list[Head]) -> str:
    entropy = span_of((head.entropy for head in some), 3)
    words = (
        f"went uniform: normalised entropy {entropy}, and scaled scores that differ "
        f"within a row by only {span_of(h.score_std for h in some)} (standard "
        "deviation), so the output is nearly the plain mean of the values. Before training, small "
        "weights do that and it is no fault; in a trained model these heads select nothing."
    )
    if all(head.seems_scaled for head in some):
        words += (
            f" The entries of q are {span_of(h.q_over_k for h in some)} of k's, near 1/√d_head: "
            "is the scale applied twice?"
        )
    return words


def _scale_warnings(heads: list[Head]) -> list[str]:
    """One for each unusual scale, with the layers that use it."""
    unusual: dict[tuple, list[Head]] = {}
    for head in heads:
        if not math.isclose(head.scale_ratio, 1, rel_tol=0.01):
            kind = f"{head.scale:.4g}", head.d_head, head.seems_scaled
            unusual.setdefault(kind, []).append(head)
    return [f"{_layers(some)}: {_scale_words(some, heads)}" for some in unusual.values()]


def _scale_words(some: list[Head], heads: list[Head]) -> str:
    scale, d_head = some[0].scale, some[0].d_head
    count = sum(head.layer == some[0].layer for head in heads)
    printed = f"{scale:.4g}" + (".0" if float(f"{scale:.4g}").is_integer() else "")
    words = f"scale {printed} at d_head {d_head}: {_guess(scale, d_head, count)}"
    if some[0].seems_scaled:
        words += (
            f" The entries of q are {span_of(h.q_over_k for h in some)} of k's, near 1/√d_head, "
            "so q was probably scaled before the call; that cannot be known from outside."
        )
    elif scale == 1.0:
        words += (
            " A model may have scaled q before, or folded the scale into its weights; that cannot "
            "be seen, but the spread of the scores can: within a row their standard deviation is "
            f"{span_of(h.score_std for h in some)}."
        )
    return words


def _guess(scale: float, d_head: int, heads: int) -> str:
    """What may have been meant by a scale that is not 1/√d_head."""
    known = (
        (1.0, "is 1/√d_head missing?"),
        (1 / d_head, "that is 1/d_head, as muP has it. Is the root missing?"),
        (math.sqrt(d_head), "that is √d_head. Multiplied where it should divide?"),
        (
            1 / math.sqrt(d_head * heads),
            "that is 1/√(heads · d_head). Is it 1/√d_model, not 1/√d_head?",
        ),
    )
    for usual, question in known:
        if math.isclose(scale, usual, rel_tol=0.01):
            return question
    return f"the usual one is 1/√d_head = {1 / math.sqrt(d_head):.4g}. Was this one chosen?"
