"""Tiled attention over slow and fast memory: what is where, what has moved, what never exists."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

import numpy as np

from helpers.flash import MemoryTraffic, TilePlan, memory_traffic
from helpers.pictures import svg
from helpers.pictures.palette import ERROR, QUIET, ROLES, RULE, TEXT, ink_on, tint

WIDTH, HEIGHT = 950.0, 574.0
MARGIN = 22.0
BYTES = 2  # a number, as in float16
MOST = 32  # fields of a row or a column of the grid; where there are more tiles, several share one

_SIDE = 262.0  # of the grid
_GRID_X, _GRID_Y = 118.0, 136.0
_SLOW = (MARGIN, 48.0, 500.0, 412.0)  # x, y, width, height of a region
_FAST = (540.0, 48.0, WIDTH - MARGIN - 540.0, 412.0)
_STRIP = 16.0
_QUEUE, _DONE, _NOW = "#eef0f3", tint(ROLES["scores"].fill, 0.3), ROLES["scores"].fill


@dataclass(frozen=True)
class TilesState:
    """What the picture shows: one head, float16.

    T : queries, and keys. d : numbers a row. fast_memory : bytes. is_causal : skip tiles above the
    diagonal. outer : "queries" or "keys", which loop is outside. step : tiles done, this one too.
    """

    T: int = 1024
    d: int = 64
    fast_memory: int = 64 * 1024
    is_causal: bool = False
    outer: str = "queries"
    step: int = 1

    @cached_property
    def traffic(self) -> MemoryTraffic:
        return memory_traffic(self.T, self.d, self.fast_memory, BYTES, self.is_causal, self.outer)

    @cached_property
    def plan(self) -> TilePlan:
        return self.traffic.plan

    @property
    def tile(self) -> tuple[int, int]:
        """(index of the Q block, index of the K block) now in fast memory."""
        return self.plan.tile(self.step)

    @property
    def moved(self) -> tuple[int, int]:
        """(bytes read, bytes written) so far."""
        return self.plan.moved(self.step)

    @property
    def moved_now(self) -> tuple[int, int]:
        """(bytes read, bytes written) for this tile alone."""
        before = self.plan.moved(self.step - 1)
        return self.moved[0] - before[0], self.moved[1] - before[1]


# ── numbers and words ────────────────────────────────────────────────────────────────────────────


def size(count: float) -> str:
    """Bytes for people: "768 B", "2.25 KB", "12.1 MB"; three digits; 1 KB is 1,024 bytes."""
    for unit, name in ((1, "B"), (1024, "KB"), (1024**2, "MB"), (1024**3, "GB")):
        if count < 1000 * unit or name == "GB":
            break
    value = count / unit
    decimals = 0 if unit == 1 or value >= 99.95 else 1 if value >= 9.995 else 2
    printed = svg.number(value, decimals)
    if "." in printed:
        printed = printed.rstrip("0").rstrip(".")
    return f"{printed} {name}"


def _span(first_and_end: tuple[int, int]) -> str:
    first, end = first_and_end
    return f"{first + 1}–{end}" if end > first + 1 else f"{end}"


def headline(state: TilesState) -> str:
    """Which tile is in fast memory."""
    i, j = state.tile
    return (
        f"Tile {state.step:,} of {state.plan.tiles:,}: queries {_span(state.plan.queries(i))} "
        f"meet keys {_span(state.plan.keys(j))}"
    )


def compared(state: TilesState) -> str:
    """Plain attention's bytes against tiled attention's, in words."""
    ratio = state.traffic.ratio
    if abs(ratio - 1) < 0.005:
        return "as much as tiled"
    if ratio > 1:
        return f"{_times(ratio)} times as much as tiled"
    return f"less: tiled moves {_times(1 / ratio)} times as much"


def _times(ratio: float) -> str:
    return f"{ratio:.2f}" if ratio < 9.995 else f"{ratio:.1f}"


def describe(state: TilesState) -> str:
    """Sizes, the tile and the bytes, in words and numbers."""
    traffic, plan = state.traffic, state.plan
    skipped = f", {plan.skipped:,} more skipped as causal" if plan.skipped else ""
    tiles = "1 tile" if plan.tiles == 1 else f"{plan.tiles:,} tiles"
    read, written = state.moved_now
    writes = f"writes {size(written)}" if written else "writes nothing"
    return (
        f"T = {state.T}, d = {state.d}, {BYTES} bytes a number, {size(state.fast_memory)} of fast "
        f"memory: blocks of {traffic.block_q} queries and {traffic.block_k} keys fit "
        f"({size(traffic.blocks_held)}); {tiles}{skipped}, {state.outer} in the outer loop. "
        f"{headline(state)}; it reads {size(read)} and {writes}. Moved so far "
        f"{size(sum(state.moved))} of {size(traffic.tiled)}; plain attention moves "
        f"{size(traffic.plain)}, {compared(state)}. The {state.T} × {state.T} scores would take "
        f"{size(traffic.score_matrix)}; they are never stored."
    )


# ── picture ──────────────────────────────────────────────────────────────────────────────────────


def picture(state: TilesState) -> str:
    """The whole picture, as an SVG string. Pure: the same state gives the same string."""
    body = [
        svg.text(MARGIN, 32, svg.words(headline(state)), size=16, fill=TEXT, weight="bold"),
        _region(*_SLOW, "slow memory (HBM)"),
        _slow_memory(state),
        _region(*_FAST, f"fast memory (SRAM), {size(state.fast_memory)}"),
        _fast_memory(state),
        _counters(state),
    ]
    return svg.document(WIDTH, HEIGHT, headline(state), describe(state), body)


def _region(x: float, y: float, width: float, height: float, name: str) -> str:
    return svg.rect(x, y, width, height, fill="#fbfbfc", stroke=RULE, radius=10) + svg.text(
        x + 14, y + 22, name, size=13, fill=TEXT, weight="bold"
    )


def _fields(blocks: int) -> np.ndarray:
    """Where the drawn fields of a row or column begin, in blocks: at most 32."""
    return np.arange(0, blocks, -(-blocks // MOST))


def _edges(starts: np.ndarray, block: int, T: int) -> np.ndarray:
    """The fields' edges in pixels, from 0 to the side of the grid."""
    return np.append(starts * block, T) * (_SIDE / T)


