"""Attention by hand: every matrix of one small attention, and the arithmetic of one row."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, partial

import numpy as np

from helpers.attention import AttentionSteps, attention_steps
from helpers.pictures import svg
from helpers.pictures.matrices import (
    CAPTION_HEIGHT,
    GAP,
    LABEL_HEIGHT,
    ROW_HEIGHT,
    TITLE_HEIGHT,
    Block,
    Matrix,
    draw,
    height,
    label_width,
    operator,
)
from helpers.pictures.palette import PAPER, QUIET, ROLES, RULE, TEXT, tint

WIDTH = 950.0
MARGIN = 22.0
STEPS = ("scores", "scale", "softmax", "output")
DIVISORS = ("none", "√d_k", "d_k")
_STEP_ROLES = ("scores", "scores", "weights", "output")
_LINE = 23.0  # height of a line of arithmetic
_SIZE = 13.0  # its font size


@dataclass(frozen=True)
class ByHand:
    """What the picture shows.

    tokens : names, one a row of q, k and v.
    q, k : (T, d_k);  v : (T, d_v).
    divisor : one of `DIVISORS`, what the scores are divided by.
    row : the query whose arithmetic is written out.
    step : 1 scores, 2 scale, 3 softmax, 4 output; later matrices stay empty.
    """

    tokens: tuple[str, ...]
    q: np.ndarray
    k: np.ndarray
    v: np.ndarray
    divisor: str = "√d_k"
    row: int = 0
    step: int = 4

    @property
    def d_k(self) -> int:
        return self.q.shape[1]

    @property
    def divided_by(self) -> float:
        return {"none": 1.0, "√d_k": float(np.sqrt(self.d_k)), "d_k": float(self.d_k)}[self.divisor]

    @property
    def divisor_sign(self) -> str:
        """The divisor with its number in it: "√4", "4", or "" for none."""
        return {"none": "", "√d_k": f"√{self.d_k}", "d_k": f"{self.d_k}"}[self.divisor]

    @cached_property
    def steps(self) -> AttentionSteps:
        return attention_steps(self.q, self.k, self.v, scale=1.0 / self.divided_by)


# ── words ────────────────────────────────────────────────────────────────────────────────────────


def headline(state: ByHand) -> str:
    """The question that the picture answers."""
    return f"What does “{state.tokens[state.row]}” take from each token?"


def describe(state: ByHand) -> str:
    """The chosen row in words and numbers, up to the step taken."""
    s, row = state.steps, state.row
    decimals = svg.decimals_needed(s.scaled)
    divided = f"divided by {state.divisor_sign}" if state.divisor_sign else "left undivided"
    parts = [
        f"scores {_listed(s.scores[row], svg.decimals_needed(s.scores))}",
        f"{divided}: {_listed(s.scaled[row], decimals)}",
        f"weights {_listed(s.weights[row], 3)}",
        f"output {_listed(s.output[row], 3)}",
    ]
    said = "; ".join(parts[: state.step])
    return f"Step {state.step} of 4, {STEPS[state.step - 1]}. Row {state.tokens[row]}: {said}."


def _listed(values: np.ndarray, decimals: int) -> str:
    return ", ".join(svg.number(value, decimals) for value in values)


# ── layout ───────────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True)
class Layout:
    """The drawn matrices, and the height of the whole picture."""

    blocks: dict[str, Block]
    panel_top: float
    height: float


def _matrices(state: ByHand) -> dict[str, Matrix]:
    """The seven matrices in reading order; those of later steps are hidden."""
    steps, tokens, row, step = state.steps, state.tokens, state.row, state.step
    narrow = 56 if len(tokens) <= 3 else 44  # 950 px hold two score matrices, just
    divided = f"scores ÷ {state.divisor_sign}" if state.divisor_sign else "scores, undivided"
    chosen = partial(Matrix, chosen_row=row)
    full = float(np.abs(steps.scores).max())  # one scale of tints for scores and scaled scores
    return {
        "Q": chosen(state.q, "Q", rows=tokens, cell_width=40),
        "K": Matrix(state.k.T, "K", "Kᵀ", columns=tokens, cell_width=40),
        "scores": chosen(
            steps.scores, "scores", columns=tokens, caption="q · k", cell_width=narrow,
            full=full,
        ),
        "scaled": chosen(
            steps.scaled, "scores", "scaled", columns=tokens, caption=divided, cell_width=narrow,
            hidden=step < 2, full=full,
        ),
        "weights": chosen(
            steps.weights, "weights", decimals=3, rows=tokens, columns=tokens, full=1.0,
            caption="each row sums to 1", cell_width=56, hidden=step < 3,
        ),
        "V": Matrix(state.v, "V", rows=tokens, cell_width=40),
        "output": chosen(steps.output, "output", decimals=3, cell_width=60, hidden=step < 4),
    }  # fmt: skip


def layout(state: ByHand) -> Layout:
    """Draw and place the seven matrices: in two lines, as 950 px do not hold them in one."""
    matrices, count = _matrices(state), len(state.tokens)
    names = max(label_width(state.tokens), 40.0)
    tallest = max(height(state.d_k), height(count))
    first = 52 + TITLE_HEIGHT + LABEL_HEIGHT
    second = first + tallest + CAPTION_HEIGHT + 38 + TITLE_HEIGHT + LABEL_HEIGHT

    # What stands before each matrix: row labels, a sign, an arrow.
    room = {"Q": names, "K": 34, "scores": 38, "scaled": 58 if count <= 3 else 50,
            "weights": names, "V": 26 + names, "output": 38}  # fmt: skip
    blocks: dict[str, Block] = {}
    x = MARGIN
    for name, matrix in matrices.items():
        on_first_line = name in ("Q", "K", "scores", "scaled")
        if name == "weights":
            x = MARGIN
        slack = tallest - height(matrix.values.shape[0]) if on_first_line else 0
        blocks[name] = draw(matrix, x + room[name], first + slack / 2 if on_first_line else second)
        x = blocks[name].right

    panel_top = second + height(count) + CAPTION_HEIGHT + 12
    return Layout(blocks, panel_top, panel_top + 38 + max(3, count) * _LINE + 12)


def picture(state: ByHand) -> str:
    """The whole picture, as an SVG string. Pure: the same state gives the same string."""
    plan = layout(state)
    b = plan.blocks
    body = [
        svg.text(MARGIN, 32, svg.words(headline(state)), size=16, fill=TEXT, weight="bold"),
        _progress(state.step),
        *(block.body for block in b.values()),
        operator((b["Q"].right + b["K"].x) / 2, b["Q"].middle[1], "·"),
        operator((b["K"].right + b["scores"].x) / 2, b["K"].middle[1], "="),
        _scale_arrow(state, b),
        _softmax_arrow(state, b),
        operator(b["weights"].right + 18, b["weights"].middle[1], "·"),
        operator((b["V"].right + b["output"].x) / 2, b["V"].middle[1], "="),
        _shares(state, b["output"]),
        _arithmetic(state, plan.panel_top, plan.height - 12),
    ]
    return svg.document(WIDTH, plan.height, headline(state), describe(state), body)


def _badge(x: float, y: float, step: int, *, done: bool) -> str:
    colour = ROLES[_STEP_ROLES[step - 1]].fill
    circle = (
        f'<circle cx="{svg.px(x)}" cy="{svg.px(y)}" r="10" fill="{colour if done else PAPER}"'
        f' stroke="{colour if done else RULE}" stroke-width="1.5"/>'
    )
    return circle + svg.text(x, y + 4.3, str(step), size=12, fill=PAPER if done else QUIET,
                             anchor="middle", weight="bold")  # fmt: skip


def _progress(step: int) -> str:
    """The four steps, top right; the current one is bold."""
    widths = [27 + 8.2 * len(name) + 22 for name in STEPS]
    parts, x = [], WIDTH - MARGIN - sum(widths) + 22
    for i, (name, width) in enumerate(zip(STEPS, widths), start=1):
        now = i == step
        parts.append(_badge(x + 10, 27, i, done=i <= step))
        parts.append(
            svg.text(x + 27, 31.5, name, fill=TEXT if now else QUIET,
                     weight="bold" if now else "normal")
        )  # fmt: skip
        x += width
    return "".join(parts)


def _scale_arrow(state: ByHand, b: dict[str, Block]) -> str:
    x, end, y = b["scores"].right + 9, b["scaled"].x - 10, b["scores"].middle[1]
    colour = RULE if state.step < 2 else QUIET
    label = f"÷ {state.divisor_sign}" if state.divisor_sign else "as is"
    return (
        svg.text((x + end) / 2, y - 10, label, fill=QUIET, anchor="middle")
        + svg.path(f"M{svg.px(x)},{svg.px(y)} H{svg.px(end)}", stroke=colour)
        + svg.arrow_head(end, y, "right", colour)
    )


def _softmax_arrow(state: ByHand, b: dict[str, Block]) -> str:
    """From the last matrix of the first line to the first of the second, like a line break."""
    start, end = b["scaled"], b["weights"]
    colour = RULE if state.step < 3 else QUIET
    x0, y0, x1 = start.right + 9, start.middle[1], end.middle[0]
    turn = b["K"].bottom + CAPTION_HEIGHT + 12 if b["K"].bottom > start.bottom else (
        start.bottom + CAPTION_HEIGHT + 12
    )  # fmt: skip
    tip = end.y - TITLE_HEIGHT - LABEL_HEIGHT - 10
    d = (
        f"M{svg.px(x0)},{svg.px(y0)} h4 q8,0 8,8 V{svg.px(turn - 8)} q0,8 -8,8"
        f" H{svg.px(x1 + 8)} q-8,0 -8,8 V{svg.px(tip)}"
    )
    label_x = b["scores"].x
    return (
        svg.path(d, stroke=colour)
        + svg.arrow_head(x1, tip, "down", colour)
        + svg.rect(label_x - 74, turn - 10, 148, 20, fill=PAPER, radius=0)
        + svg.text(label_x, turn + 4.5, "softmax of each row", fill=QUIET, anchor="middle")
    )


def _shares(state: ByHand, output: Block) -> str:
    """The chosen row's weights as bars: what it takes from each token."""
    if state.step < 3:
        return ""
    role, left = ROLES["weights"], output.right + 40
    names = max(label_width(state.tokens), 40.0)
    full = WIDTH - MARGIN - 46 - left - names  # the room of a weight of 1
    parts = [
        svg.text(left + names, output.y - 10, "weights of " +
                 svg.words(f"“{state.tokens[state.row]}”"), size=11.5, fill=QUIET)
    ]  # fmt: skip
    for j, (token, weight) in enumerate(zip(state.tokens, state.steps.weights[state.row])):
        top = output.y + j * (ROW_HEIGHT + GAP)
        parts += [
            svg.text(left + names - 10, top + 21.5, svg.words(token), fill=QUIET, anchor="end"),
            svg.rect(left + names, top + 7, full, 20, fill=tint(role.fill, 0.0), radius=5),
            svg.rect(left + names, top + 7, max(full * weight, 1.5), 20, fill=role.fill,
                     radius=min(5, max(full * weight / 2, 0.7))),
            svg.text(left + names + full + 7, top + 21.5, f"{100 * weight:.0f} %", fill=TEXT),
        ]  # fmt: skip
    return "".join(parts)


