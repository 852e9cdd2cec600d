"""Softmax of scores that arrive in blocks, attention on the way, and the merge of two parts.

    m ← max(m, largest score of the block)
    l ← l · e^{m_old − m_new} + Σ e^{score − m_new}
    acc ← acc · e^{m_old − m_new} + Σ e^{score − m_new} · value

Sources: Milakov and Gimelshein 2018, arXiv:1805.02867, algorithm 3 (m and l, one score at a time);
Dao et al. 2022, arXiv:2205.14135, section 3.1 (blocks, and the output rescaled with them).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

import numpy as np

from helpers import _inputs as check
from helpers.attention import without_warnings


@dataclass(frozen=True)
class OnlineStep:
    """What is known after a block of scores, and what the block changed.

    number : 1 for the first block. seen : scores seen so far, this block's too.
    scores : (..., n), this block.
    m_before, m : (...), the largest score before and after.
    rescale : (...), e^{m_before − m}, what the sums so far must be multiplied by: 1 if the largest
        score is still the same, less if not, 0 at the first block (e^{−∞}: there is nothing yet).
    rescaled : whether they were.
    powers : (..., n), e^{score − m} of this block, 1 at most: they cannot overflow.
    l_before, l : (...), the sum of e^{score − m} over all scores seen.
    acc_before, acc : (..., d_v), the same sum with each term times its row of V; None where no
        values were given.

    Where every score so far is −inf, m is −inf and l and acc are 0.
    """

    number: int
    seen: int
    scores: np.ndarray = field(repr=False)
    m_before: np.ndarray
    m: np.ndarray
    rescale: np.ndarray
    rescaled: bool
    powers: np.ndarray = field(repr=False)
    l_before: np.ndarray
    l: np.ndarray  # noqa: E741 (the papers' letter)
    acc_before: np.ndarray | None = None
    acc: np.ndarray | None = None

    @property
    def new_max(self) -> np.ndarray:
        """(...), whether this block held a score larger than all before."""
        return self.m > self.m_before

    @property
    @without_warnings
    def lse(self) -> np.ndarray:
        """(...), ln Σ e^{score} over the scores seen; −inf where each of them is −inf."""
        return self.m + np.log(self.l)

    @property
    @without_warnings
    def output(self) -> np.ndarray | None:
        """(..., d_v), acc ÷ l: attention over the keys seen so far; zeros where l is 0."""
        if self.acc is None:
            return None
        return self.acc / np.where(self.l == 0, 1, self.l)[..., None]

    @without_warnings
    def weights_of(self, scores) -> np.ndarray:
        """e^{score − m} ÷ l: after the last block, what softmax gives these scores.

        scores (..., n), any of those seen, such as all of them -> (..., n). A second pass over the
        scores is needed for the weights; attention needs none, because it only wants the output.
        """
        scores = check.real("scores", scores)
        return _powers(scores, self.m) / np.where(self.l == 0, 1, self.l)[..., None]


def online_softmax(blocks: Iterable) -> Iterator[OnlineStep]:
    """Yield an `OnlineStep` after each block of scores.

    blocks : arrays (..., n), n may differ from block to block; or single numbers, one at a time.
    Computed in float32 or better. No units.

    After the last step, `step.lse` and `step.weights_of(all_scores)` are those of softmax over all
    scores, up to rounding, however they were cut into blocks. nan and +inf give nan, as in softmax.

    Raises (when the block is reached) TypeError if it does not hold real numbers, ValueError if
    its leading axes do not fit those before.
    Source: Milakov and Gimelshein 2018, arXiv:1805.02867.
    """
    step = None
    for block in blocks:
        step = _advance(step, block, None, rescale=True)
        yield step


def online_attention(
    scores_blocks: Iterable, v_blocks: Iterable, rescale: bool = True
) -> Iterator[OnlineStep]:
    """`online_softmax` that carries the output along: `step.output` is attention so far.

    scores_blocks : arrays (..., n), already scaled and masked; or single numbers.
    v_blocks : as many, (..., n, d_v), a row for each score; (d_v,) beside a single number.
    rescale : False leaves the factor e^{m_old − m_new} out, the mistake to look at: whatever was
        summed before the largest score came then counts too much, by e^{m_new − m_old}.

    Raises as `online_softmax`; also TypeError if rescale is not a flag, ValueError if a block of
    values has not one row for each score, or one of the two iterables ends before the other.
    Source: Dao et al. 2022, arXiv:2205.14135, section 3.1.
    """
    rescale = check.flag("rescale", rescale)
    step = None
    for block, values in zip(scores_blocks, v_blocks, strict=True):
        step = _advance(step, block, values, rescale=rescale)
        yield step


@without_warnings
def _advance(before: OnlineStep | None, block, values, *, rescale: bool) -> OnlineStep:
    """The step after `before`."""
    scores = check.in_float32_or_better(check.real("scores", block))
    if scores.ndim == 0:
        scores = scores[None]
        values = None if values is None else np.asarray(values)[None]
    if values is not None:
        values = _one_row_for_each(scores, values)
    if before is not None:
        m_before, l_before, acc_before = before.m, before.l, before.acc
        _require_same_rows(scores, m_before)
    else:
        m_before = np.full(scores.shape[:-1], -np.inf, scores.dtype)
        l_before = np.zeros_like(m_before)
        acc_before = 0.0

    m = np.maximum(m_before, scores.max(axis=-1, initial=-np.inf))
    powers = _powers(scores, m)
    factor = np.where(m == -np.inf, 1, np.exp(m_before - m))
    applied = factor if rescale else np.ones_like(factor)
    l = l_before * applied + powers.sum(axis=-1)  # noqa: E741
    acc = None
    if values is not None:
        added = (powers[..., None, :] @ values)[..., 0, :]  # (..., n) by (..., n, d_v)
        acc_before = acc_before + np.zeros_like(added)
        acc = acc_before * applied[..., None] + added
    return OnlineStep(
        number=1 if before is None else before.number + 1,
        seen=scores.shape[-1] + (0 if before is None else before.seen),
        scores=scores, m_before=m_before, m=m, rescale=factor, rescaled=rescale, powers=powers,
        l_before=l_before, l=l, acc_before=None if values is None else acc_before, acc=acc,
    )  # fmt: skip


def _powers(scores: np.ndarray, m: np.ndarray) -> np.ndarray:
    """e^{scores − m}; 0, not nan, where everything so far is −inf."""
    return np.exp(scores - np.where(m == -np.inf, 0, m)[..., None])


def _one_row_for_each(scores: np.ndarray, values) -> np.ndarray:
    values = check.in_float32_or_better(check.real("values", values, min_dims=2))
    if values.shape[-2] != scores.shape[-1]:
        raise ValueError(
            f"a block of {scores.shape[-1]} scores came with {values.shape[-2]} rows of V (shape "
            f"{values.shape}): each score needs one. Cut scores and V at the same places."
        )
    return values


def _require_same_rows(scores: np.ndarray, m: np.ndarray) -> None:
    if scores.shape[:-1] != m.shape:
        raise ValueError(
            f"a block of scores has shape {scores.shape}, but the blocks before had leading axes "
            f"{m.shape}: all blocks must hold the same rows. Only the last axis may differ."
        )


@without_warnings
def merge(out_a, lse_a, out_b, lse_b) -> tuple[np.ndarray, np.ndarray]:
    """Two attentions of the same queries over different keys, made into one over all the keys.

    out_a, out_b : (..., d_v), each already divided by its own sum. lse_a, lse_b : (...), ln Σ
    e^{score} of each part; −inf for a part with no key to attend to, whose output is then ignored,
    nan too. Leading axes broadcast.

    Returns (out, lse), (..., d_v) and (...), in float32 or better. Each part weighs e^{lse}, so

        lse = ln(e^{lse_a} + e^{lse_b})        out = e^{lse_a − lse} out_a + e^{lse_b − lse} out_b

    The order does not matter, up to rounding: this is how work on one row is split over
    processors. Both parts empty: zeros and −inf.

    Raises TypeError if one of the four does not hold real numbers, ValueError if an lse lacks the
    leading axes of its output.
    Source: Dao, Haziza, Massa, Sizov 2023, "Flash-Decoding for long-context inference" (the
    formula follows from the definition of lse).
    """
    parts = []
    for name, out, lse in (("a", out_a, lse_a), ("b", out_b, lse_b)):
        out, lse = check.real(f"out_{name}", out, min_dims=1), check.real(f"lse_{name}", lse)
        if out.shape[:-1] != lse.shape:
            raise ValueError(
                f"out_{name} has shape {out.shape} and lse_{name} has shape {lse.shape}, but lse "
                f"holds one number for each row of out. Pass lse_{name} with shape "
                f"{out.shape[:-1]}."
            )
        parts.append((check.in_float32_or_better(out), check.in_float32_or_better(lse)))
    m = np.maximum(parts[0][1], parts[1][1])
    shares = [np.exp(lse - np.where(m == -np.inf, 0, m)) for _, lse in parts]
    total = shares[0] + shares[1]
    # An empty part may hold 0/0: leave it out, do not multiply it by 0.
    kept = [
        np.where((share == 0)[..., None], 0, share[..., None] * out)
        for share, (out, _) in zip(shares, parts)
    ]
    out = (kept[0] + kept[1]) / np.where(total == 0, 1, total)[..., None]
    return out, m + np.log(total)