def _box(x: str, width: str, y: str, height: str) -> str:
    return f"M{x},{y}h{width}v{height}h-{width}z"


def _path(d: str, fill: str, stroke: str = "none") -> str:
    outline = "" if stroke == "none" else f' stroke="{stroke}" stroke-width="1"'
    return f'<path d="{d}" fill="{fill}"{outline}/>' if d else ""


def _boxes(boxes, fill: str, stroke: str = "none") -> str:
    """Many rectangles (x, y, width, height) of one colour, as one path."""
    d = "".join(_box(svg.px(x), svg.px(w), svg.px(y), svg.px(h)) for x, y, w, h in boxes)
    return _path(d, fill, stroke)


def _inset(start: float, end: float) -> tuple[float, float]:
    """(start, length) of a field with a gap around it, where there is room for one."""
    gap = 1.0 if end - start > 4 else 0.3
    return start + gap / 2, max(end - start - gap, 0.4)


def _slow_memory(state: TilesState) -> str:
    plan, (i, j) = state.plan, state.tile
    rows, columns = _fields(plan.rows), _fields(plan.columns)
    ys = _GRID_Y + _edges(rows, plan.block_q, state.T)
    xs = _GRID_X + _edges(columns, plan.block_k, state.T)
    row = int(np.searchsorted(rows, i, side="right")) - 1
    column = int(np.searchsorted(columns, j, side="right")) - 1
    parts = [
        _strip("Q", xs=(_GRID_X - 12 - _STRIP, _STRIP), ys=ys, now=row),
        _output(state, ys, row),
        _strip("V", xs=xs, ys=(_GRID_Y - 12 - _STRIP, _STRIP), now=column),
        _strip("K", xs=xs, ys=(_GRID_Y - 16 - 2 * _STRIP, _STRIP), now=column),
        _grid(state, rows, columns, xs, ys, row, column),
        _slow_words(state),
    ]
    return "".join(parts)


