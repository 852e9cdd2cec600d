"""The output is right, its gradient is not.

References take a case and the gradient at the output, and return (dq, dk, dv), or (dq, dk, dv,
d mask), None for that of a case without a float mask.
"""

from __future__ import annotations

import numpy as np

from helpers.doctor.catalogue.base import FLASH_ATTENTION, Disease, github
from helpers.doctor.reference import (
    backward,
    mask_gradient,
    masked,
    per_group,
    repeated,
    softmax,
)


def _steps(case, d_out, *, allowed="own", row=True):
    """What the backward pass is made of: q, k, v, weights and dS."""
    H = case.q.shape[1]
    k, v = repeated(case.k, H), repeated(case.v, H)
    allowed = case.allowed if allowed == "own" else allowed
    bias = case.bias if allowed is not None or case.allowed is None else None
    weights = softmax(masked(case.q @ k.mT * case.scale, allowed, bias))
    d_weights = d_out @ v.mT
    shift = (weights * d_weights).sum(axis=-1, keepdims=True) if row else 0
    return case.q, k, v, weights, weights * (d_weights - shift)


def _finished(case, dq, dk, dv):
    H_kv = case.k.shape[1]
    return dq, per_group(dk, H_kv), per_group(dv, H_kv)


def _scaled_by(factor_of):
    def wrong(case, d_out):
        dq, dk, dv = backward(case, d_out)
        return dq * factor_of(case), dk * factor_of(case), dv

    return wrong


def _no_row_sum(case, d_out):
    q, k, _, weights, d_scores = _steps(case, d_out, row=False)
    dk, dv = case.scale * (d_scores.mT @ q), weights.mT @ d_out
    return _finished(case, case.scale * (d_scores @ k), dk, dv)


def _unmasked(case, d_out):
    q, k, _, weights, d_scores = _steps(case, d_out, allowed=None)
    dk, dv = case.scale * (d_scores.mT @ q), weights.mT @ d_out
    return _finished(case, case.scale * (d_scores @ k), dk, dv)


def _not_transposed(case, d_out):
    q, k, _, weights, d_scores = _steps(case, d_out)
    dk, dv = case.scale * (d_scores @ q), weights.mT @ d_out
    return _finished(case, case.scale * (d_scores @ k), dk, dv)


def _detached_weights(case, d_out):
    dq, dk, dv = backward(case, d_out)
    return np.zeros_like(dq), np.zeros_like(dk), dv


def _without(place):
    """A zero in place of one gradient; 3 is that of the mask."""

    def wrong(case, d_out):
        found = [*backward(case, d_out)]
        if place == 3:
            found.append(None if case.bias is None else mask_gradient(case, d_out))
        found[place] = None if found[place] is None else np.zeros_like(found[place])
        return tuple(found)

    return wrong


def _averaged(case, d_out):
    dq, dk, dv = backward(case, d_out)
    group = case.q.shape[1] // case.k.shape[1]
    return dq, dk / group, dv / group


def _first_of_group(case, d_out):
    q, k, _, weights, d_scores = _steps(case, d_out)
    dk, dv = case.scale * (d_scores.mT @ q), weights.mT @ d_out
    group = q.shape[1] // case.k.shape[1]
    return case.scale * (d_scores @ k), dk[:, ::group], dv[:, ::group]


def _last_of_group(case, d_out):
    q, k, _, weights, d_scores = _steps(case, d_out)
    dk, dv = case.scale * (d_scores.mT @ q), weights.mT @ d_out
    group = q.shape[1] // case.k.shape[1]
    return case.scale * (d_scores @ k), dk[:, group - 1 :: group], dv[:, group - 1 :: group]


