"""Checks at the door, so that the modules behind it can read like their formulas.

Each function hands its argument back in the form the mathematics needs, or raises: a TypeError
for the wrong kind of thing, a ValueError for the right kind with a wrong shape or value. Every
message names what came, the rule it breaks, and what to do about it.
"""

import math
import numbers
import operator

import numpy as np


def array(name, x):
    """`x` as a NumPy array of whatever dtype it has."""
    try:
        return np.asarray(x)
    except ValueError as error:  # a ragged list
        raise ValueError(
            f"{name} is not a rectangular array ({error}). Give all its rows the same length."
        ) from None
    except (TypeError, RuntimeError) as error:  # a torch tensor in bfloat16, or with a gradient
        raise TypeError(f"{name} cannot be read as a NumPy array: {error}") from None


def real(name, x, min_dims=0):
    """`x` as an array of floats with at least `min_dims` dimensions. Integers become float64."""
    x = array(name, x)
    if x.dtype == bool:
        raise TypeError(
            f"{name} holds True and False, but must hold real numbers. A boolean array says who "
            "may attend to whom: pass it as attn_mask."
        )
    if x.dtype.kind not in "iuf":
        raise TypeError(
            f"{name} has dtype {x.dtype}, but must hold real numbers. Convert it to floats, for "
            "example with np.asarray(..., dtype=np.float64)."
        )
    if x.ndim < min_dims:
        raise ValueError(
            f"{name} has shape {x.shape}, but needs at least {min_dims} dimension(s). "
            "Put a missing axis in front with x[None]."
        )
    return x if x.dtype.kind == "f" else x.astype(np.float64)


def in_float32_or_better(x):
    """`x` in a precision fit to compute in: float16 loses digits in sums and ends at 65504."""
    return x.astype(np.result_type(x.dtype, np.float32), copy=False)


def query_key_value(query, key, value):
    """The three inputs of attention as float arrays whose shapes fit together."""
    query, key, value = (real(n, x, min_dims=2) for n, x in _named(query, key, value))
    d_k, T_k = query.shape[-1], key.shape[-2]
    if key.shape[-1] != d_k:
        raise ValueError(
            f"query has shape {query.shape} and key has shape {key.shape}: their last axes, d_k, "
            f"must be equal, but {d_k} is not {key.shape[-1]}. Pass key as (..., T_k, d_k), "
            "not transposed."
        )
    if d_k == 0:
        raise ValueError(
            f"query has shape {query.shape}, so d_k = 0: a dot product needs at least one feature, "
            "and 1/√0 does not exist. Give query and key a last axis of 1 or more."
        )
    if value.shape[-2] != T_k:
        raise ValueError(
            f"key has shape {key.shape} and value has shape {value.shape}: each key needs one "
            f"value, but {T_k} is not {value.shape[-2]}. Pass value as (..., T_k, d_v)."
        )
    _require_batch_axes_fit(query, key, value)
    return query, key, value


def _named(query, key, value):
    return ("query", query), ("key", key), ("value", value)


def _require_batch_axes_fit(query, key, value):
    try:
        np.broadcast_shapes(query.shape[:-2], key.shape[:-2], value.shape[:-2])
    except ValueError:
        raise ValueError(
            f"query {query.shape}, key {key.shape} and value {value.shape} must agree in all axes "
            "before the last two (or have 1 there, or nothing). If axis -3 counts heads and key "
            "and value have fewer, pass enable_gqa=True to scaled_dot_product_attention."
        ) from None


def grouped_heads(query, key, value):
    """The three inputs as float arrays whose head counts (axis -3) fit grouped-query attention."""
    query, key, value = (real(n, x, min_dims=3) for n, x in _named(query, key, value))
    H = query.shape[-3]
    for name, x in (("key", key), ("value", value)):
        H_kv = x.shape[-3]
        if H_kv != H and (H_kv == 0 or H % H_kv != 0):
            raise ValueError(
                f"query {query.shape} has {H} heads and {name} {x.shape} has {H_kv} (axis -3): "
                f"with enable_gqa=True the second must divide the first. Give {name} a number of "
                f"heads that divides {H}."
            )
    return query, key, value


def scale(value):
    """The scale as a Python float: any finite real number, zero and negative ones too."""
    if not isinstance(value, numbers.Real) or isinstance(value, bool):
        raise TypeError(
            f"scale is {value!r} ({type(value).__name__}), but must be one real number. "
            "Pass a float such as 0.125, or None for 1/√d_k."
        )
    try:
        number = float(value)
    except OverflowError:  # a Python integer may be larger than any float
        number = math.inf
    if not math.isfinite(number):
        raise ValueError(
            f"scale is {number}, but must be finite, or every score becomes inf or nan. "
            "Pass a finite number, or None for 1/√d_k."
        )
    return number