def _letter(x: float, y: float, name: str, anchor: str) -> str:
    role = ROLES[name]
    return svg.text(x, y, role.symbol, size=15, fill=role.fill, family=svg.SERIF, weight="bold",
                    style="italic", anchor=anchor)  # fmt: skip


def _strip(name: str, *, xs, ys, now: int) -> str:
    """Q, K or V in slow memory, cut into the drawn fields; the one in fast memory is full."""
    role, vertical = ROLES[name], name == "Q"
    edges = ys if vertical else xs
    boxes = []
    for start, end in pairwise(edges):
        at, length = _inset(start, end)
        boxes.append((xs[0], at, xs[1], length) if vertical else (at, ys[0], length, ys[1]))
    left, base = (xs[0] - 9, _GRID_Y + _SIDE / 2 + 5) if vertical else (_GRID_X - 12, ys[0] + 13.5)
    label = _letter(left, base, name, "end")
    rest = boxes[:now] + boxes[now + 1 :]
    return label + _boxes(rest, tint(role.fill, 0.2)) + _boxes([boxes[now]], role.fill)


def _output(state: TilesState, ys: np.ndarray, row: int) -> str:
    """The output on the right of the grid: what has been written, and what not."""
    role, x = ROLES["output"], _GRID_X + _SIDE + 12
    boxes = [(x, at, _STRIP, length) for at, length in map(_inset, ys, ys[1:])]
    if state.outer == "keys":
        written = len(boxes)  # zeros at first, then again and again
    else:
        written = row + 1 if state.moved_now[1] and _last_of_field(state, row) else row
    parts = [
        _letter(x + _STRIP + 9, _GRID_Y + _SIDE / 2 + 5, "output", "start"),
        _boxes(boxes[written:], "#ffffff", RULE),
        _boxes(boxes[:written], tint(role.fill, 0.35)),
    ]  # fmt: skip
    now = boxes[row]
    parts.append(_boxes([now], role.fill if row < written else "#ffffff", role.fill))
    return "".join(parts)


def _last_of_field(state: TilesState, row: int) -> bool:
    """Whether the Q block now in fast memory is the last one of its drawn field."""
    starts = _fields(state.plan.rows)
    end = starts[row + 1] if row + 1 < len(starts) else state.plan.rows
    return state.tile[0] == end - 1


def _grid(state: TilesState, rows, columns, xs, ys, row: int, column: int) -> str:
    """The tiles: done, now, to come, never touched."""
    computed, done = state.plan.counts(rows, columns, state.step)
    # Each coordinate is written once, not once for each of up to 1,024 fields.
    tall = [(svg.px(y), svg.px(h)) for y, h in map(_inset, ys, ys[1:])]
    wide = [(svg.px(x), svg.px(w)) for x, w in map(_inset, xs, xs[1:])]

    def boxes(which: np.ndarray, fill: str) -> str:
        places = zip(*(axis.tolist() for axis in np.nonzero(which)))
        return _path("".join(_box(*wide[c], *tall[r]) for r, c in places), fill)

    waiting, started = (computed > 0) & (done == 0), done > 0
    now = np.zeros_like(started)
    now[row, column] = True
    frame = svg.rect(_GRID_X - 3, _GRID_Y - 3, _SIDE + 6, _SIDE + 6, stroke=RULE, radius=3,
                     dash="2 4")  # fmt: skip
    return frame + boxes(waiting, _QUEUE) + boxes(started & ~now, _DONE) + boxes(now, _NOW)


