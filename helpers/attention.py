"""Scaled dot-product attention as it is taught: the formula, one line per symbol, in NumPy.

    Attention(Q, K, V) = softmax(Q Kᵀ / √d_k) V    (Vaswani et al. 2017, 3.2.1, arXiv:1706.03762)

Shapes: query (..., T_q, d_k), key (..., T_k, d_k), value (..., T_k, d_v). T counts positions,
d counts features. Everything before the last two axes, usually batch and heads, broadcasts.

The reference is `torch.nn.functional.scaled_dot_product_attention` with its MATH backend: the
same arguments (but no dropout) and the same results, nan and inf included. Inputs are never
modified. What is checked, and said when it is wrong, stands in `_inputs.py`.
"""

import math
from typing import NamedTuple

import numpy as np

from helpers import _inputs as check

__all__ = [
    "AttentionSteps",
    "attention_backward",
    "attention_steps",
    "causal_mask",
    "entropy",
    "normalized_entropy",
    "scaled_dot_product_attention",
    "softmax",
    "softmax_jacobian",
]

# nan and inf are answers here, as they are in torch: NumPy need not warn of them.
without_warnings = np.errstate(all="ignore")


@without_warnings
def softmax(x, axis=-1):
    """exp(x) over its sum along `axis`: numbers from 0 to 1 that sum to 1.

    x: real numbers, any shape with at least one axis; integers are taken as float64.
    Returns the shape and dtype of x, computed in float32 or better. No unit: proportions.

    Where every entry is -inf there is nothing to choose from, and the result is all zeros, as in
    the MATH backend of torch's scaled_dot_product_attention (`torch.softmax` itself gives nan).
    A nan or +inf makes its whole row nan.

    Raises TypeError if x does not hold real numbers or axis is not an integer, ValueError if x is
    ragged or has no such axis.
    Source: Goodfellow, Bengio, Courville 2016, Deep Learning, 4.1 (why the maximum is subtracted).
    """
    x = check.real("x", x, min_dims=1)
    axis = check.axis(axis, x.ndim)
    z = check.in_float32_or_better(x)

    # Softmax ignores what all entries share: with the largest subtracted, exp cannot overflow.
    largest = z.max(axis=axis, keepdims=True, initial=-np.inf)
    largest = np.where(largest == -np.inf, 0, largest)  # all masked: -inf − (-inf) would be nan
    exps = np.exp(z - largest)

    total = exps.sum(axis=axis, keepdims=True)
    total = np.where(total == 0, 1, total)  # all masked: 0/0 would be nan
    return (exps / total).astype(x.dtype, copy=False)


class AttentionSteps(NamedTuple):
    """All intermediates of one attention, named as in the formula.

    `output` has the inputs' dtype, the others are in float32 or better.
    """

    scores: np.ndarray  # (..., T_q, T_k)  Q Kᵀ
    scaled: np.ndarray  # (..., T_q, T_k)  scores · scale, before any mask
    weights: np.ndarray  # (..., T_q, T_k)  softmax(masked): what each query takes from each key
    output: np.ndarray  # (..., T_q, d_v)  weights V
    scale: float  # 1/√d_k unless given
    masked: np.ndarray  # (..., T_q, T_k)  scaled + mask: -inf where a key may not be attended


@without_warnings
def attention_steps(q, k, v, scale=None, attn_mask=None, is_causal=False):
    """Attention with every step kept.

    q (..., T_q, d_k), k (..., T_k, d_k), v (..., T_k, d_v) -> AttentionSteps(scores, scaled,
    weights, output, scale, masked). `scaled` shows what the scale alone does, `masked` is what the
    softmax sees. No units.

    Arguments, special cases and errors are those of `scaled_dot_product_attention`.
    Source: Vaswani et al. 2017, section 3.2.1, equation 1.
    """
    is_causal = check.at_most_one_mask(attn_mask, is_causal)
    q, k, v = check.query_key_value(q, k, v)
    own_dtype = np.result_type(q, k, v)
    dtype = np.result_type(own_dtype, np.float32)  # to compute in: float16 would lose digits
    q, k, v = (x.astype(dtype, copy=False) for x in (q, k, v))
    scale = 1 / math.sqrt(q.shape[-1]) if scale is None else check.scale(scale)

    scores = q @ k.mT  # (..., T_q, d_k) @ (..., d_k, T_k) -> (..., T_q, T_k)
    scaled = scores * scale
    masked = scaled + _additive_mask(scaled, attn_mask, is_causal)  # added unscaled
    weights = softmax(masked, axis=-1)  # each query's weights over the keys sum to 1
    output = weights @ v  # (..., T_q, T_k) @ (..., T_k, d_v) -> (..., T_q, d_v)
    return AttentionSteps(scores, scaled, weights, output.astype(own_dtype), scale, masked)


