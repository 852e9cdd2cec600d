"""Who may see whom: causality, boolean and float masks, rows that see nothing."""

from __future__ import annotations

import numpy as np

from helpers.doctor.catalogue.base import Disease, github
from helpers.doctor.catalogue.blocks import USUAL
from helpers.doctor.reference import attend, masked, repeated, softmax


def _values(case):
    return repeated(case.v, case.q.shape[1])


def _seeing(case, allowed):
    """Attention with another mask, in the ways that functions fill a row without keys."""
    out = attend(case, allowed=allowed)
    mean = np.broadcast_to(_values(case).mean(axis=-2, keepdims=True), out.shape)
    empty = np.broadcast_to(~allowed.any(axis=-1), out.shape[:-1])[..., None]
    return out, np.where(empty, np.nan, out), np.where(empty, mean, out)


def _causal(mask_of):
    """References that replace the causal mask by mask_of(T_q, T_k, diagonal)."""

    def way(i):
        return lambda c: _seeing(c, mask_of(c.T_q, c.T_k, _diagonal(c)))[i]

    return tuple(way(i) for i in range(3))


def _diagonal(case):
    """0 for a mask that counts from the start, T_k − T_q for one that counts from the end."""
    upper = np.tri(case.T_q, case.T_k, dtype=bool)
    return 0 if np.array_equal(case.causal, upper) else case.T_k - case.T_q


def _tri(shift):
    return lambda T_q, T_k, diagonal: np.tri(T_q, T_k, diagonal + shift, dtype=bool)


def _other_alignment(T_q, T_k, diagonal):
    return np.tri(T_q, T_k, 0 if diagonal else T_k - T_q, dtype=bool)