def _slow_words(state: TilesState) -> str:
    plan, traffic = state.plan, state.traffic
    each = state.T * state.d * BYTES
    left, bottom = _GRID_X, _GRID_Y + _SIDE
    parts = [
        svg.text(_SLOW[0] + 14, bottom + 26, f"{state.T} × {state.T} scores: never stored, "
                 f"would take {size(traffic.score_matrix)}", size=12.5, fill=ROLES["scores"].text),
        svg.text(_SLOW[0] + 14, bottom + 46, _drawn(plan), size=11.5, fill=QUIET),
        svg.text(_SLOW[0] + _SLOW[2] - 14, 70, f"Q, K, V, O in float16: {size(each)} each", size=12,
                 fill=QUIET, anchor="end"),
    ]  # fmt: skip
    if plan.skipped:  # in the white corner
        parts.append(svg.text(left + _SIDE - 10, _GRID_Y + 22, "never touched", size=12,
                              fill=QUIET, anchor="end"))  # fmt: skip
    x = _GRID_X + _SIDE + 44
    for n, (fill, name) in enumerate(((_NOW, "now"), (_DONE, "done"), (_QUEUE, "to come"))):
        y = bottom - 44 + 20 * n
        parts.append(svg.rect(x, y - 10, 11, 11, fill=fill, radius=2))
        parts.append(svg.text(x + 17, y, name, size=11.5, fill=QUIET))
    return "".join(parts)