def _additive_mask(scaled, attn_mask, is_causal):
    """Any mask as what to add: 0 leaves a score alone, -inf makes its weight exp(-inf) = 0."""
    if is_causal:
        mask = causal_mask(*scaled.shape[-2:])
    elif attn_mask is not None:
        mask = check.mask(attn_mask, scaled.shape)
    else:
        return 0
    return np.where(mask, 0, -np.inf).astype(scaled.dtype) if mask.dtype == bool else mask


def scaled_dot_product_attention(
    query, key, value, attn_mask=None, is_causal=False, scale=None, enable_gqa=False
):
    """softmax(query keyᵀ · scale + mask) value, as torch.nn.functional's function of this name.

    query, key, value   (..., T_q, d_k), (..., T_k, d_k), (..., T_k, d_v): floats, or integers
                        (taken as float64), arrays or nested lists. Leading axes broadcast. Mixed
                        float dtypes are promoted to the widest, where torch raises.
    attn_mask           broadcasts to (..., T_q, T_k). Boolean: True = may attend. Float: added to
                        the scaled scores.
    is_causal           query i sees keys 0 … i. If lengths differ, both count from the start
                        ("upper left").
    scale               any finite real number, 0 and negative too; None means 1/√d_k.
    enable_gqa          grouped-query attention: key and value may have fewer heads (axis -3) than
                        query; each serves equally many neighbouring heads of query.

    Returns (..., T_q, d_v) in the inputs' dtype; float16 is computed in float32. No units.

    As in torch's MATH backend: a query that may attend to no key, or with T_k = 0, gets zeros;
    other axes of length zero give an empty result. A mask adds -inf rather than removing a key:
    a score of nan or +inf turns its whole row into nan even where masked, and a nan or inf in
    value spoils its column even at weight 0 (0 · inf is nan). Unlike there: empty inputs must fit
    together like any others, and q·k is taken before scaling, so a float32 dot product beyond
    3e38 is inf.

    Raises TypeError for anything but real numbers (booleans, complex numbers, strings, objects),
    an integer mask, and a scale or flag of another kind. Raises ValueError for shapes that do not
    fit, fewer than two axes (three with enable_gqa), attn_mask together with is_causal, a scale
    that is not finite, head counts that do not divide, and, where torch returns senseless
    numbers, for d_k = 0 (1/√0) and for no heads of key or value under some of query.
    Sources: Vaswani et al. 2017, section 3.2.1; Ainslie et al. 2023, arXiv:2305.13245
    (enable_gqa); PyTorch's documentation of the function.
    """
    if check.flag("enable_gqa", enable_gqa):
        key, value = _repeat_heads(query, key, value)
    return attention_steps(query, key, value, scale, attn_mask, is_causal).output


