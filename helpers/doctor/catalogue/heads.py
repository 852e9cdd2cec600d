"""Heads, tokens and sequences get mixed up."""

from __future__ import annotations

import numpy as np

from helpers.doctor.cases import Case
from helpers.doctor.catalogue.base import ATTENTION, Disease, github
from helpers.doctor.reference import attend


def _same(x):
    return x


def _reshaped_then_turned(x):
    """Read as if it were (B, T, H, D): what `reshape` in place of `transpose` makes of it."""
    B, H, T, D = x.shape
    return x.reshape(B, T, H, D).transpose(0, 2, 1, 3)


def _turned_then_reshaped(x):
    return x.transpose(0, 2, 1, 3).reshape(x.shape)


def _mixed(before, after):
    def wrong(case):
        q, k, v = (before(x) for x in (case.q, case.k, case.v))
        return after(attend(case, q=q, k=k, v=v))

    return wrong


def _over_heads(case):
    """Every token's heads attend to each other."""
    if case.T_q != case.T_k:
        raise ValueError("token i of the queries needs token i of the keys")
    q, k, v = (x.transpose(0, 2, 1, 3) for x in (case.q, case.k, case.v))
    return attend(case, q=q, k=k, v=v, allowed=None, bias=None).transpose(0, 2, 1, 3)


def _pooled(axis):
    """All heads (axis 1) or sequences (axis 0) attend as if they were one, uncausally."""

    def wrong(case):
        def pool(x):
            return np.moveaxis(x, axis, 1).reshape(x.shape[1 - axis], 1, -1, x.shape[-1])

        pooled = Case("", "", *(pool(x) for x in (case.q, case.k, case.v)), case.scale)
        out = attend(pooled).reshape(
            case.q.shape[1 - axis], case.q.shape[axis], case.T_q, case.v.shape[-1]
        )
        return np.moveaxis(out, 1, axis)

    return wrong


HEADS = (
    Disease(
        "heads-mixed-in-the-inputs",
        "The inputs are reshaped where axes should be exchanged: each head gets pieces of several "
        "heads and tokens.",
        "It agrees with attention on inputs read in the order of the other axes; with one head or "
        "one token nothing shows.",
        "Use transpose (or permute) to exchange heads and tokens; view and reshape only split or "
        "join neighbouring axes.",
        github("reczoo/FuxiCTR", 30),
        tuple(
            _mixed(before, after)
            for before in (_reshaped_then_turned, _turned_then_reshaped)
            for after in (_same, _reshaped_then_turned, _turned_then_reshaped)
        ),
    ),
    Disease(
        "heads-mixed-in-the-output",
        "The output is reshaped where axes should be exchanged: tokens get other tokens' results.",
        "All numbers are right, but stand in the wrong places; with one head nothing shows.",
        "Exchange heads and tokens back (transpose) before you reshape or join the heads.",
        github("jsbaan/transformer-from-scratch", 6, "pull"),
        (_mixed(_same, _reshaped_then_turned), _mixed(_same, _turned_then_reshaped)),
    ),
    Disease(
        "heads-and-tokens-swapped",
        "Heads attend to heads within each token, where tokens should attend to tokens.",
        "It agrees with attention over the other axis, and fails where queries and keys differ in "
        "number.",
        'Check the order of axes. If the function takes (B, T, H, D), say so: layout="BTHD".',
        github("Dao-AILab/flash-attention", 1391),
        (_over_heads,),
    ),
    Disease(
        "attends-across-heads",
        "A query also sees the keys of all other heads.",
        "It agrees with one softmax over the keys of all heads together.",
        "Keep heads on an axis of their own while you compute scores and weights.",
        ATTENTION,
        (_pooled(1),),
    ),
    Disease(
        "attends-across-the-batch",
        "A query also sees the keys of the other sequences in the batch.",
        "It agrees with one softmax over the keys of all sequences together: what one user types "
        "reaches another's answer.",
        "Keep sequences on an axis of their own while you compute scores and weights.",
        github("NVIDIA/TensorRT-LLM", 8813),
        (_pooled(0),),
    ),
    Disease(
        "first-head-for-all",
        "All heads use the keys and values of the first.",
        "It agrees with keys and values of head 0 everywhere; with one head nothing shows.",
        "Index keys and values by the head too.",
        github("BobMcDear/attorch", 14),
        (
            lambda c: attend(c, k=c.k[:, :1], v=c.v[:, :1]),
            lambda c: attend(c, k=c.k[:, :1]),
            lambda c: attend(c, v=c.v[:, :1]),
        ),
    ),
    Disease(
        "first-sequence-for-all",
        "All sequences of the batch use the keys and values of the first.",
        "It agrees with keys and values of sequence 0 everywhere; with a batch of one nothing "
        "shows.",
        "Index keys and values by the sequence too.",
        github("BobMcDear/attorch", 14),
        (
            lambda c: attend(c, k=c.k[:1], v=c.v[:1]),
            lambda c: attend(c, k=c.k[:1]),
            lambda c: attend(c, v=c.v[:1]),
        ),
    ),
    Disease(
        "output-layout",
        "The numbers are right, but the result has another order or number of axes.",
        "Exchanging or splitting axes of the result makes it right.",
        "Return the result with the axes of the queries, (…, T_q, d_v).",
        github("pytorch/torchtitan", 2223),
    ),
    Disease(
        "axes-squeezed",
        "Axes of length 1 are lost: the result has fewer axes than the queries.",
        "It is right but for the axes of length 1, which a batch of one or a single query has.",
        "Remove only the axis that you added: squeeze(axis=…), or indexing.",
        github("NVIDIA/tacotron2", 303, "pull"),
    ),
)