# ── the arithmetic of the chosen row ─────────────────────────────────────────────────────────────


def _arithmetic(state: ByHand, top: float, bottom: float) -> str:
    lines, title = _ARITHMETIC[state.step - 1](state)
    colour = ROLES[_STEP_ROLES[state.step - 1]].fill
    parts = [
        svg.rect(MARGIN, top, WIDTH - 2 * MARGIN, bottom - top, fill="#f6f7f9", radius=8),
        svg.rect(MARGIN, top, 4, bottom - top, fill=colour, radius=2),
        _badge(MARGIN + 24, top + 20, state.step, done=True),
        svg.text(MARGIN + 43, top + 24.5, title, fill=TEXT, weight="bold"),
    ]
    for i, line in enumerate(lines):
        for j, column in enumerate(line.split("\t")):
            x, y = MARGIN + 43 + 250 * j, top + 49 + i * _LINE
            parts.append(svg.text(x, y, column, size=_SIZE, fill=TEXT, family=svg.MONO))
    return "".join(parts)


def _signed(value: float, decimals: int) -> str:
    """A factor: negative ones in brackets, so that a product reads as one."""
    printed = svg.number(value, decimals)
    return f"({printed})" if printed.startswith("−") else printed


def _rounds(value: float, decimals: int) -> str:
    """= where the printed number is exact, ≈ where it is rounded."""
    return "=" if np.isclose(value, np.round(value, decimals), rtol=1e-9, atol=0) else "≈"


