"""Blocks of queries and keys, and the softmax that is computed block by block."""

from __future__ import annotations

import numpy as np

from helpers.doctor.catalogue.base import FLASH_ATTENTION, ONLINE_SOFTMAX, Disease, github
from helpers.doctor.reference import attend, masked, repeated, right

USUAL = (16, 32, 64, 128)
_SIZES = (1, 2, 4, 8, *USUAL, 256, 512)  # of blocks of keys that somebody may have chosen


def _scaled(case):
    scores = case.q @ repeated(case.k, case.q.shape[1]).mT * case.scale
    return masked(scores, case.allowed, case.bias)


def _whole_blocks_of_keys(size):
    def wrong(case):
        whole = case.T_k // size * size
        if not whole:
            raise ValueError("no key is left")
        allowed = None if case.allowed is None else case.allowed[..., :whole]
        return attend(case, k=case.k[:, :, :whole], v=case.v[:, :, :whole], allowed=allowed)

    return wrong


def _padded_keys(size):
    """Keys of zeros up to a whole block, which take their share of each softmax."""

    def wrong(case):
        more = ((0, 0), (0, 0), (0, -case.T_k % size), (0, 0))
        allowed = case.allowed
        if allowed is not None:
            # Causality hides the padding, except from queries that come after it.
            allowed = np.tri(case.T_q, case.T_k + more[2][1], dtype=bool)
        return attend(case, k=np.pad(case.k, more), v=np.pad(case.v, more), allowed=allowed)

    return wrong


def _online(size, step):
    """An online softmax that gets its running numbers wrong.

    step : (old acc, old sum, factor) -> what is kept of them when the maximum grows.
    """

    def wrong(case):
        if size >= case.T_k:
            return right(case)
        s, v = _scaled(case), repeated(case.v, case.q.shape[1])
        largest = np.full((*s.shape[:-1], 1), -np.inf)
        total, acc = np.zeros_like(largest), np.zeros((*s.shape[:-1], v.shape[-1]))
        for start in range(0, case.T_k, size):
            block = s[..., start : start + size]
            new = np.maximum(largest, block.max(axis=-1, keepdims=True))
            safe = np.where(new == -np.inf, 0, new)
            e = np.exp(block - safe)
            factor = np.exp(largest - safe) if start else np.ones_like(safe)
            acc, total = step(acc, total, factor)
            acc = acc + e @ v[..., start : start + size, :]
            total = total + e.sum(axis=-1, keepdims=True)
            largest = new
        return acc / total

    return wrong


def _merged(size, weigh):
    """Blocks computed apart and merged by the wrong weights.

    weigh : (number of keys, first block?, last block?) -> weight of a block's result.
    """

    def wrong(case):
        if size >= case.T_k:
            return right(case)
        s, v = _scaled(case), repeated(case.v, case.q.shape[1])
        parts, weights = [], []
        for start in range(0, case.T_k, size):
            block = s[..., start : start + size]
            e = np.exp(block - block.max(axis=-1, keepdims=True))
            parts.append(e @ v[..., start : start + size, :] / e.sum(axis=-1, keepdims=True))
            last = start + size >= case.T_k
            weights.append(weigh(block.shape[-1], start == 0, last))
        return sum(w * p for w, p in zip(weights, parts)) / sum(weights)

    return wrong


def _per_size(make, sizes=_SIZES):
    return tuple(make(size) for size in sizes)


