"""Attention kernels for exercise 4.3, right ones and broken ones, in PyTorch.

Most of the broken ones are right on some inputs, and say on which.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

BLOCK = 64  # keys at a time
_VISIBLE = 1e-3  # of the largest output: no right kernel rounds as coarsely


@dataclass(frozen=True)
class Call:
    """What a test gave to a kernel. B, H, T_q, T_k, d : sizes.

    off : how far the output was from PyTorch's. size : the largest entry of that. values_alike :
    all keys of a head have the same value. heads_alike, examples_alike : all heads, or all examples
    of the batch, have the same keys. flat : each query's scores are all alike. one_hot : each query
    gives its whole weight to one key.
    """

    B: int
    H: int
    T_q: int
    T_k: int
    d: int
    is_causal: bool
    off: float
    size: float
    values_alike: bool
    heads_alike: bool
    examples_alike: bool
    flat: bool
    one_hot: bool

    @property
    def visible(self) -> bool:
        """Whether the output is wrong beyond any rounding."""
        return not self.off <= _VISIBLE * self.size


@dataclass(frozen=True)
class Kernel:
    """words : what it does, after "a kernel that". run : itself. id : names the mistake, "" for a
    right kernel. blind : on which calls it looks right, with the words that say so, in the order
    in which they are tried. shows : what a test should do to see it."""

    words: str
    run: Callable
    id: str = ""
    blind: tuple[tuple[Callable[[Call], bool], str], ...] = ()
    shows: str = ""

    def why_blind(self, calls: list[Call]) -> str:
        """What the calls have in common on which this kernel looks right; "" if nothing known."""
        known = (words for looks_right, words in self.blind if all(map(looks_right, calls)))
        return next(known, "")


def warm_up() -> None:
    """Import what the first call of a test would import while its time runs."""
    import torch

    torch.testing.assert_close(torch.zeros(1), torch.zeros(1))


def watched(kernel: Kernel, calls: list[Call]) -> Callable:
    """The kernel as a test gets it. Each call is noted in `calls`."""
    import torch
    from torch.nn.functional import scaled_dot_product_attention

    def attention(query, key, value, is_causal=False):
        _check(query, key, value)
        wide = torch.promote_types(query.dtype, torch.float32)
        q, k, v = (x.to(wide) for x in (query, key, value))
        output = kernel.run(q, k, v, bool(is_causal))
        with torch.no_grad():
            right = scaled_dot_product_attention(q, k, v, is_causal=bool(is_causal))
            calls.append(_noted(q, k, v, bool(is_causal), output, right))
        return output.to(query.dtype)

    attention.__qualname__ = "attention"  # as error messages call it
    return attention


def _check(*tensors):
    import torch

    for name, x in zip(("query", "key", "value"), tensors):
        if not isinstance(x, torch.Tensor):
            raise TypeError(f"{name} must be a torch tensor, not {type(x).__name__}")
        if x.dim() != 4 or 0 in x.shape:
            raise ValueError(f"{name} must have the shape (B, H, T, D), not {tuple(x.shape)}")
        if not x.is_floating_point():
            raise TypeError(f"{name} must hold floating-point numbers, not {x.dtype}")


def _noted(q, k, v, is_causal, output, right) -> Call:
    weights = _plain(q, k, v.new_ones(()), is_causal, weights_alone=True)
    scores = q @ k.mT
    return Call(
        *(q.size(0), q.size(1), q.size(2), k.size(2), q.size(3), is_causal),
        off=(output - right).abs().max().item(),
        size=right.abs().max().item(),
        values_alike=bool((v == v[..., :1, :]).all()),
        heads_alike=bool((k == k[:, :1]).all()),
        examples_alike=bool((k == k[:1]).all()),
        flat=bool((scores - scores[..., :1]).abs().max() < 1e-6),
        one_hot=bool(weights.amax(-1).min() > 1 - 1e-6),
    )


# --- Two ways to compute attention, with all that can be wrong as an argument. ---


def _plain(q, k, v, is_causal, scale=None, axis=-1, ahead=0, weights_alone=False):
    """The formula. scale : None is 1/√d. axis : the softmax's. ahead : how many keys beyond its own
    a causal query sees."""
    scores = q @ k.mT * (q.size(-1) ** -0.5 if scale is None else scale)
    if is_causal:
        future = scores.new_ones(scores.shape[-2:]).triu(1 + ahead).bool()
        scores = scores.masked_fill(future, -math.inf)
    weights = scores.softmax(axis)
    return weights if weights_alone else weights @ v


def _in_blocks(q, k, v, is_causal, scale=None, rescaled=True, padded=False, backwards=False):
    """The online softmax. rescaled : what was summed up is brought in line as the maximum grows.
    padded : the last block is filled up with keys of zeros that nobody masks. backwards : the last
    block comes first, and powers of 2 are taken in place of exp."""
    from torch.nn.functional import pad

    q = q * (q.size(-1) ** -0.5 if scale is None else scale)
    q = q / math.log(2) if backwards else q
    power = type(q).exp2 if backwards else type(q).exp
    largest = q.new_full((*q.shape[:-1], 1), -math.inf)
    total, output = q.new_zeros(largest.shape), q.new_zeros((*q.shape[:-1], v.size(-1)))
    starts = range(0, k.size(-2), BLOCK)
    for start in reversed(starts) if backwards else starts:
        keys, values = (x[..., start : start + BLOCK, :] for x in (k, v))
        if padded:
            keys, values = (pad(x, (0, 0, 0, BLOCK - x.size(-2))) for x in (keys, values))
        scores = q @ keys.mT
        if is_causal:
            future = scores.new_ones(scores.shape[-2:]).triu(1 - start).bool()
            scores = scores.masked_fill(future, -math.inf)
        new_largest = largest.maximum(scores.amax(-1, keepdim=True))
        known = new_largest.masked_fill(new_largest == -math.inf, 0)  # −∞ − (−∞) would be nan
        weights = power(scores - known)
        shrink = power(largest - known) if rescaled else 1
        total = total * shrink + weights.sum(-1, keepdim=True)
        output = output * shrink + weights @ values
        largest = new_largest
    return output / total


# --- Right kernels ---


def _pytorch(q, k, v, is_causal):
    from torch.nn.functional import scaled_dot_product_attention

    return scaled_dot_product_attention(q, k, v, is_causal=is_causal)


def _in_float64(q, k, v, is_causal):
    return _plain(q.double(), k.double(), v.double(), is_causal).to(q.dtype)


RIGHT = (
    Kernel("calls PyTorch's own attention", _pytorch),
    Kernel("writes the formula down", _plain),
    Kernel(f"takes the keys in blocks of {BLOCK}", _in_blocks),
    Kernel("takes the blocks backwards", partial(_in_blocks, backwards=True)),
    Kernel("computes in float64 and rounds at the end", _in_float64),
)


# --- Broken kernels: the two that every test must catch come first. ---

_ONE_KEY = (lambda c: c.T_k == 1, "there is one key, and its weight is 1 whatever its score is")
_VALUES = (
    lambda c: c.values_alike,
    "all keys of a head have the same value, and the output is that, whatever the weights are",
)
_BLIND = (_ONE_KEY, _VALUES)
_BLIND_TO_SCALE = (
    *_BLIND,
    (
        lambda c: c.flat,
        "all scores of a query are alike (zeros, say, or ones throughout), and then so are its "
        "weights, at any scale",
    ),
    (
        lambda c: c.one_hot,
        "the largest score is so far above the others that it takes the whole weight, at either "
        "scale",
    ),
)
_NEVER_CAUSAL = (lambda c: not c.is_causal, "`is_causal` is never True")


def _hides_padding(call: Call) -> bool:
    """Whether a causal mask covers whatever comes after the last key."""
    return call.is_causal and call.T_q <= call.T_k


def _scaled(words: str, id: str, run: Callable, looks_right, why: str, shows: str) -> Kernel:
    return Kernel(words, run, id, (*_BLIND_TO_SCALE, (looks_right, why)), shows)


def _root_of_the_width(q, k, v, is_causal):
    return _plain(q, k, v, is_causal, scale=(q.size(1) * q.size(3)) ** -0.5)


def _root_of_the_length(q, k, v, is_causal):
    return _plain(q, k, v, is_causal, scale=k.size(2) ** -0.5)


def _always_causal(q, k, v, is_causal):
    return _plain(q, k, v, True)


def _never_causal(q, k, v, is_causal):
    return _plain(q, k, v, False)


def _keys_of_the_first_head(q, k, v, is_causal):
    return _plain(q, k[:, :1], v, is_causal)


def _keys_of_the_first_example(q, k, v, is_causal):
    return _plain(q, k[:1], v, is_causal)


BROKEN = (
    _scaled(
        "leaves out the scale, as the team's does",
        "no-scale",
        partial(_in_blocks, scale=1.0),
        lambda c: c.d == 1,
        "d_k is 1, and so is the scale",
        "Use random queries and keys of variance 1, with d_k of 16 or more.",
    ),
    _scaled(
        "divides by d_k",
        "divided-by-d_k",
        lambda q, k, v, is_causal: _plain(q, k, v, is_causal, scale=1 / q.size(-1)),
        lambda c: c.d == 1,
        "d_k is 1, where √d_k is 1 too",
        "Use random queries and keys of variance 1, with d_k of 16 or more.",
    ),
    _scaled(
        "always divides by 8",
        "scale-hard-coded",
        partial(_plain, scale=1 / 8),
        lambda c: c.d == 64,
        "d_k is 64, where √d_k is 8",
        "Test a d_k other than 64 too.",
    ),
    _scaled(
        "divides by √(H·D), the root of d_model",
        "root-of-d_model",
        _root_of_the_width,
        lambda c: c.H == 1,
        "there is one head, which has all of d_model",
        "Test more than one head.",
    ),
    _scaled(
        "divides by √T_k",
        "root-of-the-length",
        _root_of_the_length,
        lambda c: c.T_k == c.d,
        "T_k and d_k are the same number",
        "Test a number of keys other than d_k.",
    ),
    Kernel(
        "takes the softmax over the queries",
        partial(_plain, axis=-2),
        "softmax-wrong-axis",
        (),
        "Use random inputs, more than one query, and more than one key.",
    ),
    Kernel(
        "ignores `is_causal`",
        _never_causal,
        "causal-ignored",
        (_NEVER_CAUSAL, *_BLIND),
        "Test `is_causal=True` on random inputs.",
    ),
    Kernel(
        "lets a causal query see the next key too",
        partial(_plain, ahead=1),
        "leaks-by-one",
        (_NEVER_CAUSAL, *_BLIND),
        "Test `is_causal=True` on random inputs.",
    ),
    Kernel(
        "masks the future even if `is_causal` is False",
        _always_causal,
        "always-causal",
        ((lambda c: c.is_causal, "`is_causal` is never False"), *_BLIND),
        "Test `is_causal=False` on random inputs.",
    ),
    Kernel(
        f"takes the keys in blocks of {BLOCK} and forgets, when a later block has a larger score, "
        "to scale down what it has summed up",
        partial(_in_blocks, rescaled=False),
        "not-rescaled",
        (
            (lambda c: c.T_k <= BLOCK, f"all keys are in its first block of {BLOCK}"),
            *_BLIND_TO_SCALE[:-1],
        ),
        f"Test more than {BLOCK} keys.",
    ),
    Kernel(
        f"takes the keys in blocks of {BLOCK} and counts the zeros with which it fills up the last",
        partial(_in_blocks, padded=True),
        "padding-counted",
        (
            (lambda c: c.T_k % BLOCK == 0, f"the number of keys is a multiple of {BLOCK}"),
            (_hides_padding, "`is_causal` is never False, and the mask hides those zeros"),
            (
                lambda c: _hides_padding(c) or c.T_k % BLOCK == 0,
                f"the number of keys is a multiple of {BLOCK}, or a causal mask hides those zeros",
            ),
        ),
        f"Test a number of keys that is no multiple of {BLOCK}, with `is_causal=False`.",
    ),
    Kernel(
        "gives every head the keys of the first",
        _keys_of_the_first_head,
        "heads-mixed",
        (
            (lambda c: c.H == 1, "there is one head"),
            (lambda c: c.heads_alike, "all heads have the same keys"),
            *_BLIND_TO_SCALE[:-1],
        ),
        "Test more than one head, each with keys of its own.",
    ),
    Kernel(
        "gives every example of a batch the keys of the first",
        _keys_of_the_first_example,
        "batch-mixed",
        (
            (lambda c: c.B == 1, "the batch holds one example"),
            (lambda c: c.examples_alike, "all examples of the batch have the same keys"),
            *_BLIND_TO_SCALE[:-1],
        ),
        "Test a batch of more than one example, each with keys of its own.",
    ),
)
