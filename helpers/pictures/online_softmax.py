"""Softmax of one row whose scores arrive in blocks: what is kept, and what each block changes."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from helpers.flash import OnlineStep, online_attention
from helpers.pictures import svg
from helpers.pictures.palette import ERROR, PAPER, QUIET, ROLES, RULE, TEXT, ink_on, tint

WIDTH, HEIGHT = 950.0, 584.0
MARGIN = 22.0
MOST = 12  # keys
# A row of V for each key: early rows are light above and heavy below, late ones the reverse.
VALUES = ((1, 8), (2, 7), (0, 9), (3, 6), (1, 9), (4, 7), (6, 3), (5, 5), (7, 2), (8, 1), (9, 3),
          (6, 0))  # fmt: skip

_LEFT, _COLUMN = 112.0, 42.0  # of the first key's column
_SCORES, _SCORES_TALL = 100.0, 96.0
_POWERS, _POWERS_TALL = 240.0, 76.0
_VALUES, _CELL = 350.0, 26.0
_STATE = 662.0  # left edge of what is kept
_PANEL = 436.0
_MONO = 12.5


@dataclass(frozen=True)
class OnlineState:
    """What the picture shows.

    scores : of one row, 1 to 12, in the order in which they arrive.
    block : how many arrive at once. step : blocks that have arrived, from 1 on.
    rescale : False leaves the factor e^{m_old − m_new} out.
    """

    scores: tuple[float, ...]
    block: int = 3
    step: int = 1
    rescale: bool = True

    @property
    def blocks(self) -> int:
        """How many blocks there are."""
        return -(-len(self.scores) // self.block)

    def _run(self, rescale: bool) -> tuple[OnlineStep, ...]:
        starts = range(0, len(self.scores), self.block)
        scores, values = np.array(self.scores), np.array(VALUES[: len(self.scores)], dtype=float)
        parts = [slice(start, start + self.block) for start in starts]
        return tuple(
            online_attention((scores[p] for p in parts), (values[p] for p in parts), rescale)
        )

    @cached_property
    def steps(self) -> tuple[OnlineStep, ...]:
        return self._run(self.rescale)

    @cached_property
    def right_steps(self) -> tuple[OnlineStep, ...]:
        """The same with the factor."""
        return self._run(True)

    @property
    def now(self) -> OnlineStep:
        return self.steps[self.step - 1]

    @property
    def right(self) -> OnlineStep:
        """What should be kept now."""
        return self.right_steps[self.step - 1]

    @property
    def keys(self) -> tuple[int, int]:
        """(first, last) key of the block that has just arrived, counted from 1."""
        return (self.step - 1) * self.block + 1, self.now.seen

    @property
    def error(self) -> float:
        """The largest difference between the output and softmax attention over the keys seen."""
        return float(np.abs(self.now.output - self.right.output).max())

    @cached_property
    def counted(self) -> np.ndarray:
        """(seen,), how much each score counts in l now; that is e^{score − m} where rescaled."""
        if self.rescale:
            return np.exp(np.array(self.scores[: self.now.seen]) - self.now.m)
        return np.concatenate([step.powers for step in self.steps[: self.step]])

    @cached_property
    def due(self) -> np.ndarray:
        """(seen,), how much each should count."""
        return np.exp(np.array(self.scores[: self.now.seen]) - self.now.m)


# ── numbers and words ────────────────────────────────────────────────────────────────────────────


def _decimals(state: OnlineState) -> int:
    return svg.decimals_needed(state.scores)


def fraction(value: float) -> str:
    """A factor or a power, 0 to 1 or a little more: three decimals, or a power of ten."""
    if value == 0 or value >= 0.0005:
        return svg.number(value, 3)
    mantissa, exponent = f"{value:.0e}".split("e")
    return f"{mantissa}·10{svg.superscript(int(exponent))}"


def _pair(values: np.ndarray, decimals: int = 3) -> str:
    return f"({', '.join(svg.number(value, decimals) for value in values)})"


def headline(state: OnlineState) -> str:
    """The question that the picture answers."""
    blocks = "the only block" if state.blocks == 1 else f"{state.step} of {state.blocks} blocks"
    return f"What is kept of a row after {blocks}?"


def describe(state: OnlineState) -> str:
    """The block that has just arrived, and what is kept now, in words and numbers."""
    now, digits = state.now, _decimals(state)
    first, last = state.keys
    which = f"key {first}" if first == last else f"keys {first} to {last}"
    scores = ", ".join(svg.number(score, digits) for score in now.scores)
    parts = [f"Block {state.step} of {state.blocks}, {which}, scores {scores}."]
    m = svg.number(now.m, digits)
    if state.step == 1:
        parts.append(f"Largest score m = {m}; there was nothing before.")
    else:
        old = svg.number(now.m_before, digits)
        factor = f"e^(m before − m) = e^({_gap(now, digits)}) = {fraction(now.rescale)}"
        if not now.new_max:
            parts.append(f"m stays {m}: the factor is 1, with it or without it.")
        elif state.rescale:
            parts.append(
                f"m rises from {old} to {m}: what was summed before is multiplied by {factor}."
            )
        else:
            parts.append(f"m rises from {old} to {m}, but the factor {factor} is left out.")
    seen = "the one key seen" if now.seen == 1 else f"the {now.seen} keys seen"
    parts.append(
        f"l = {svg.number(now.l, 3)}, output {_pair(now.output)}; softmax over {seen} gives"
        f" {_pair(state.right.output)}, error {svg.number(state.error, 3)}."
    )
    return " ".join(parts)


def _gap(now: OnlineStep, digits: int) -> str:
    """ "1.6 − 3.5", with brackets where the second number is negative."""
    return f"{svg.number(now.m_before, digits)} − {_signed(now.m, digits)}"


def _signed(value: float, digits: int) -> str:
    printed = svg.number(value, digits)
    return f"({printed})" if printed.startswith("−") else printed


# ── picture ──────────────────────────────────────────────────────────────────────────────────────


def picture(state: OnlineState) -> str:
    """The whole picture, as an SVG string. Pure: the same state gives the same string."""
    body = [
        svg.text(MARGIN, 32, svg.words(headline(state)), size=16, fill=TEXT, weight="bold"),
        _block_marks(state),
        _scores(state),
        _powers(state),
        _values(state),
        _kept(state),
        _arithmetic(state),
    ]
    return svg.document(WIDTH, HEIGHT, headline(state), describe(state), body)


def _middle(index: int) -> float:
    return _LEFT + (index + 0.5) * _COLUMN


def _row_name(y: float, name: str, role: str) -> str:
    return svg.text(_LEFT - 14, y, name, size=15, fill=ROLES[role].fill, anchor="end",
                    family=svg.SERIF, weight="bold", style="italic")  # fmt: skip


def _block_marks(state: OnlineState) -> str:
    """A bracket over each block, and a light ground under the one that has just arrived."""
    parts = []
    for number in range(1, state.blocks + 1):
        start, end = (number - 1) * state.block, min(number * state.block, len(state.scores))
        left, right = _LEFT + start * _COLUMN + 3, _LEFT + end * _COLUMN - 3
        now = number == state.step
        if now:
            parts.append(svg.rect(left, 60, right - left, 364, fill="#f1eef8", radius=8))
        label = f"block {number}" if state.block > 1 else f"{number}"
        parts += [
            svg.text((left + right) / 2, 54, label, size=12, fill=TEXT if now else QUIET,
                     anchor="middle", weight="bold" if now else "normal"),
            svg.path(f"M{svg.px(left)},64 v-4 H{svg.px(right)} v4",
                     stroke=ROLES["scores"].fill if now else RULE),
        ]  # fmt: skip
    return "".join(parts)


def _score_y(state: OnlineState, score: float) -> float:
    """Only differences of scores matter to softmax, so the lowest of them stands at the bottom."""
    low, high = min(state.scores), max(state.scores)
    share = (score - low) / (high - low) if high > low else 0.5
    return _SCORES + _SCORES_TALL * (1 - 0.1 - 0.9 * share)


def _scores(state: OnlineState) -> str:
    role, now, digits = ROLES["scores"], state.now, _decimals(state)
    bottom = _SCORES + _SCORES_TALL + 6
    parts = [_row_name(_SCORES + 50, "scores", "scores")]
    for i, score in enumerate(state.scores):
        x = _middle(i)
        parts.append(
            svg.path(f"M{svg.px(x)},{_SCORES} V{svg.px(bottom)}", stroke="#e6e8ed", line=4)
        )
        if i >= now.seen:
            parts.append(svg.text(x, bottom + 18, "?", size=12, fill=QUIET, anchor="middle"))
            continue
        y, printed = _score_y(state, score), svg.number(score, digits)
        size = min(12.5, (_COLUMN - 4) / svg.text_width(printed))
        parts += [
            svg.path(f"M{svg.px(x)},{svg.px(bottom)} V{svg.px(y)}", stroke=role.fill, line=4),
            f'<circle cx="{svg.px(x)}" cy="{svg.px(y)}" r="7" fill="{role.fill}"/>',
            svg.text(x, bottom + 18, printed, size=size, fill=TEXT, anchor="middle"),
        ]
    end = _LEFT + len(state.scores) * _COLUMN
    if state.step > 1 and now.new_max:
        y = _score_y(state, now.m_before)
        before = f"M{_LEFT},{svg.px(y)} H{svg.px(end)}"
        parts.append(svg.path(before, stroke=role.fill, line=1.2, dash="3 5"))
    y = _score_y(state, now.m)
    parts += [
        svg.path(f"M{_LEFT},{svg.px(y)} H{svg.px(end)}", stroke=role.fill, line=2),
        svg.text(end + 6, y + 4.5, "m", size=14, fill=role.fill, family=svg.SERIF, weight="bold",
                 style="italic"),
    ]  # fmt: skip
    return "".join(parts)


def _powers(state: OnlineState) -> str:
    role, now = ROLES["weights"], state.now
    bottom, wide = _POWERS + _POWERS_TALL, 26.0
    old = now.seen - len(now.scores)  # keys that were here before this block
    name = svg.sup("e", "score − m", 15)
    parts = [
        _row_name(_POWERS + 38, name, "weights"),
        svg.text(_LEFT - 14, _POWERS + 58, "counts in l as" if state.rescale else "still counts as",
                 size=11.5, fill=QUIET, anchor="end"),
        svg.path(f"M{_LEFT},{bottom} H{svg.px(_LEFT + len(state.scores) * _COLUMN)}", stroke=RULE,
                 line=1),
    ]  # fmt: skip
    for i in range(len(state.scores)):
        x = _middle(i)
        left = x - wide / 2
        parts.append(svg.rect(left, _POWERS, wide, _POWERS_TALL, fill=tint(role.fill, 0), radius=4))
        if i >= now.seen:
            parts.append(svg.text(x, bottom + 18, "?", size=12, fill=QUIET, anchor="middle"))
            continue
        share, due = float(state.counted[i]), float(state.due[i])
        tall = max(_POWERS_TALL * share, 1.0)
        parts.append(svg.rect(left, bottom - tall, wide, tall, fill=role.fill,
                              radius=min(4, tall / 2)))  # fmt: skip
        wrong = share > due * (1 + 1e-9)
        if wrong:  # the part that should be gone
            top, height = bottom - tall, tall - _POWERS_TALL * due
            parts.append(svg.rect(left, top, wide, height, fill=PAPER, stroke=ERROR, line=1.5,
                                  radius=3))  # fmt: skip
        elif i < old and now.new_max:  # as tall as it was before this block
            was = _POWERS_TALL * math.exp(state.scores[i] - now.m_before)
            parts.append(svg.rect(left, bottom - was, wide, was, stroke=role.fill, radius=4,
                                  dash="3 3"))  # fmt: skip
        printed = svg.number(share, 2)
        parts.append(svg.text(x, bottom + 18, printed, size=12.5, fill=ERROR if wrong else TEXT,
                              anchor="middle"))  # fmt: skip
    return "".join(parts)


def _values(state: OnlineState) -> str:
    role, wide = ROLES["V"], _COLUMN - 6
    parts = [_row_name(_VALUES + 31, "V", "V")]
    for i in range(len(state.scores)):
        left = _middle(i) - wide / 2
        for j, value in enumerate(VALUES[i]):
            top = _VALUES + j * (_CELL + 3)
            if i >= state.now.seen:
                parts.append(svg.rect(left, top, wide, _CELL, stroke=RULE, dash="3 4"))
                continue
            parts.append(_cell(left, top, wide, _CELL, str(value), tint(role.fill, value / 9)))
        parts.append(svg.text(_middle(i), _VALUES + 2 * _CELL + 19, f"{i + 1}", size=11.5,
                              fill=QUIET, anchor="middle"))  # fmt: skip
    parts.append(svg.text(_LEFT - 14, _VALUES + 2 * _CELL + 19, "key", size=11.5, fill=QUIET,
                          anchor="end"))  # fmt: skip
    return "".join(parts)


def _cell(x: float, y: float, width: float, height: float, printed: str, fill: str) -> str:
    return svg.rect(x, y, width, height, fill=fill) + svg.text(
        x + width / 2, y + height / 2 + 4.5, printed, size=13, fill=ink_on(fill), anchor="middle"
    )


# ── what is kept ─────────────────────────────────────────────────────────────────────────────────


def _kept(state: OnlineState) -> str:
    """The state between two blocks, and the output beside the right one."""
    now, digits = state.now, _decimals(state)
    right = WIDTH - MARGIN
    parts = [
        svg.rect(_STATE - 16, 48, right - _STATE + 16, 376, fill="none", stroke=RULE, radius=8),
        svg.text(_STATE, 70, "kept from block to block", size=12, fill=QUIET),
    ]
    if state.step == 1:
        factor, why = "–", "nothing to rescale yet"
    else:
        factor, why = fraction(now.rescale), svg.sup("e", _gap(now, digits), 12)
        if not now.new_max:
            why = "m has not changed"
    lines = [
        ("m", svg.number(now.m, digits), ROLES["scores"].text),
        ("l", svg.number(now.l, 3), ROLES["weights"].text),
        ("acc", _pair(now.acc, 2), ROLES["output"].text),
    ]
    y = 101.0
    for name, value, colour in lines:
        parts += [
            svg.text(_STATE, y, name, size=17, fill=colour, family=svg.SERIF, weight="bold",
                     style="italic"),
            svg.text(_STATE + 42, y, value, size=18, fill=colour, weight="bold"),
        ]  # fmt: skip
        y += 32
    parts.append(svg.path(f"M{_STATE},{svg.px(y - 16)} H{right - 16}", stroke="#e6e8ed", line=1))
    left_out = not state.rescale and state.step > 1
    colour = ERROR if left_out and now.new_max else TEXT
    y += 8
    parts.append(svg.text(_STATE, y, "rescale by", size=13, fill=QUIET))
    parts.append(svg.text(_STATE + 92, y, factor, size=17, fill=colour, weight="bold"))
    parts.append(svg.text(_STATE + 92, y + 17, why, size=12, fill=QUIET))
    if left_out and now.new_max:
        parts.append(svg.text(right - 16, y, "left out", size=13, fill=ERROR, anchor="end",
                              weight="bold"))  # fmt: skip
    y += 42
    parts.append(svg.path(f"M{_STATE},{svg.px(y - 14)} H{right - 16}", stroke="#e6e8ed", line=1))
    full = float(max(np.abs(now.output).max(), np.abs(state.right.output).max(), 1e-9))
    wide = (right - 16 - _STATE - 18) / 2
    for column, (step, name, note) in enumerate(
        (
            (now, "output", "acc ÷ l"),
            (state.right, "right", f"softmax, keys 1–{now.seen}" if now.seen > 1 else "key 1"),
        )
    ):
        x = _STATE + column * (wide + 18)
        parts.append(svg.text(x + wide / 2, y + 8, name, size=15, fill=ROLES["output"].fill,
                              anchor="middle", family=svg.SERIF, weight="bold",
                              style="italic"))  # fmt: skip
        for row, value in enumerate(step.output):
            fill = tint(ROLES["output"].fill, abs(float(value)) / full)
            parts.append(_cell(x, y + 18 + row * 34, wide, 30, svg.number(value, 3), fill))
        parts.append(svg.text(x + wide / 2, y + 100, note, size=11.5, fill=QUIET, anchor="middle"))
    wrong = state.error >= 0.0005
    said = f"error {svg.number(state.error, 3)}"
    parts.append(svg.text(_STATE, y + 136, said, size=20, fill=ERROR if wrong else TEXT,
                          weight="bold"))  # fmt: skip
    verdict = "what came first counts too much" if wrong else "exact, up to rounding"
    parts.append(svg.text(_STATE, y + 156, verdict, size=12, fill=QUIET))
    return "".join(parts)


# ── the arithmetic of the block ──────────────────────────────────────────────────────────────────


def _arithmetic(state: OnlineState) -> str:
    left_out = not state.rescale and state.step > 1 and bool(state.now.new_max)
    bottom = HEIGHT - 12
    colour = ERROR if left_out else ROLES["weights"].fill
    parts = [
        svg.rect(MARGIN, _PANEL, WIDTH - 2 * MARGIN, bottom - _PANEL, fill="#f6f7f9", radius=8),
        svg.rect(MARGIN, _PANEL, 4, bottom - _PANEL, fill=colour, radius=2),
        svg.text(MARGIN + 20, _PANEL + 24, _arithmetic_title(state), fill=TEXT, weight="bold"),
    ]
    for i, line in enumerate(_lines(state)):
        parts.append(svg.text(MARGIN + 20, _PANEL + 49 + 23 * i, line, size=_MONO, fill=TEXT,
                              family=svg.MONO))  # fmt: skip
    return "".join(parts)


def _arithmetic_title(state: OnlineState) -> str:
    if state.step == 1:
        return "The first block: its own softmax, not yet divided"
    if not state.now.new_max:
        return "No larger score came: the sums stay as they are, and grow"
    if state.rescale:
        return "A larger score came: shrink what was summed, then add the block"
    return "A larger score came, but what was summed is not shrunk: the two parts do not fit"


def _strong(printed: str, role: str) -> str:
    return svg.span(printed, ROLES[role].text, bold=True)


def _lines(state: OnlineState) -> list[str]:
    now, digits = state.now, _decimals(state)
    largest = svg.number(now.scores.max(), digits)
    m = _strong(svg.number(now.m, digits), "scores")
    first = state.step == 1
    lines = [
        f"m   = largest of the block = {m}" if first
        else f"m   = max({svg.number(now.m_before, digits)}, {largest}) = {m}"
    ]  # fmt: skip
    if now.m > 709:  # ln of the largest float64
        lines[0] += f"    (e^{svg.number(now.m, digits)} itself overflows float64)"

    applied = not first and bool(now.new_max) and state.rescale
    factor = f"{fraction(float(now.rescale))} · " if applied else ""
    l_before = "" if first else f"{factor}{svg.number(now.l_before, 3)} + "
    acc_before = "" if first else f"{factor}{_pair(now.acc_before, 2)} + "
    lines += [
        f"l   = {l_before}{_sum(now)} ≈ {_strong(svg.number(now.l, 3), 'weights')}",
        f"acc = {acc_before}{_weighted(now)} ≈ {_pair(now.acc, 2)}",
        f"output = {_pair(now.acc, 2)} ÷ {svg.number(now.l, 3)} ≈ "
        f"{_strong(_pair(now.output), 'output')}",
    ]
    return lines


def _sum(now: OnlineStep) -> str:
    """What the block adds to l: its powers, or their sum where they are many."""
    count, total = len(now.powers), svg.number(now.powers.sum(), 3)
    if count > 6:
        return f"{count} powers" if now.number == 1 else f"{total} ({count} powers)"
    terms = " + ".join(svg.span(fraction(p), ROLES["weights"].text) for p in now.powers)
    return f"({terms})" if count > 1 and now.number > 1 else terms


def _weighted(now: OnlineStep) -> str:
    """What the block adds to acc: each power times its row of V."""
    count, rows = len(now.powers), VALUES[now.seen - len(now.powers) : now.seen]
    if count > 3:
        if now.number == 1:
            return f"{count} powers times their rows of V"
        return f"{_pair(now.powers @ np.array(rows), 2)} ({count} powers times rows of V)"
    return " + ".join(
        svg.span(fraction(p), ROLES["weights"].text)
        + "·"
        + svg.span(f"({', '.join(map(str, row))})", ROLES["V"].text)
        for p, row in zip(now.powers, rows)
    )