def _repeat_heads(query, key, value):
    """Key and value with as many heads as query, neighbours alike: heads 0 0 1 1, not 0 1 0 1."""
    query, key, value = check.grouped_heads(query, key, value)
    H = query.shape[-3]
    # (..., H_kv, T_k, d) -> (..., H, T_k, d); max, because 0 heads of everything are allowed
    return [np.repeat(x, H // max(x.shape[-3], 1), axis=-3) for x in (key, value)]


def causal_mask(T_q, T_k, alignment="upper_left"):
    """Who may attend to whom when nobody looks ahead: boolean (T_q, T_k), True = may attend.

    T_q, T_k: numbers of queries and keys. If they are equal, both alignments give the same lower
    triangle. If not:
    "upper_left"   both start together: query i sees keys 0 … i. torch's is_causal=True is this.
    "lower_right"  both end together: the last query sees every key, as with new queries against a
                   cache of old keys. If T_q > T_k, the first T_q − T_k queries see nothing.

    Raises TypeError if a length is not a whole number, ValueError if it is negative or if the
    alignment is another.
    Source: PyTorch's documentation of torch.nn.attention.bias (causal_upper_left and _lower_right).
    """
    T_q, T_k = check.count("T_q", T_q), check.count("T_k", T_k)
    check.one_of("alignment", alignment, ("upper_left", "lower_right"))
    ahead = T_k - T_q if alignment == "lower_right" else 0  # keys that came before query 0
    queries = np.arange(T_q)[:, None]  # (T_q, 1)
    keys = np.arange(T_k)[None, :]  # (1, T_k)
    return keys <= queries + ahead


@without_warnings
def entropy(weights):
    """−Σ w ln w over the last axis, in nats: how undecided each row is. 0 · ln 0 counts as 0.

    weights (..., T_k) -> (...), in float32 or better. 0 if one key takes all, ln T_k if all share
    alike, 0 for a fully masked row (all zeros), nan for a row that holds nan.

    Raises TypeError if weights does not hold real numbers, ValueError if it holds a negative
    number or a row whose sum is neither 1 nor 0, to 0.01: they may be scores.
    Source: Shannon 1948, A Mathematical Theory of Communication, section 6.
    """
    w = check.weights(weights)
    log_w = np.log(np.where(w == 0, 1, w))  # ln 1 = 0 in place of ln 0 = -inf
    return 0 - (w * log_w).sum(axis=-1)  # a certain row is then 0, where -(0) is -0


@without_warnings
def normalized_entropy(weights, allowed=None):
    """Entropy over its largest value, ln(keys that row may attend): 0 certain, 1 uniform.

    weights (..., T_k), allowed boolean and broadcastable to that (None: all keys) -> (...), no
    unit, in float32 or better. A row that may attend to one key, or none, has nothing to decide
    (ln 1 = 0) and gives nan: average with np.nanmean.

    Raises as `entropy` does; also TypeError if allowed is not boolean, ValueError if it does not
    broadcast, or if weights gives weight to a key it rules out (in a row that has keys left).
    Source: Zhai et al. 2023, arXiv:2303.06296 (attention entropy); divided so that lengths compare.
    """
    w = check.weights(weights)
    allowed = check.allowed(True if allowed is None else allowed, w)
    keys_left = allowed.sum(axis=-1)  # (...)
    return entropy(w) / np.log(np.where(keys_left > 1, keys_left, np.nan))


@without_warnings
def softmax_jacobian(p):
    """diag(p) − p pᵀ: how each weight moves with each input of the softmax that gave p.

    p (..., n), weights that sum to 1 -> (..., n, n), entry [i, j] is ∂p_i/∂z_j, in float32 or
    better. Symmetric; each row sums to 0 (as exactly as p sums to 1), because a shift of all
    inputs moves nothing. Its
    largest eigenvalue is never above ½, which it reaches when two weights are ½. All zeros at
    one-hot.

    Raises as `entropy` does.
    Source: the quotient rule on e^{z_i} / Σ e^{z_m}.
    """
    p = check.weights(p)
    return p[..., :, None] * (np.eye(p.shape[-1], dtype=p.dtype) - p[..., None, :])


@without_warnings
def attention_backward(q, k, v, grad_output, attn_mask=None, is_causal=False, scale=None):
    """The gradient of a loss with respect to q, k and v, from the gradient at the output.

    q (..., T_q, d_k), k (..., T_k, d_k), v (..., T_k, d_v), grad_output (..., T_q, d_v) = ∂L/∂O
    -> (dq, dk, dv), with the shapes and dtypes of q, k and v (integers: float64). With S the
    masked scaled scores and A = softmax(S) the weights:

        dV = Aᵀ dO        dA = dO Vᵀ        dS = A ∘ (dA − rowsum(A ∘ dA))
        dQ = scale · dS K        dK = scale · dSᵀ Q

    The third is the product with softmax's Jacobian, row by row. Arguments and errors are those
    of `attention_steps`; also ValueError if grad_output does not have the output's shape.
    Source: Dao et al. 2022, arXiv:2205.14135, appendix B.2.
    """
    steps = attention_steps(q, k, v, scale, attn_mask, is_causal)
    d_out = check.real("grad_output", grad_output)
    if d_out.shape != steps.output.shape:
        raise ValueError(
            f"grad_output has shape {d_out.shape}, but the output has shape {steps.output.shape}: "
            "pass ∂L/∂output, one number for each number of the output."
        )
    inputs = check.query_key_value(q, k, v)
    Q, K, V = (x.astype(steps.weights.dtype, copy=False) for x in inputs)
    A = steps.weights

    dV = A.mT @ d_out
    dA = d_out @ V.mT
    dS = A * (dA - (A * dA).sum(axis=-1, keepdims=True))
    dQ = steps.scale * (dS @ K)
    dK = steps.scale * (dS.mT @ Q)
    return tuple(_unbroadcast(g, x) for g, x in zip((dQ, dK, dV), inputs))


def _unbroadcast(gradient, x):
    """The gradient of x where x was broadcast: each of its numbers was used several times."""
    extra = tuple(range(gradient.ndim - x.ndim))
    stretched = tuple(
        axis for axis in range(-x.ndim, 0) if x.shape[axis] == 1 and gradient.shape[axis] != 1
    )
    summed = gradient.sum(axis=extra).sum(axis=stretched, keepdims=True)
    return summed.astype(x.dtype, copy=False)