def _drawn(plan: TilePlan) -> str:
    """What a square of the drawing stands for."""
    down, across = (-(-n // MOST) for n in (plan.rows, plan.columns))
    grid = f"{plan.rows} × {plan.columns} tiles of {plan.block_q} × {plan.block_k}"
    return grid if down == across == 1 else f"{grid}; a field drawn is {down} × {across} of them"


# ── fast memory ──────────────────────────────────────────────────────────────────────────────────


def _fast_memory(state: TilesState) -> str:
    """The blocks that are in fast memory, arranged as in the grid, and how full it is."""
    plan, traffic, (i, j) = state.plan, state.traffic, state.tile
    d = state.d
    query_rows, key_rows = (b - a for a, b in (plan.queries(i), plan.keys(j)))
    longest = max(traffic.block_q, traffic.block_k)
    scale = 124.0 / longest  # pixels a row, so that both kinds of block keep their shape
    wide, tall = max(26.0, key_rows * scale), max(26.0, query_rows * scale)
    x, y = _FAST[0] + _FAST[2] / 2 - wide / 2, 156.0
    keys, queries = f"{key_rows} × {d}", f"{query_rows} × {d}"
    parts = [
        svg.rect(x, y - 64, wide, 24, fill=ROLES["K"].fill, radius=3),
        svg.rect(x, y - 34, wide, 24, fill=ROLES["V"].fill, radius=3),
        svg.rect(x - 34, y, 24, tall, fill=ROLES["Q"].fill, radius=3),
        svg.rect(x + wide + 10, y, 24, tall, fill=ROLES["output"].fill, radius=3),
        svg.rect(x, y, wide, tall, fill=_NOW, radius=3),
        _letter(x - 10, y - 47, "K", "end"),
        _letter(x - 10, y - 17, "V", "end"),
        svg.text(x + wide + 8, y - 47.5, keys, size=11.5, fill=QUIET),
        svg.text(x + wide + 8, y - 17.5, keys, size=11.5, fill=QUIET),
        _letter(x - 44, y + tall / 2 + 5, "Q", "end"),
        svg.text(x - 22, y + tall + 16, queries, size=11.5, fill=QUIET, anchor="middle"),
        _letter(x + wide + 44, y + tall / 2 + 5, "output", "start"),
        svg.text(x + wide + 22, y + tall + 16, queries, size=11.5, fill=QUIET, anchor="middle"),
    ]
    middle = y + tall / 2
    if wide >= 50 and tall >= 34:
        ink = ink_on(_NOW)
        parts += [
            svg.text(x + wide / 2, middle - 1, "S", size=15, fill=ink, family=svg.SERIF,
                     weight="bold", style="italic", anchor="middle"),
            svg.text(x + wide / 2, middle + 15, f"{query_rows} × {key_rows}", size=11, fill=ink,
                     anchor="middle"),
        ]  # fmt: skip
    else:
        parts.append(svg.text(x + wide / 2, middle + 5, "S", size=13, fill=ink_on(_NOW),
                              family=svg.SERIF, weight="bold", style="italic",
                              anchor="middle"))  # fmt: skip
    return "".join(parts) + _fill(state) + _moves(state, traffic)


def _fill(state: TilesState) -> str:
    """How much of fast memory the four blocks take."""
    traffic, x, y = state.traffic, _FAST[0] + 14, 330.0
    room = _FAST[2] - 28
    parts = [svg.rect(x, y, room, 14, fill=_QUEUE, radius=3)]
    at = x
    for name, rows in (("Q", traffic.block_q), ("K", traffic.block_k), ("V", traffic.block_k),
                       ("output", traffic.block_q)):  # fmt: skip
        wide = room * rows * state.d * BYTES / state.fast_memory
        parts.append(svg.rect(at, y, max(wide - 1, 0.5), 14, fill=ROLES[name].fill, radius=2))
        at += wide
    parts += [
        svg.text(x, y - 8, f"Q, K, V, O blocks: {size(traffic.blocks_held)} of "
                 f"{size(state.fast_memory)}", size=12, fill=TEXT),
        svg.text(x, y + 32, f"besides, in registers: S, m, l, {size(traffic.scores_held)}",
                 size=11.5, fill=QUIET),
    ]  # fmt: skip
    return "".join(parts)


def _moves(state: TilesState, traffic: MemoryTraffic) -> str:
    """What this tile moves between the two."""
    read, written = state.moved_now
    x, y = _FAST[0] + 14, 392.0
    names_read, names_written = _moved_names(state)
    reads = f"← reads {size(read)}: {names_read}"
    writes = f"→ writes {size(written)}: {names_written}" if written else "→ writes nothing yet"
    return (
        svg.text(x, y, "this tile", size=12, fill=QUIET)
        + svg.text(x, y + 24, reads, size=13, fill=TEXT, weight="bold")
        + svg.text(x, y + 48, writes, size=13, fill=TEXT, weight="bold")
    )


def _moved_names(state: TilesState) -> tuple[str, str]:
    plan, first = state.plan, state.step == 1
    i, j = state.tile
    if state.outer == "queries":
        new_row = first or plan.tile(state.step - 1)[0] != i
        return ("Q, K, V" if new_row else "K, V"), "O, lse"
    new_column = first or plan.tile(state.step - 1)[1] != j
    return ("K, V, Q, O, m, l" if new_column else "Q, O, m, l"), "O, m, l"


# ── bytes ────────────────────────────────────────────────────────────────────────────────────────


def _counters(state: TilesState) -> str:
    """Bytes moved, plain and tiled, as bars on one scale."""
    traffic, so_far = state.traffic, sum(state.moved)
    left, right, top = 138.0, WIDTH - MARGIN - 300, 478.0
    full = max(traffic.plain, traffic.tiled)
    role = ROLES["scores"]
    loses = traffic.tiled > traffic.plain
    parts = []
    for n, (name, total, done, words) in enumerate(
        (
            ("plain attention", traffic.plain, traffic.plain,
             f"{size(traffic.plain)}, scores and weights stored"),
            ("tiled, so far", traffic.tiled, so_far,
             f"{size(so_far)} of {size(traffic.tiled)}"),
        )
    ):  # fmt: skip
        y = top + 34 * n
        wide = (right - left) * total / full
        share = (right - left) * done / full
        colour = "#7b8394" if n == 0 else role.fill
        parts += [
            svg.text(left - 12, y + 15, name, size=13, fill=TEXT, anchor="end"),
            svg.rect(left, y, wide, 20, fill=tint(colour, 0.15), radius=4),
            svg.rect(left, y, max(share, 1.5), 20, fill=colour, radius=min(4, max(share, 1.5) / 2)),
            svg.text(left + wide + 10, y + 15, words, size=13, fill=TEXT, weight="bold"),
        ]
    said = f"In all, plain attention moves {compared(state)}."
    parts.append(svg.text(left, top + 78, said, size=13, fill=ERROR if loses else TEXT))
    return "".join(parts)