BLOCKS = (
    Disease(
        "keys-after-last-whole-block-dropped",
        "Keys after the last whole block are never read.",
        "It agrees with attention over the first ⌊T_k / block⌋ · block keys.",
        "Round the number of blocks up (cdiv), and mask what lies beyond T_k in the last one.",
        github("flashinfer-ai/flashinfer", 3655, "pull"),
        _per_size(_whole_blocks_of_keys, (*USUAL, 2, 4, 8)),
    ),
    Disease(
        "padding-takes-weight",
        "The last block is filled up with zeros, and these keys take weight: a score of 0 is not "
        "a weight of 0.",
        "It agrees with attention over T_k keys and keys of zeros up to a whole block.",
        "Set the scores of padded keys to -inf before the softmax.",
        github("flashinfer-ai/flashinfer", 5090, "pull"),
        _per_size(_padded_keys, (*USUAL, 2, 4, 8)),
    ),
    Disease(
        "queries-after-last-whole-block-unwritten",
        "Queries after the last whole block get no result.",
        "Exactly the rows from ⌊T_q / block⌋ · block on are wrong, whatever stands in them.",
        "Round the number of blocks up (cdiv), and mask the store in the last one.",
        github("OpenNLPLab/lightning-attention", 28, "pull"),
    ),
    Disease(
        "wrong-unless-whole-blocks",
        "Right only where the lengths are multiples of a block.",
        "It is right on lengths of 128 and wrong, or fails, wherever a length is no multiple of "
        "the block.",
        "Mask loads, scores and stores in the last block of queries and of keys.",
        github("jax-ml/jax", 27224),
    ),
    Disease(
        "wrong-below-one-block",
        "Right only where the sequences are at least one block long.",
        "It is wrong, or fails, wherever there are fewer queries or keys than a block has.",
        "Mask loads, scores and stores in the first block too; choose smaller blocks for short "
        "sequences.",
        github("fla-org/flash-linear-attention", 88),
    ),
    Disease(
        "wrong-with-many-keys",
        "Right up to a number of keys (or queries), wrong above it.",
        "Exactly the long inputs go wrong: something is lost between one block and the next, or "
        "what lies beyond a limit is left out.",
        "Compare the running maximum, sum and accumulator with a softmax over two blocks at once; "
        "look for a window or a largest length.",
        ONLINE_SOFTMAX,
    ),
    Disease(
        "accumulator-not-rescaled",
        "When a later block has a larger maximum, the accumulator of the online softmax is not "
        "rescaled; the sum is.",
        "It agrees with an online softmax whose output lacks the factor exp(old maximum − new "
        "maximum).",
        "Multiply the accumulator by exp(m_old − m_new) before you add a block.",
        FLASH_ATTENTION,
        _per_size(lambda size: _online(size, lambda acc, total, f: (acc, total * f))),
    ),
    Disease(
        "normaliser-not-rescaled",
        "When a later block has a larger maximum, the running sum of the online softmax is not "
        "rescaled; the accumulator is.",
        "Rows are proportional to the right ones, and agree with an online softmax whose sum lacks "
        "the factor.",
        "Multiply the running sum by exp(m_old − m_new) before you add a block.",
        github("flashinfer-ai/flashinfer", 27, "pull"),
        _per_size(lambda size: _online(size, lambda acc, total, f: (acc * f, total))),
    ),
    Disease(
        "nothing-rescaled",
        "When a later block has a larger maximum, neither the accumulator nor the running sum of "
        "the online softmax is rescaled.",
        "Weights sum to 1, but earlier blocks weigh too much.",
        "Multiply both by exp(m_old − m_new) before you add a block.",
        github("Dao-AILab/flash-attention", 2174, "pull"),
        _per_size(lambda size: _online(size, lambda acc, total, f: (acc, total))),
    ),
    Disease(
        "rescaled-inversely",
        "The online softmax rescales by exp(new maximum − old maximum): the sign is reversed.",
        "It agrees with an online softmax whose earlier blocks grow when they should shrink.",
        "The factor is exp(m_old − m_new), at most 1.",
        github("deepseek-ai/FlashMLA", 177, "pull"),
        _per_size(lambda size: _online(size, lambda acc, total, f: (acc / f, total / f))),
    ),
    Disease(
        "blocks-averaged",
        "Blocks of keys are attended to apart, and their results averaged.",
        "It agrees with the mean of the blocks' results, weighted equally or by numbers of keys.",
        "Weigh each block's result by its share of the total, exp(lse_block − lse).",
        github("vllm-project/vllm", 28840, "pull"),
        (
            *_per_size(lambda size: _merged(size, lambda keys, first, last: 1), _SIZES[1:]),
            *_per_size(lambda size: _merged(size, lambda keys, first, last: keys), _SIZES[1:]),
        ),
    ),
    Disease(
        "one-block-only",
        "Only the first or the last block of keys counts.",
        "It agrees with attention over one block of keys.",
        "Let each block add to what the earlier ones left: initialise before the loop, store after "
        "it.",
        github("tile-ai/tilelang", 2627),
        (
            *_per_size(lambda size: _merged(size, lambda keys, first, last: 1.0 * first)),
            *_per_size(lambda size: _merged(size, lambda keys, first, last: 1.0 * last)),
        ),
    ),
)