def _score_lines(state: ByHand) -> tuple[list[str], str]:
    q, name = state.q[state.row], svg.words(state.tokens[state.row])
    q_digits, k_digits = svg.decimals_needed(state.q), svg.decimals_needed(state.k)
    digits = svg.decimals_needed(state.steps.scores)
    lines = []
    for token, key, score in zip(state.tokens, state.k, state.steps.scores[state.row]):
        products = " + ".join(
            svg.span(_signed(a, q_digits), ROLES["Q"].text)
            + "·"
            + svg.span(_signed(b, k_digits), ROLES["K"].text)
            for a, b in zip(q, key)
        )
        sign, total = _rounds(score, digits), _strong(svg.number(score, digits), "scores")
        lines.append(
            f"{_vector('q', name, 'Q')} · {_vector('k', svg.words(token), 'K')}"
            f" = {products} {sign} {total}"
        )
    return lines, "Multiply the query with each key, entry by entry, and add up"


def _scale_lines(state: ByHand) -> tuple[list[str], str]:
    scores, scaled = state.steps.scores[state.row], state.steps.scaled[state.row]
    before, after = svg.decimals_needed(scores), svg.decimals_needed(state.steps.scaled)
    if not state.divisor_sign:
        values = "   ".join(_strong(svg.number(x, after), "scores") for x in scaled)
        return [values], "No division: the scores go into the softmax as they are"
    lines = [
        f"{svg.number(a, before)} ÷ {state.divisor_sign} {_rounds(b, after)}"
        f" {_strong(svg.number(b, after), 'scores')}"
        for a, b in zip(scores, scaled)
    ]
    why = f"√d_k = √{state.d_k}" if state.divisor == "√d_k" else f"d_k = {state.d_k}"
    return lines, f"Divide each score by {why}"


