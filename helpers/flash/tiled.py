"""Attention tile by tile, as FlashAttention does it, with every tile to be looked at.

The T_q × T_k matrix of scores is never made: at any time there is one tile of it. What is kept in
slow memory and what passes through fast memory is the same as on a GPU, and counted.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np

from helpers import _inputs as check
from helpers.attention import without_warnings
from helpers.flash.traffic import _one_of_loops, _positive


@dataclass(frozen=True)
class TileStep:
    """One tile of the grid, after it was computed or skipped.

    number : 1, 2, 3, … over all tiles in the order of the loops, skipped ones too.
    i, j : which block of queries meets which block of keys, from 0 on.
    queries, keys : slices of the rows of Q and of K that meet.
    skipped : no query of the tile may see a key of it: nothing was read, computed or written.
    m, l : (..., block rows), acc : (..., block rows, d_v): the state of these queries, as in
        `OnlineStep`; acc is not yet divided by l.
    bytes_read, bytes_written : so far, this tile's too.
    output : (..., T_q, d_v), lse : (..., T_q): slow memory as it stands. All steps show the same
        two arrays, which are complete after the last step.
    """

    number: int
    i: int
    j: int
    queries: slice
    keys: slice
    skipped: bool
    m: np.ndarray = field(repr=False)
    l: np.ndarray = field(repr=False)  # noqa: E741 (the papers' letter)
    acc: np.ndarray = field(repr=False)
    bytes_read: int
    bytes_written: int
    output: np.ndarray = field(repr=False)
    lse: np.ndarray = field(repr=False)

    @property
    def bytes_moved(self) -> int:
        """Bytes between slow and fast memory so far, both ways."""
        return self.bytes_read + self.bytes_written


def tiled_attention(
    q, k, v, block_q: int, block_k: int, is_causal: bool = False, scale: float | None = None,
    outer: str = "queries",
) -> Iterator[TileStep]:  # fmt: skip
    """Yield a `TileStep` for each tile; the last one's `output` and `lse` are the result.

        for step in tiled_attention(q, k, v, 64, 64):
            pass
        step.output, step.lse

    q (..., T_q, d_k), k (..., T_k, d_k), v (..., T_k, d_v); leading axes broadcast. block_q,
    block_k : rows of a block; the last may be shorter, and a length need not be a multiple.
    is_causal : query i sees keys 0 … i, as in `scaled_dot_product_attention`; a tile of which
    nobody may see anything is skipped. scale : None means 1/√d_k. outer : "queries" is the loop
    order of FlashAttention-2, "keys" that of the first FlashAttention; the result is the same.

    Computed and stored in float32 or better; float64 agrees with plain attention to rounding. lse
    is ln Σ e^{score · scale}, over the keys that the query may see. In the second order m and l lie
    in slow memory; lse is made from them and not counted. nan or inf in K or V does no harm in a
    tile that is skipped, where plain attention makes 0 · nan of it.

    Raises (at the first step) TypeError and ValueError as `scaled_dot_product_attention` does;
    also ValueError if there is no query or no key, or outer is another, and TypeError or
    ValueError for a block size that is not a positive whole number.
    Sources: Dao 2023, arXiv:2307.08691, algorithm 1 (queries outside); Dao et al. 2022,
    arXiv:2205.14135, algorithm 1 (keys outside).
    """
    _one_of_loops(outer)
    task = _Task(q, k, v, block_q, block_k, is_causal, scale)
    yield from (task.queries_outside if outer == "queries" else task.keys_outside)()


class _SlowMemory:
    """Arrays that can only be read and written by the row, and count the bytes."""

    def __init__(self) -> None:
        self.read_bytes = self.written_bytes = 0

    def read(self, array: np.ndarray, rows: slice, axis: int = -2) -> np.ndarray:
        block = array[_rows(rows, axis)]
        self.read_bytes += block.nbytes
        return block.copy()

    def write(self, array: np.ndarray, rows: slice, block, axis: int = -2) -> None:
        place = _rows(rows, axis)
        array[place] = block
        self.written_bytes += array[place].nbytes


def _rows(rows: slice, axis: int) -> tuple:
    return (..., rows, slice(None)) if axis == -2 else (..., rows)


class _Task:
    """One tiled attention: what lies in slow memory, and the two orders of the loops."""

    def __init__(self, q, k, v, block_q, block_k, is_causal, scale) -> None:
        q, k, v = check.query_key_value(q, k, v)
        dtype = np.result_type(q, k, v, np.float32)
        self.q, self.k, self.v = (x.astype(dtype, copy=False) for x in (q, k, v))
        self.scale = 1 / math.sqrt(q.shape[-1]) if scale is None else check.scale(scale)
        self.is_causal = check.flag("is_causal", is_causal)
        T_q, T_k = q.shape[-2], k.shape[-2]
        if T_q == 0 or T_k == 0:
            raise ValueError(
                f"query has {T_q} rows and key has {T_k}: without both there is no tile. "
                "Pass at least one query and one key."
            )
        self.query_blocks = _blocks(T_q, _positive("block_q", block_q))
        self.key_blocks = _blocks(T_k, _positive("block_k", block_k))
        lead = np.broadcast_shapes(q.shape[:-2], k.shape[:-2], v.shape[:-2])
        self.output = np.zeros((*lead, T_q, v.shape[-1]), dtype)
        self.lse = np.full((*lead, T_q), -np.inf, dtype)
        self.slow = _SlowMemory()
        self.number = 0

    def queries_outside(self) -> Iterator[TileStep]:
        slow = self.slow
        for i, queries in enumerate(self.query_blocks):
            q_i = slow.read(self.q, queries)
            m, l, acc = self._nothing_seen(queries)  # noqa: E741
            visible = [j for j, keys in enumerate(self.key_blocks) if self._meets(queries, keys)]
            for j, keys in enumerate(self.key_blocks):
                if j in visible:
                    k_j, v_j = slow.read(self.k, keys), slow.read(self.v, keys)
                    m, l, acc = self._tile(q_i, k_j, v_j, queries, keys, m, l, acc)  # noqa: E741
                if j == visible[-1]:  # the last keys these queries see: their row is finished
                    slow.write(self.output, queries, _divided(acc, l))
                    slow.write(self.lse, queries, _lse(m, l), axis=-1)
                yield self._step(i, j, m, l, acc, skipped=j not in visible)

    def keys_outside(self) -> Iterator[TileStep]:
        slow, everything = self.slow, slice(None)
        m_slow, l_slow, _ = self._nothing_seen(everything)
        slow.write(self.output, everything, 0)
        for array in (m_slow, l_slow):
            slow.write(array, everything, array, axis=-1)
        for j, keys in enumerate(self.key_blocks):
            k_j = v_j = None
            for i, queries in enumerate(self.query_blocks):
                skipped = not self._meets(queries, keys)
                if skipped:  # shown as it stands, but not moved
                    m, l = m_slow[..., queries].copy(), l_slow[..., queries].copy()  # noqa: E741
                    acc = self.output[..., queries, :] * l[..., None]
                else:
                    if k_j is None:
                        k_j, v_j = slow.read(self.k, keys), slow.read(self.v, keys)
                    q_i, o_i = slow.read(self.q, queries), slow.read(self.output, queries)
                    m, l = (slow.read(x, queries, axis=-1) for x in (m_slow, l_slow))  # noqa: E741
                    acc = o_i * l[..., None]  # slow memory holds it divided
                    m, l, acc = self._tile(q_i, k_j, v_j, queries, keys, m, l, acc)  # noqa: E741
                    slow.write(self.output, queries, _divided(acc, l))
                    for array, block in ((m_slow, m), (l_slow, l)):
                        slow.write(array, queries, block, axis=-1)
                    self.lse[..., queries] = _lse(m, l)  # not counted: m and l say it already
                yield self._step(i, j, m, l, acc, skipped=skipped)

    def _nothing_seen(self, queries: slice):
        shape = self.lse[..., queries].shape
        m = np.full(shape, -np.inf, self.lse.dtype)
        return m, np.zeros_like(m), np.zeros((*shape, self.v.shape[-1]), m.dtype)

    def _meets(self, queries: slice, keys: slice) -> bool:
        """Whether any query may see any key: the last query sees most."""
        return not self.is_causal or keys.start < queries.stop

    @without_warnings
    def _tile(self, q_i, k_j, v_j, queries, keys, m_old, l_old, acc_old):
        """The state after one more tile."""
        scores = (q_i @ k_j.mT) * self.scale  # (..., block_q, block_k), all of S that ever exists
        if self.is_causal:
            query, key = np.ogrid[queries, keys]
            scores = np.where(key <= query, scores, -np.inf)
        m = np.maximum(m_old, scores.max(axis=-1))
        finite = np.where(m == -np.inf, 0, m)  # all masked: -inf − (-inf) would be nan
        powers = np.exp(scores - finite[..., None])
        rescale = np.exp(m_old - finite)
        l = l_old * rescale + powers.sum(axis=-1)  # noqa: E741
        return m, l, acc_old * rescale[..., None] + powers @ v_j

    def _step(self, i: int, j: int, m, l, acc, *, skipped: bool) -> TileStep:  # noqa: E741
        self.number += 1
        return TileStep(
            self.number, i, j, self.query_blocks[i], self.key_blocks[j], skipped, m, l, acc,
            self.slow.read_bytes, self.slow.written_bytes, self.output, self.lse,
        )  # fmt: skip


def _blocks(length: int, size: int) -> list[slice]:
    return [slice(start, min(start + size, length)) for start in range(0, length, size)]


@without_warnings
def _divided(acc: np.ndarray, l: np.ndarray) -> np.ndarray:  # noqa: E741
    return acc / np.where(l == 0, 1, l)[..., None]


@without_warnings
def _lse(m: np.ndarray, l: np.ndarray) -> np.ndarray:  # noqa: E741
    return m + np.log(l)