def flag(name, value):
    """`value` if it is True or False; torch's fifth argument, dropout_p, is not."""
    if not isinstance(value, bool | np.bool_):
        raise TypeError(
            f"{name} is {value!r}, but must be True or False. Pass {name} by its name: "
            "the order of arguments is not torch's, as there is no dropout_p here."
        )
    return bool(value)


def mask(attn_mask, scores_shape):
    """The mask as a boolean or float array that broadcasts to the scores, (..., T_q, T_k)."""
    attn_mask = array("attn_mask", attn_mask)
    if attn_mask.dtype.kind not in "bf":
        raise TypeError(
            f"attn_mask has dtype {attn_mask.dtype}, but must be boolean (True = may attend) or "
            "float (added to the scaled scores). If 1 means 'may attend', pass mask.astype(bool)."
        )
    _require_broadcastable("attn_mask", attn_mask.shape, "the scores", scores_shape)
    return attn_mask


def at_most_one_mask(attn_mask, is_causal):
    """`is_causal` if it is a flag, and False when attn_mask is given too."""
    is_causal = flag("is_causal", is_causal)
    if attn_mask is not None and is_causal:
        raise ValueError(
            "attn_mask and is_causal=True were both given, but only one may be. Combine them "
            "yourself, for a boolean mask as attn_mask & causal_mask(T_q, T_k)."
        )
    return is_causal


def weights(x):
    """Attention weights in float32 or better: rows that sum to 1 (or to 0, if fully masked)."""
    x = in_float32_or_better(real("weights", x, min_dims=1))
    sums = x.sum(axis=-1)
    # float16 weights of a long row miss 1 by up to 0.002; scores taken for weights miss it by far.
    wrong_sums = sums[(np.abs(sums - 1) > 0.01) & (sums != 0)]
    negative = x[x < 0]
    if negative.size or wrong_sums.size:
        found = f"{negative[0]:.3g}" if negative.size else f"a row with sum {wrong_sums[0]:.3g}"
        raise ValueError(
            f"weights of shape {x.shape} holds {found}, but each row must be probabilities that "
            "sum to 1. Pass softmax(scores), not the scores."
        )
    return x


def allowed(mask, weights):
    """The keys each row may attend, as booleans in the shape of `weights`, which must obey them."""
    mask = array("allowed", mask)
    if mask.dtype != bool:
        raise TypeError(
            f"allowed has dtype {mask.dtype}, but must be boolean (True = may attend). "
            "From an additive mask, pass mask > -np.inf."
        )
    _require_broadcastable("allowed", mask.shape, "weights", weights.shape)
    mask = np.broadcast_to(mask, weights.shape)
    strays = weights[~mask & (weights > 0) & mask.any(axis=-1, keepdims=True)]
    if strays.size:
        raise ValueError(
            f"weights gives {strays.max():.3g} to a key that allowed rules out. True means 'may "
            "attend': if your mask means the opposite, pass ~mask."
        )
    return mask


def axis(value, ndim):
    """`value` if it names one of `ndim` axes."""
    if not isinstance(value, numbers.Integral) or isinstance(value, bool):
        raise TypeError(f"axis is {value!r}, but must be one integer. Use -1 for the last axis.")
    if not -ndim <= value < ndim:
        raise ValueError(
            f"axis is {value}, but an array of {ndim} dimension(s) has axes {-ndim} to {ndim - 1}. "
            "Use -1 for the last axis."
        )
    return operator.index(value)


def count(name, value):
    """`value` if it is a whole number, 0 or more."""
    if not isinstance(value, numbers.Integral) or isinstance(value, bool):
        raise TypeError(f"{name} is {value!r}, but must be a whole number. Pass q.shape[-2] or so.")
    if value < 0:
        raise ValueError(f"{name} is {value}, but counts positions. Pass 0 or more.")
    return operator.index(value)


def one_of(name, value, choices):
    if value not in choices:
        raise ValueError(f"{name} is {value!r}. Pass one of {', '.join(map(repr, choices))}.")
    return value


def _require_broadcastable(name, shape, target_name, target):
    """Broadcasting may stretch `shape` to `target`, but never stretches `target`, as in torch."""
    try:
        fits = np.broadcast_shapes(shape, target) == target
    except ValueError:
        fits = False
    if not fits:
        raise ValueError(
            f"{name} has shape {shape}, but must broadcast to {target}, the shape of "
            f"{target_name}. Counted from the right, make each of its axes equal to that, or 1."
        )