def _softmax_lines(state: ByHand) -> tuple[list[str], str]:
    scaled, weights = state.steps.scaled[state.row], state.steps.weights[state.row]
    # Subtracting the largest score changes no weight; by hand it only pays when e^x gets long.
    shift = float(scaled.max()) if scaled.max() >= 10 else 0.0
    exponents = scaled - shift
    powers = np.exp(exponents)
    total, digits = powers.sum(), svg.decimals_needed(state.steps.scaled)
    shown = [svg.sup("e", svg.number(x, digits), _SIZE) for x in exponents]
    lines = [
        f"{e} {_rounds(p, 3)} {svg.number(p, 3)}\t{svg.number(p, 3)} ÷ {svg.number(total, 3)}"
        f" ≈ {_strong(svg.number(w, 3), 'weights')}"
        for e, p, w in zip(shown, powers, weights)
    ]
    title = f"Exponentiate, then divide by the sum, {svg.number(total, 3)}"
    if shift:
        title = (
            f"Subtract the largest, {svg.number(shift, digits)}; exponentiate;"
            f" divide by the sum, {svg.number(total, 3)}"
        )
    return lines, title


def _output_lines(state: ByHand) -> tuple[list[str], str]:
    weights, output = state.steps.weights[state.row], state.steps.output[state.row]
    digits, name = svg.decimals_needed(state.v), svg.words(state.tokens[state.row])
    lines = []
    for column, result in enumerate(output):
        products = " + ".join(
            svg.span(svg.number(w, 3), ROLES["weights"].text)
            + "·"
            + svg.span(_signed(x, digits), ROLES["V"].text)
            for w, x in zip(weights, state.v[:, column])
        )
        place = svg.sub("output", f"{name},{column + 1}", _SIZE)
        lines.append(f"{place} ≈ {products} ≈ {_strong(svg.number(result, 3), 'output')}")
    return lines, "Weigh the rows of V and add up (with the unrounded weights)"


def _vector(letter: str, index: str, role: str) -> str:
    return svg.span(svg.sub(letter, index, _SIZE), ROLES[role].text)


def _strong(printed: str, role: str) -> str:
    return svg.span(printed, ROLES[role].text, bold=True)


_ARITHMETIC: tuple[Callable[[ByHand], tuple[list[str], str]], ...] = (
    _score_lines,
    _scale_lines,
    _softmax_lines,
    _output_lines,
)