GRADIENTS = (
    Disease(
        "gradient-missing",
        "No gradient comes back: for autograd, the output does not depend on the inputs.",
        "The output does not require a gradient although all inputs do.",
        "Look for detach(), .data, no_grad() or a way through NumPy. If the function is for "
        "inference only, say so: gradients=False.",
        github("bboylyg/NAD", 8),
    ),
    Disease(
        "gradient-stops",
        "One of queries, keys and values, or queries and keys together, get no gradient.",
        "Theirs are zero or missing, the others are right.",
        "Look for detach() on the way of those inputs, and at the order in which backward returns "
        "its gradients.",
        github("huggingface/candle", 3724, "pull"),
        (_without(0), _without(1), _without(2), _detached_weights),
    ),
    Disease(
        "gradient-of-mask-missing",
        "A float mask gets no gradient, so a bias that is added to the scores is never trained.",
        "dq, dk and dv are right; the gradient at the mask is zero or missing.",
        "The scores' gradient dS is the mask's too, summed over the axes along which it was "
        "broadcast. If masks are never trained, refuse one that requires a gradient.",
        github("Dao-AILab/flash-attention", 1977),
        (_without(3),),
    ),
    Disease(
        "gradient-without-scale",
        "The gradients of queries and keys lack the scale.",
        "dq and dk are the right ones divided by the scale; dv is right.",
        "The scores were multiplied by the scale, so multiply dS K and dSᵀ Q by it too.",
        FLASH_ATTENTION,
        (_scaled_by(lambda c: 1 / c.scale),),
    ),
    Disease(
        "gradient-scaled-twice",
        "The gradients of queries and keys are multiplied by the scale twice.",
        "dq and dk are the right ones times the scale; dv is right.",
        "Multiply by the scale once, in dS or in dq and dk.",
        FLASH_ATTENTION,
        (_scaled_by(lambda c: c.scale),),
    ),
    Disease(
        "gradient-without-row-sum",
        "The gradient of the softmax lacks its second term, the row sum of A ∘ dA.",
        "It agrees with dS = A ∘ dA; dv is right.",
        "dS = A ∘ (dA − rowsum(A ∘ dA)); the row sum also equals rowsum(O ∘ dO).",
        github("deeplearning4j/libnd4j", 440),
        (_no_row_sum,),
    ),
    Disease(
        "gradient-not-transposed",
        "dS is not transposed where it makes dk.",
        "It agrees with dk = scale · dS Q where there are as many queries as keys, and fails "
        "elsewhere; dq and dv are right.",
        "dk = scale · dSᵀ Q.",
        github("Dao-AILab/flash-attention", 373),
        (_not_transposed,),
    ),
    Disease(
        "gradient-ignores-the-mask",
        "The backward pass computes the weights again, without the mask.",
        "Gradients without a mask are right; with one they agree with unmasked attention.",
        "Mask the scores in the backward pass as in the forward pass.",
        github("triton-lang/triton", 7216),
        (_unmasked,),
    ),
    Disease(
        "gradient-of-groups-not-summed",
        "With grouped heads, the gradients of keys and values are not summed over their group.",
        "dq is right; dk and dv are the mean, or one member, of what should be summed.",
        "Sum dk and dv over the heads of queries that share a head of keys.",
        github("marin-community/levanter", 449, "pull"),
        (_averaged, _first_of_group, _last_of_group),
    ),
    Disease(
        "gradient-nan-on-fully-masked-row",
        "A query that may see no key gets zeros, but its gradient is nan, and so is that of the "
        "keys and values.",
        "Gradients are finite where every query sees a key: 0 times the nan of the softmax is nan.",
        "Repair the scores before the softmax (set such rows to 0, and zero the weights after it); "
        "nan_to_num after it is too late for the gradient.",
        github("pytorch/pytorch", 41508),
    ),
    Disease(
        "gradient-overflows",
        "Large scores give the right result, but a gradient of nan or inf.",
        "Gradients are right for ordinary scores.",
        "Subtract each row's maximum before exp, not in a branch that `where` discards: its "
        "gradient is computed nonetheless.",
        github("pytorch/pytorch", 125674),
    ),
    Disease(
        "gradient-assumes-contiguous",
        "The backward pass reads the incoming gradient as if it were contiguous.",
        "Gradients are right for a contiguous gradient at the output, and wrong for the same "
        "numbers as a view: `out.sum().backward()` hands such a view.",
        "Begin the backward pass with grad_output.contiguous(), or honour its strides.",
        github("Dao-AILab/flash-attention", 355),
    ),
    Disease(
        "gradient-raises",
        "The backward pass stops with an error.",
        "The forward pass is right on the same input.",
        "Read the error.",
        github("amorehead/jvp_flash_attention", 13),
    ),
    Disease(
        "gradient-wrong",
        "The output is right, but its gradient is wrong, in a way that the catalogue has no name "
        "for.",
        "It agrees with no known mistake.",
        "Compare with helpers.attention.attention_backward, one step at a time.",
        github("NVIDIA/TransformerEngine", 3333),
    ),
)