def _within_blocks(size):
    def mask(T_q, T_k, diagonal):
        last = np.arange(T_q)[:, None] + diagonal
        return np.arange(T_k)[None, :] < (last // size + 1) * size

    return mask


def _scaled(case):
    return case.q @ repeated(case.k, case.q.shape[1]).mT * case.scale


def _after_softmax(case):
    return np.where(case.allowed, softmax(_scaled(case)), 0) @ _values(case)


def _zeroed_scores(case):
    return softmax(np.where(case.allowed, _scaled(case), 0)) @ _values(case)


def _mask_zeroes_scores(case):
    return softmax(masked(np.where(case.mask, _scaled(case), 0), case.causal, None)) @ _values(case)


def _added(case):
    return softmax(masked(_scaled(case) + case.mask, case.causal, None)) @ _values(case)


def _bias_after_softmax(case):
    return (softmax(masked(_scaled(case), case.causal, None)) + case.bias) @ _values(case)


def _both(causal, allowed):
    return allowed if causal is None else causal & allowed


def _selected_by_bias(select):
    """A float mask read as a boolean one."""
    return lambda c: attend(c, bias=None, allowed=_both(c.causal, select(c.bias)))


def _first_of_batch(case):
    if case.mask.ndim < 4 or case.mask.shape[0] == 1:
        return attend(case)
    return attend(case, allowed=np.broadcast_to(case.allowed[:1], case.allowed.shape))


def _first_of_heads(case):
    if case.mask.ndim < 4 or case.mask.shape[1] == 1:
        return attend(case)
    return attend(case, allowed=np.broadcast_to(case.allowed[:, :1], case.allowed.shape))


def _first_of_both(case):
    if case.mask.ndim < 4:
        return attend(case)
    return attend(case, allowed=np.broadcast_to(case.allowed[:1, :1], case.allowed.shape))


def _visible_and_masked_exchanged(case):
    return attend(case, allowed=_both(case.causal, ~case.mask))


def _masked_bias(case, factor):
    """softmax((Q Kᵀ + bias) · factor) V."""
    scores = case.q @ repeated(case.k, case.q.shape[1]).mT
    return softmax(masked((scores + case.bias) * factor, case.allowed, None)) @ _values(case)


def _unless_one_query(**changed):
    """Right, but with a single query."""

    def wrong(case):
        return attend(case, **{n: of(case) for n, of in changed.items()} if case.T_q == 1 else {})

    return wrong


def _filled(case, hidden, value, add):
    """A fixed number in place of (or added to) the scores of hidden keys."""
    scores = _scaled(case)
    scores = scores + np.where(hidden, value, 0) if add else np.where(hidden, value, scores)
    causal = None if case.mask is None else case.causal
    return softmax(masked(scores, causal, None)) @ _values(case)


def _masked_keys(case):
    return ~(case.causal if case.mask is None else case.mask)


def _hidden_keys(case):
    return ~case.allowed


_ONE_QUERY_MASK = Disease(
    "mask-ignored-for-one-query",
    "The mask has no effect where there is one query.",
    "With more queries it is right; with one, as when a token is decoded, all keys are seen.",
    "Apply the mask whatever the number of queries: padding and a bias concern a single query too.",
    github("OpenNMT/OpenNMT-py", 2532, "pull"),
    (_unless_one_query(allowed=lambda c: c.causal, bias=lambda c: None),),
)

CAUSAL = (
    Disease(
        "causal-ignored",
        "The function sees the future although it was asked not to.",
        "It agrees with attention without a mask.",
        "Set the scores of later keys to -inf before the softmax.",
        github("alex-matton/causal-transformer-decoder", 1),
        (lambda c: attend(c, allowed=None),),
    ),
    Disease(
        "causal-ignored-for-one-query",
        "A single query sees all keys although causality was asked for.",
        "With more queries it is right; with one it agrees with attention without a mask.",
        "Counted from the start (upper left, as torch does), a single query sees the first key "
        "alone. If it is meant to see all, as when it is decoded against a cache, count from the "
        'end for any number of queries, and say so: causal_alignment="lower_right".',
        github("pytorch/executorch", 22426),
        (_unless_one_query(allowed=lambda c: None),),
    ),
    Disease(
        "causal-leaks-one",
        "Each query sees one key of the future: the causal mask is off by one.",
        "It agrees with a mask whose diagonal lies one to the right.",
        "Query i may see key j if j ≤ i: mask with triu(diagonal=1), keep with tril(diagonal=0).",
        github("RVC-Boss/GPT-SoVITS", 965),
        _causal(_tri(1)),
    ),
    Disease(
        "causal-excludes-itself",
        "No query sees its own key, and the first sees none: the causal mask is off by one.",
        "It agrees with a mask whose diagonal lies one to the left.",
        "Query i may see key j if j ≤ i, itself included: keep with tril(diagonal=0).",
        github("pbloem/former", 10),
        _causal(_tri(-1)),
    ),
    Disease(
        "causal-inverted",
        "The function sees the future and hides the past.",
        "It agrees with the complement of the causal mask, with or without the diagonal.",
        "Keep the lower triangle. Check what True means to whatever takes the mask.",
        github("rasbt/LLMs-from-scratch", 1061),
        (
            *_causal(lambda *sizes: ~_tri(0)(*sizes)),
            *_causal(lambda *sizes: ~_tri(-1)(*sizes)),
        ),
    ),
    Disease(
        "causal-wrong-alignment",
        "The causal mask is aligned to the wrong corner where queries and keys differ in number.",
        "It is right where there are as many queries as keys, and elsewhere agrees with the mask "
        "of the other corner.",
        "torch's is_causal counts from the start (upper left), flash-attention since 2.1 and new "
        "queries against a cache from the end (lower right): build that mask, or tell the doctor "
        "which is meant: causal_alignment=…",
        github("pytorch/pytorch", 108108),
        _causal(_other_alignment),
    ),
    Disease(
        "causal-leaks-within-blocks",
        "Each query sees all keys of its own block, later ones too.",
        "It agrees with a mask that is causal between blocks only.",
        "Mask the blocks on the diagonal entry by entry.",
        github("karpathy/nanochat", 844),
        tuple(way for size in (2, 4, 8, *USUAL) for way in _causal(_within_blocks(size))),
    ),
    Disease(
        "causal-after-softmax",
        "Weights of later keys are set to 0 after the softmax, so rows no longer sum to 1.",
        "It agrees with softmax(S), its upper triangle cut away.",
        "Mask the scores, before the softmax.",
        github("huggingface/pytorch-image-models", 2236, "pull"),
        (_after_softmax,),
    ),
    Disease(
        "causal-scores-zeroed",
        "Scores of later keys are set to 0 instead of -inf, and exp(0) = 1 is no small weight.",
        "It agrees with softmax(S · mask).",
        "Set the scores of later keys to -inf.",
        github("ilivans/tf-rnn-attention", 11),
        (_zeroed_scores,),
    ),
)

MASK = (
    Disease(
        "mask-ignored",
        "The mask has no effect.",
        "It agrees with attention without a mask.",
        "Add the mask to the scores, as 0 and -inf.",
        github("pytorch/pytorch", 117939),
        (lambda c: attend(c, allowed=c.causal, bias=None),),
    ),
    Disease(
        "mask-inverted",
        "The mask is read the wrong way round: True hides where it should show.",
        "It agrees with attention to exactly the keys that are masked.",
        'Invert the mask, or say which meaning is meant: mask_true_means="masked". '
        "scaled_dot_product_attention and nn.MultiheadAttention read it in opposite ways.",
        github("pytorch/pytorch", 170415, "pull"),
        (_visible_and_masked_exchanged,),
    ),
    Disease(
        "mask-after-softmax",
        "The mask is applied after the softmax, so the weights of a row no longer sum to 1.",
        "It agrees with softmax(S), masked afterwards and not normalised again.",
        "Mask the scores, before the softmax.",
        github("huggingface/pytorch-image-models", 2236, "pull"),
        (_after_softmax,),
    ),
    Disease(
        "masked-scores-zeroed",
        "Masked scores are set to 0 instead of -inf, and exp(0) = 1 is no small weight.",
        "It agrees with softmax(S · mask).",
        "Set masked scores to -inf.",
        github("ilivans/tf-rnn-attention", 11),
        (_mask_zeroes_scores,),
    ),
    Disease(
        "boolean-mask-added",
        "The boolean mask is added to the scores as 0 and 1.",
        "It agrees with softmax(S + mask): a masked key loses 1, not everything.",
        "Turn a boolean mask into 0 and -inf before you add it.",
        github("pytorch/pytorch", 21518),
        (_added,),
    ),
    Disease(
        "first-mask-for-all",
        "The mask of the first sequence (or head) serves all.",
        "It is right for masks that all share, and agrees with the first one elsewhere.",
        "Index the mask by sequence and head, where it has those axes.",
        github("lsdefine/attention-is-all-you-need-keras", 36),
        (_first_of_batch, _first_of_heads, _first_of_both),
    ),
    Disease(
        "some-masks-refused",
        "The function fails on masks of some shapes that broadcast to (B, H, T_q, T_k).",
        "It is right on the masks that it takes, and raises on the others.",
        "Let the mask broadcast: add missing axes in front, and index an axis of length 1 by 0.",
        github("meta-pytorch/opacus", 774),
    ),
    _ONE_QUERY_MASK,
)


BIAS = (
    Disease(
        "float-mask-ignored",
        "A float mask has no effect.",
        "It agrees with attention without a mask; boolean masks are read rightly.",
        "Add a float mask to the scaled scores.",
        github("pytorch/pytorch", 92554),
        (lambda c: attend(c, bias=None),),
    ),
    Disease(
        "mask-scaled-too",
        "The float mask is multiplied by the scale, like the scores.",
        "It agrees with softmax((Q Kᵀ + mask) · scale): -inf stays what it is, finite numbers "
        "shrink.",
        "Scale the scores, then add the mask.",
        github("tenstorrent/tt-metal", 56406, "pull"),
        (lambda c: _masked_bias(c, c.scale),),
    ),
    Disease(
        "float-mask-unscaled-scores",
        "With a float mask the scores are not scaled.",
        "It agrees with softmax(Q Kᵀ + mask).",
        "Scale the scores on the way with a mask as well.",
        github("mlc-ai/mlc-llm", 3426, "pull"),
        (lambda c: _masked_bias(c, 1.0),),
    ),
    Disease(
        "float-mask-read-as-boolean",
        "A float mask is read as True and False instead of added.",
        "It agrees with a boolean mask made of the numbers: zero or not, or -inf or not.",
        "Look at the mask's dtype: boolean masks select, float masks are added.",
        github("pytorch/pytorch", 107084),
        (
            _selected_by_bias(lambda bias: bias != 0),
            _selected_by_bias(lambda bias: bias == 0),
            _selected_by_bias(lambda bias: bias > 0),
            _selected_by_bias(lambda bias: bias > -np.inf),
        ),
    ),
    Disease(
        "float-mask-subtracted",
        "The float mask is subtracted instead of added.",
        "It agrees with softmax(S − mask), where -inf becomes +inf.",
        "Add it to the scaled scores.",
        github("pytorch/pytorch", 21518),
        (lambda c: softmax(masked(_scaled(c) - c.bias, c.allowed, None)) @ _values(c),),
    ),
    Disease(
        "float-mask-after-softmax",
        "The float mask is added to the weights, after the softmax.",
        "It agrees with (softmax(S) + mask) V.",
        "Add it to the scores, before the softmax.",
        github("huggingface/pytorch-image-models", 2236, "pull"),
        (_bias_after_softmax,),
    ),
    _ONE_QUERY_MASK,
)


def _on_empty_rows(values_of):
    """Right, but in rows without keys: there what values_of(case) gives."""

    def wrong(case):
        out = attend(case)
        empty = np.broadcast_to(case.empty_rows(), out.shape[:-1])[..., None]
        return np.where(empty, values_of(case), out)

    return wrong


FILL = (
    Disease(
        "fill-value-too-small",
        "Hidden scores get a fixed negative number that is not negative enough: where all visible "
        "scores lie below it, the hidden keys take the weight.",
        "With visible scores of −12000 it agrees with attention to keys that a mask, or causality, "
        "hides; with ordinary scores nothing shows.",
        "Fill with -inf, or with the smallest number of the dtype: torch.finfo(dtype).min.",
        github("huggingface/transformers", 17306, "pull"),
        tuple(
            lambda c, hidden=hidden, add=add: _filled(c, hidden(c), -1e4, add)
            for hidden in (_masked_keys, _hidden_keys)
            for add in (False, True)
        ),
    ),
)

EMPTY = (
    Disease(
        "nan-on-fully-masked-row",
        "A query that may see no key gets nan, which the next layer spreads to all others.",
        "All other rows are right; the softmax of -inf alone is 0/0.",
        "Let such a row give zeros: where the maximum is -inf subtract 0, where the sum is 0 "
        'divide by 1. Or guarantee that every query sees a key, and say so: empty_rows="any".',
        github("pytorch/pytorch", 103963),
        (_on_empty_rows(lambda c: np.nan),),
    ),
    Disease(
        "attends-on-fully-masked-row",
        "A query that may see no key gets a mean of values that it must not see.",
        "All other rows are right; in these, all scores are equally negative, so all keys share.",
        "Multiply such a row by 0 (or use -inf and catch the empty sum). If such rows never occur, "
        'say so: empty_rows="any".',
        github("NVIDIA/TensorRT-LLM", 17477),
        (
            _on_empty_rows(lambda c: _values(c).mean(axis=-2, keepdims=True)),
            _on_empty_rows(lambda c: attend(c, allowed=None, bias=None)),
        ),
    ),
)
