"""How many bytes attention moves between slow and fast memory, counted without computing it.

The model: one head, T queries and T keys of d numbers, values of d too. Slow memory holds Q, K, V
and the output. Fast memory holds M numbers. Arithmetic is free; what counts is every number that
is read from slow memory or written to it. Every number, m and l and lse too, takes the same bytes.

Two loop orders go over the same tiles:

    "queries"  a block of queries stays in fast memory, with its m, l and acc, while all keys pass
               by; its output is written once. FlashAttention-2 (Dao 2023, arXiv:2307.08691,
               algorithm 1) and the kernels of today.
    "keys"     a block of keys and values stays while all queries pass by, each time with its m, l
               and output, which are read and written again. FlashAttention (Dao et al. 2022,
               arXiv:2205.14135, algorithm 1).

The name says which loop is outside.
"""

from __future__ import annotations

import numbers
from dataclasses import dataclass
from functools import cached_property

import numpy as np

LOOPS = ("queries", "keys")


def block_sizes(
    fast_memory: int, d: int, bytes_per_number: int = 2, outer: str = "queries"
) -> tuple[int, int]:
    """(rows of a Q block, rows of a K or V block), by the paper's rule.

    fast_memory : bytes. d : numbers in a row of Q, K, V or the output. outer : see `LOOPS`.

    With M numbers of fast memory, the block of the outer loop has ⌈M / 4d⌉ rows and the block that
    passes by has min(⌈M / 4d⌉, d). With outer="keys" that is the paper's B_c = ⌈M / 4d⌉ and
    B_r = min(⌈M / 4d⌉, d); with "queries" the two change places, because the larger block should
    be the one that stays. The four blocks Q, K, V and output then fill M at most (up to the
    rounding ⌈ ⌉); the tile of scores takes up to M / 4 more, which the paper leaves to a constant
    and kernels leave to registers.

    Raises ValueError if fast memory does not hold one row of each of the four blocks, or outer is
    none of `LOOPS`; TypeError or ValueError for anything but positive whole numbers.
    Source: Dao et al. 2022, arXiv:2205.14135, algorithm 1, line 1.
    """
    _one_of_loops(outer)
    d, M = _positive("d", d), _numbers(fast_memory, bytes_per_number)
    one_row_each = 4 * d  # of Q, K, V and the output
    if one_row_each > M:
        raise ValueError(
            f"A fast memory of {fast_memory:,} bytes holds {M:,} numbers, but one row each of Q, "
            f"K, V and the output takes 4 · d = {one_row_each:,}. Pass more fast memory "
            "or a smaller d."
        )
    stays = -(-M // one_row_each)
    passes = min(stays, d)
    return (stays, passes) if outer == "queries" else (passes, stays)


@dataclass(frozen=True)
class TilePlan:
    """The tiles of T queries by T keys in the order of the loops, and the bytes up to each.

    T : queries, and keys. d : numbers a row. block_q, block_k : rows of a Q block and of a K or V
    block; the last one of each may be shorter. bytes_per_number : 2 for float16.
    is_causal : tiles above the diagonal are never touched. outer : see `LOOPS`.

    Raises TypeError or ValueError for anything but positive whole numbers, ValueError if outer is
    none of `LOOPS`.
    """

    T: int
    d: int
    block_q: int
    block_k: int
    bytes_per_number: int = 2
    is_causal: bool = False
    outer: str = "queries"

    def __post_init__(self) -> None:
        for name in ("T", "d", "block_q", "block_k", "bytes_per_number"):
            _positive(name, getattr(self, name))
        _one_of_loops(self.outer)

    @property
    def rows(self) -> int:
        """Number of Q blocks."""
        return -(-self.T // self.block_q)

    @property
    def columns(self) -> int:
        """Number of K blocks."""
        return -(-self.T // self.block_k)

    @cached_property
    def _first(self) -> np.ndarray:
        """(outer blocks,), index of the first inner block that each computes a tile with."""
        if self.outer == "queries" or not self.is_causal:
            return np.zeros(self.rows if self.outer == "queries" else self.columns, dtype=int)
        # The first Q block whose last query may see the first key of the K block.
        return np.arange(self.columns) * self.block_k // self.block_q

    @cached_property
    def _end(self) -> np.ndarray:
        """(outer blocks,), index after the last inner block that each computes a tile with."""
        if self.outer == "keys":
            return np.full(self.columns, self.rows)
        if not self.is_causal:
            return np.full(self.rows, self.columns)
        last_query = np.minimum(np.arange(1, self.rows + 1) * self.block_q, self.T) - 1
        return last_query // self.block_k + 1

    @cached_property
    def _tiles_before(self) -> np.ndarray:
        """(outer blocks + 1,), how many tiles come before each outer block, and how many in all."""
        return np.concatenate([[0], np.cumsum(self._end - self._first)])

    @property
    def tiles(self) -> int:
        """Tiles that are computed."""
        return int(self._tiles_before[-1])

    @property
    def skipped(self) -> int:
        """Tiles that are not, because no query in them may see a key in them."""
        return self.rows * self.columns - self.tiles

    def tile(self, number: int) -> tuple[int, int]:
        """(index of the Q block, index of the K block) of the tile with this number, from 1 on."""
        outer, inner = self._place(number)
        return (outer, inner) if self.outer == "queries" else (inner, outer)

    def _place(self, number: int) -> tuple[int, int]:
        if not 1 <= number <= self.tiles:
            raise ValueError(f"There is no tile {number}: they count from 1 to {self.tiles}.")
        outer = int(np.searchsorted(self._tiles_before, number, side="left")) - 1
        return outer, int(self._first[outer] + number - 1 - self._tiles_before[outer])

    def queries(self, i: int) -> tuple[int, int]:
        """(first query of Q block i, first query after it), counted from 0."""
        return i * self.block_q, min((i + 1) * self.block_q, self.T)

    def keys(self, j: int) -> tuple[int, int]:
        """(first key of K block j, first key after it), counted from 0."""
        return j * self.block_k, min((j + 1) * self.block_k, self.T)

    def counts(self, rows, columns, number: int) -> tuple[np.ndarray, np.ndarray]:
        """Tiles in each field of a coarser grid: for drawings that show several tiles as one.

        rows, columns : where the fields begin, in blocks of Q and of K, rising from 0.
        -> (computed, done), each (len(rows), len(columns)): how many tiles of the field are ever
        computed, and how many of them up to and with tile `number`.
        """
        outer, inner = (rows, columns) if self.outer == "queries" else (columns, rows)
        inner_length = self.columns if self.outer == "queries" else self.rows
        low, high = np.asarray(inner), np.append(inner[1:], inner_length)
        first, end = self._first[:, None], self._end[:, None]
        came = np.clip(number - self._tiles_before[:-1, None], 0, end - first) + first
        fields = []
        for stop in (end, came):
            overlap = np.minimum(stop, high) - np.maximum(first, low)  # (outer, inner fields)
            field = np.add.reduceat(np.maximum(overlap, 0), outer, axis=0)
            fields.append(field if self.outer == "queries" else field.T)
        return fields[0], fields[1]

    def moved(self, number: int) -> tuple[int, int]:
        """(bytes read, bytes written) up to and with tile `number`; 0 is before the first."""
        if number == 0:
            return 0, 0
        outer, inner = self._place(number)
        by_loop = self._moved_queries if self.outer == "queries" else self._moved_keys
        read, written = by_loop(outer, inner)
        return read * self.bytes_per_number, written * self.bytes_per_number

    def _moved_queries(self, i: int, j: int) -> tuple[int, int]:
        """Numbers read and written up to tile (i, j), queries outside."""
        T, d = self.T, self.d
        passes = np.minimum(self._end[: i + 1] * self.block_k, T)  # keys that passed each Q block
        passes[i] = self.keys(j)[1]
        read = self.queries(i)[1] * d + int(passes.sum()) * 2 * d  # Q once, K and V each time
        finished = i + 1 if j == self._end[i] - 1 else i
        written = min(finished * self.block_q, T) * (d + 1)  # output and lse
        return read, written

    def _moved_keys(self, j: int, i: int) -> tuple[int, int]:
        """Numbers read and written up to tile (i, j), keys outside."""
        T, d = self.T, self.d
        passes = T - self._first[: j + 1] * self.block_q  # queries that passed each K block
        passes[j] = self.queries(i)[1] - self._first[j] * self.block_q
        passed = int(passes.sum())
        # K and V once; Q, output, m and l each time. Line 2 of algorithm 1 writes O, l, m first.
        return self.keys(j)[1] * 2 * d + passed * (2 * d + 2), (T + passed) * (d + 2)


@dataclass(frozen=True)
class MemoryTraffic:
    """Bytes between slow and fast memory for one head of T queries and T keys.

    T, d, fast_memory, bytes_per_number, is_causal, outer : as asked.
    block_q, block_k : rows of a block, T at most.
    plain_read, plain_written, tiled_read, tiled_written : bytes.
    bound : bytes, T² d² / M numbers: what tiled attention must grow like (no constant in it).
    score_matrix : bytes that one T × T matrix takes: plain attention stores it, tiled never.
    """

    T: int
    d: int
    fast_memory: int
    bytes_per_number: int
    is_causal: bool
    outer: str
    block_q: int
    block_k: int
    plain_read: int
    plain_written: int
    tiled_read: int
    tiled_written: int
    bound: float
    score_matrix: int

    @property
    def plain(self) -> int:
        """Bytes that plain attention moves."""
        return self.plain_read + self.plain_written

    @property
    def tiled(self) -> int:
        """Bytes that tiled attention moves."""
        return self.tiled_read + self.tiled_written

    @property
    def ratio(self) -> float:
        """How many times as much plain attention moves; below 1 where tiling loses."""
        return self.plain / self.tiled

    @property
    def blocks_held(self) -> int:
        """Bytes of the four blocks Q, K, V and output in fast memory."""
        return 2 * (self.block_q + self.block_k) * self.d * self.bytes_per_number

    @property
    def scores_held(self) -> int:
        """Bytes of one tile of scores with its rows' m and l, which come on top."""
        return (self.block_q * self.block_k + 2 * self.block_q) * self.bytes_per_number

    @property
    def plan(self) -> TilePlan:
        return TilePlan(
            self.T, self.d, self.block_q, self.block_k, self.bytes_per_number, self.is_causal,
            self.outer,
        )  # fmt: skip


def memory_traffic(
    T: int, d: int, fast_memory: int, bytes_per_number: int = 2, is_causal: bool = False,
    outer: str = "queries",
) -> MemoryTraffic:  # fmt: skip
    """Bytes that plain and tiled attention move, for one head.

    T : queries, and keys. d : numbers a row. fast_memory : bytes, of one thread block.
    bytes_per_number : 2 for float16. is_causal : tiles above the diagonal are skipped.
    outer : which loop is outside, see `LOOPS`; the blocks are those of `block_sizes`, T at most.

    Plain attention is the paper's algorithm 0, with no number read twice inside one of its three
    steps, which flatters it: Q and K are read and the scores written; the scores are read and the
    weights written; weights and V are read and the output written. That is 4 T² + 4 T d numbers,
    causal or not, as it stores the whole matrix. Tiled attention moves what `tiled_attention`
    moves; with d ≤ M ≤ T d that is Θ(T² d² / M) (the paper's theorem 2).

    Raises as `block_sizes`; also TypeError or ValueError if T is not a positive whole number.
    Source: Dao et al. 2022, arXiv:2205.14135, algorithms 0 and 1, theorem 2.
    """
    T = _positive("T", T)
    block_q, block_k = (min(T, n) for n in block_sizes(fast_memory, d, bytes_per_number, outer))
    plan = TilePlan(T, d, block_q, block_k, bytes_per_number, bool(is_causal), outer)
    read, written = plan.moved(plan.tiles)
    size = bytes_per_number
    return MemoryTraffic(
        T=T, d=d, fast_memory=fast_memory, bytes_per_number=size, is_causal=bool(is_causal),
        outer=outer, block_q=block_q, block_k=block_k,
        plain_read=(3 * T * d + 2 * T * T) * size, plain_written=(T * d + 2 * T * T) * size,
        tiled_read=read, tiled_written=written,
        bound=T * T * d * d / _numbers(fast_memory, size) * size, score_matrix=T * T * size,
    )  # fmt: skip


def _positive(name: str, value) -> int:
    if not isinstance(value, numbers.Integral) or isinstance(value, bool):
        raise TypeError(f"{name} is {value!r}, but must be a whole number.")
    if value < 1:
        raise ValueError(f"{name} is {value}, but must be 1 or more.")
    return int(value)


def _numbers(fast_memory, bytes_per_number) -> int:
    """M, how many numbers fit."""
    return _positive("fast_memory", fast_memory) // _positive("bytes_per_number", bytes_per_number)


def _one_of_loops(outer) -> None:
    if outer not in LOOPS:
        raise ValueError(f"outer is {outer!r}. Pass one of {', '.join(map(repr, LOOPS))}.")
