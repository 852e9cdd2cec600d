"""The wrong vectors meet each other."""

from __future__ import annotations

import numpy as np

from helpers.doctor.catalogue.base import ATTENTION, Disease, github
from helpers.doctor.reference import attend, masked, softmax


def _unit(x):
    return x / np.linalg.norm(x, axis=-1, keepdims=True)


def _without(case, first, last):
    if case.T_k == 1:
        raise ValueError("no key is left")
    keys = slice(first, case.T_k - last)
    return attend(
        case,
        k=case.k[:, :, keys],
        v=case.v[:, :, keys],
        allowed=None if case.allowed is None else case.allowed[..., keys],
        bias=None if case.bias is None else case.bias[..., keys],
    )


def _without_last_query(case):
    out = attend(case)
    out[:, :, -1] = 0
    return out


def _transposed_weights(case):
    weights = softmax(masked(case.q @ case.k.mT * case.scale, case.allowed, case.bias))
    return weights.mT @ case.v


def _features(size):
    """Only the first `size` features of a longer query meet."""
    return lambda c: attend(c, q=c.q[..., :size], k=c.k[..., :size])


def _whole_blocks(size):
    def wrong(case):
        whole = case.q.shape[-1] // size * size
        if not whole:
            raise ValueError("no feature is left")
        return attend(case, q=case.q[..., :whole], k=case.k[..., :whole])

    return wrong


def _mean(case):
    return np.broadcast_to(case.v.mean(axis=-2, keepdims=True), case.output_shape)


def _no_future(case):
    return attend(case, allowed=np.tri(case.T_q, case.T_k, dtype=bool))


def _no_future_of_cache(case):
    allowed = np.tri(case.T_q, case.T_k, case.T_k - case.T_q, dtype=bool)
    return attend(case, allowed=allowed)


INPUTS = (
    Disease(
        "queries-and-keys-swapped",
        "Queries and keys have changed places.",
        "It agrees with softmax(K Qᵀ / √d_k) V where there are as many of one as of the other.",
        "Compute q @ kᵀ: row i of the scores belongs to query i.",
        ATTENTION,
        (lambda c: attend(c, q=c.k, k=c.q),),
    ),
    Disease(
        "weights-transposed",
        "The weights are transposed before they meet the values.",
        "It agrees with Aᵀ V: each row of A is right, but spread over the queries.",
        "Compute weights @ v: row i of the weights belongs to output i.",
        github("ok1zjf/VASNet", 25),
        (_transposed_weights,),
    ),
    Disease(
        "queries-with-queries",
        "The queries meet the queries, not the keys.",
        "It agrees with softmax(Q Qᵀ / √d_k) V.",
        "Put the keys into the product.",
        ATTENTION,
        (lambda c: attend(c, k=c.q),),
    ),
    Disease(
        "keys-with-keys",
        "The keys meet the keys, not the queries.",
        "It agrees with softmax(K Kᵀ / √d_k) V.",
        "Put the queries into the product.",
        ATTENTION,
        (lambda c: attend(c, q=c.k),),
    ),
    Disease(
        "keys-as-values",
        "The weights are applied to the keys, not to the values.",
        "It agrees with A K where d_v = d_k, and has the wrong width elsewhere.",
        "Multiply the weights with v.",
        ATTENTION,
        (lambda c: attend(c, v=c.k),),
    ),
    Disease(
        "values-as-keys",
        "The queries meet the values, not the keys.",
        "It agrees with softmax(Q Vᵀ / √d_k) V where d_v = d_k, and fails elsewhere.",
        "Multiply the queries with the keys.",
        ATTENTION,
        (lambda c: attend(c, k=c.v),),
    ),
    Disease(
        "cosine-scores",
        "The scores are cosines: queries and keys are divided by their lengths.",
        "It agrees with softmax of q̂ · k̂, with or without the scale.",
        "Take the plain dot product. If the model normalises q and k on purpose (QK-norm), do it "
        "before this function.",
        github("lucidrains/x-transformers", 190),
        (
            lambda c: attend(c, q=_unit(c.q), k=_unit(c.k)),
            lambda c: attend(c, q=_unit(c.q), k=_unit(c.k), scale=1.0),
        ),
    ),
    Disease(
        "features-dropped",
        "Only the first features of queries and keys take part in the scores.",
        "It agrees with dot products over a first block of features, and is right where d_k is no "
        "longer than that block.",
        "Let the loop or the block cover all d_k features, the last ones masked where the block is "
        "larger.",
        github("triton-lang/triton", 621),
        (
            *(_features(size) for size in (8, 16, 32, 64)),
            *(_whole_blocks(size) for size in (4, 8, 16, 32, 64)),
        ),
    ),
    Disease(
        "wrong-above-64-features",
        "Right only up to 64 features.",
        "Exactly the inputs with d_k or d_v above 64 go wrong.",
        "Let the loop or the block cover all features; a block of 64 is an assumption.",
        github("triton-lang/triton", 621),
    ),
    Disease(
        "last-key-dropped",
        "The last key is left out.",
        "It agrees with attention over all keys but the last.",
        "Let the loop over the keys end at T_k, not at T_k − 1.",
        ATTENTION,
        (lambda c: _without(c, 0, 1),),
    ),
    Disease(
        "first-key-dropped",
        "The first key is left out.",
        "It agrees with attention over all keys but the first.",
        "Let the loop over the keys begin at 0.",
        ATTENTION,
        (lambda c: _without(c, 1, 0),),
    ),
    Disease(
        "last-query-dropped",
        "The last query gets no result.",
        "Its row is zero, all others are right.",
        "Let the loop over the queries end at T_q, not at T_q − 1.",
        ATTENTION,
        (_without_last_query,),
    ),
    Disease(
        "mean-of-the-values",
        "Every query gets the plain mean of the values.",
        "It agrees with uniform weights: the scores play no role.",
        "Look for scores that are multiplied by 0, or a softmax over an axis of length 1.",
        github("DEEP-PolyU/KEQA_WSDM19", 2),
        (_mean,),
    ),
    Disease(
        "causal-unasked",
        "The function hides the future, although nobody asked for it.",
        "It agrees with causal attention.",
        "Mask only on request. If it is meant to be causal always, say so: causal=True.",
        github("LounesMD/LLaDA_Arithmetic", 3),
        (_no_future, _no_future_of_cache),
    ),
)
