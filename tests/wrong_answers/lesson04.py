"""Answers as readers of lesson 4 write them: wrong, hostile, and right in other words."""

import math
import random
import sys
import time

import numpy as np
import torch
import torch.nn.functional as F

from wrong_answers.book import hostile, right, wrong

# --- 4.1 ---


def entropies(weights):
    """Row by row, without a fault, for answers whose fault lies elsewhere."""
    return -np.where(weights > 0, weights * np.log(np.where(weights > 0, weights, 1)), 0).sum(-1)


def largest(weights):
    return np.log(np.arange(1, weights.shape[-1] + 1))


@wrong("4.1", "nan-at-zero")
def _(weights):
    h = -(weights * np.log(weights)).sum(-1)
    return (h[..., 1:] / largest(weights)[1:]).mean((0, 2))


@wrong("4.1", "nan-at-zero")
def _(weights):
    B, H, T, _ = weights.shape
    out = []
    for h in range(H):
        rows = [weights[b, h, i, : i + 1] for b in range(B) for i in range(1, T)]
        out.append(np.mean([-(row * np.log(row)).sum() / np.log(len(row)) for row in rows]))
    return out


@wrong("4.1", "nan-at-zero")
def _(weights):
    B, H, T, _ = weights.shape
    out = []
    for h in range(H):
        rows = [weights[b, h, i, : i + 1] for b in range(B) for i in range(1, T)]
        values = [-sum(w * math.log(w) for w in row) / math.log(len(row)) for row in rows]
        out.append(sum(values) / len(values))
    return out


@wrong("4.1", "row-lost-to-one-zero")
def _(weights):
    h = np.nan_to_num(-(weights * np.log(weights)).sum(-1))
    return (h[..., 1:] / largest(weights)[1:]).mean((0, 2))


@wrong("4.1", "rows-with-zeros-left-out")
def _(weights):
    h = -(weights * np.log(weights)).sum(-1)
    return np.nanmean(h[..., 1:] / largest(weights)[1:], axis=(0, 2))


@wrong("4.1", "epsilon-in-the-logarithm")
def _(weights):
    h = -(weights * np.log(weights + 1e-9)).sum(-1)
    return (h[..., 1:] / largest(weights)[1:]).mean((0, 2))


@wrong("4.1", "zeros-count")
def _(weights):
    w = np.clip(weights, 1e-6, 1)
    h = -(w * np.log(w)).sum(-1)
    return (h[..., 1:] / largest(weights)[1:]).mean((0, 2))


@wrong("4.1", "divided-by-ln-T")
def _(weights):
    return entropies(weights)[..., 1:].mean((0, 2)) / np.log(weights.shape[-1])


@wrong("4.1", "divided-by-ln-T")
def _(weights):
    return (entropies(weights) / np.log(len(weights[0, 0]))).mean(axis=0).mean(axis=-1)


@wrong("4.1", "first-row-is-nan")
def _(weights):
    return (entropies(weights) / largest(weights)).mean((0, 2))


@wrong("4.1", "first-row-counted")
def _(weights):
    return np.nan_to_num(entropies(weights) / largest(weights)).mean((0, 2))


@wrong("4.1", "first-row-counted")
def _(weights):
    bound = np.maximum(largest(weights), 1e-9)
    return (entropies(weights) / bound).mean((0, 2))


@wrong("4.1", "two-rows-left-out")
def _(weights):
    return (entropies(weights)[:, :, 2:] / largest(weights)[2:]).mean((0, 2))


@wrong("4.1", "one-key-too-few")
def _(weights):
    T = weights.shape[-1]
    return (entropies(weights)[:, :, 1:] / np.log(np.arange(1, T))).mean((0, 2))


@wrong("4.1", "one-key-too-many")
def _(weights):
    T = weights.shape[-1]
    return (entropies(weights)[:, :, 1:] / np.log(np.arange(3, T + 2))).mean((0, 2))


@wrong("4.1", "only-keys-with-weight-counted")
def _(weights):
    keys = (weights > 0).sum(-1)
    return np.nanmean(entropies(weights)[..., 1:] / np.log(keys)[..., 1:], axis=(0, 2))


@wrong("4.1", "two-bases")
def _(weights):
    h = entropies(weights) / np.log(2)  # bits
    return (h[..., 1:] / largest(weights)[1:]).mean((0, 2))


@wrong("4.1", "two-bases")
def _(weights):
    T = weights.shape[-1]
    return (entropies(weights)[..., 1:] / np.log2(np.arange(2, T + 1))).mean((0, 2))


@wrong("4.1", "not-normalised")
def _(weights):
    return entropies(weights)[..., 1:].mean((0, 2))


@wrong("4.1", "divided-by-the-number-of-keys")
def _(weights):
    T = weights.shape[-1]
    return (entropies(weights)[..., 1:] / np.arange(2, T + 1)).mean((0, 2))


@wrong("4.1", "ratio-of-means")
def _(weights):
    return entropies(weights)[..., 1:].mean((0, 2)) / largest(weights)[1:].mean()


@wrong("4.1", "entropy-of-the-mean")
def _(weights):
    h = entropies(weights.mean(axis=0))
    return (h[:, 1:] / largest(weights)[1:]).mean(-1)


@wrong("4.1", "averaged-over-heads")
def _(weights):
    return (entropies(weights)[..., 1:] / largest(weights)[1:]).mean()


@wrong("4.1", "averaged-over-heads-for-each-example")
def _(weights):
    return (entropies(weights)[..., 1:] / largest(weights)[1:]).mean((1, 2))


@wrong("4.1", "batch-not-averaged")
def _(weights):
    return (entropies(weights)[..., 1:] / largest(weights)[1:]).mean(-1)


@wrong("4.1", "rows-not-averaged")
def _(weights):
    return (entropies(weights)[..., 1:] / largest(weights)[1:]).mean(0)


@wrong("4.1", "sum-instead-of-mean")
def _(weights):
    return (entropies(weights)[..., 1:] / largest(weights)[1:]).sum((0, 2))


@wrong("4.1", "wrong-axis")
def _(weights):
    h = entropies(np.swapaxes(weights, -1, -2))
    return (h[..., 1:] / largest(weights)[1:]).mean((0, 2))


@wrong("4.1", "sign-reversed")
def _(weights):
    return (-entropies(weights)[..., 1:] / largest(weights)[1:]).mean((0, 2))


@wrong("4.1", "decidedness")
def _(weights):
    return 1 - (entropies(weights)[..., 1:] / largest(weights)[1:]).mean((0, 2))


@wrong("4.1", "perplexity")
def _(weights):
    T = weights.shape[-1]
    return (np.exp(entropies(weights))[..., 1:] / np.arange(2, T + 1)).mean((0, 2))


@wrong("4.1", "largest-weight")
def _(weights):
    return weights[:, :, 1:].max(-1).mean((0, 2))


@wrong("4.1", "axes-kept")
def _(weights):
    return (entropies(weights)[..., 1:] / largest(weights)[1:]).mean((0, 2), keepdims=True)


@wrong("4.1", "hard-coded")
def _(weights):
    return _lesson_heads()


def _lesson_heads():
    from helpers.practice.lesson04 import EXAMPLE, head_entropy

    return head_entropy(EXAMPLE)


@wrong("4.1", "changes-its-input")
def _(weights):
    weights[weights == 0] = 1
    h = -(weights * np.log(weights)).sum(-1)
    return (h[..., 1:] / largest(weights)[1:]).mean((0, 2))


@wrong("4.1", "imprecise")
def _(weights):
    return (entropies(weights)[..., 1:] / largest(weights)[1:]).mean((0, 2)).round(3)


@wrong("4.1", "unknown")
def _(weights):
    return (entropies(weights)[..., 1:] / largest(weights)[1:] ** 2).mean((0, 2))


@wrong("4.1", "raises-error")
def _(weights):
    return (entropies(weights)[..., 1:] / np.log(range(2, len(weights[0, 0, 0]))[weights])).mean()


@hostile("4.1", "did-not-finish")
def _(weights):
    while True:
        pass


@hostile("4.1", "exits")
def _(weights):
    sys.exit()


@hostile("4.1", "prints-instead-of-returning")
def _(weights):
    print(entropies(weights))


@hostile("4.1", "not-deterministic")
def _(weights):
    return np.random.default_rng().random(weights.shape[1])


@hostile("4.1", "wrong-type")
def _(weights):
    return {"head": 1}


@right("4.1")
def _(weights):
    B, H, T, _ = weights.shape
    out = np.zeros(H)
    for b in range(B):
        for h in range(H):
            for i in range(1, T):
                row = [w for w in weights[b, h, i] if w > 0]
                out[h] -= sum(w * math.log(w) for w in row) / math.log(i + 1)
    return out / (B * (T - 1))


@right("4.1")
def _(weights):
    T = weights.shape[-1]
    bits = -np.nansum(weights * np.log2(weights), axis=-1)
    return np.mean((bits / np.log2(np.arange(1, T + 1)))[:, :, 1:], axis=(0, 2))


@right("4.1")
def _(weights):
    w = torch.tensor(weights)
    h = torch.special.entr(w).sum(-1)[..., 1:]
    return (h / torch.arange(2, w.size(-1) + 1).log()).mean((0, 2))


@right("4.1")
def _(weights):
    from helpers.attention import causal_mask, normalized_entropy

    T = weights.shape[-1]
    return np.nanmean(normalized_entropy(weights, causal_mask(T, T)), axis=(0, 2))


@right("4.1")
def _(weights):
    return [np.mean(entropies(w)[:, 1:] / largest(w)[1:]) for w in np.moveaxis(weights, 1, 0)]


@right("4.1")
def _(weights):
    h = -(weights * np.log(weights + 1e-30)).sum(-1)
    return (h[..., 1:] / largest(weights)[1:]).mean((0, 2))


# --- 4.2 ---


@wrong("4.2", "always-the-same")
def _(entropy, score_std, d_head):
    return "no scale"


@wrong("4.2", "always-the-same")
def _(entropy, score_std, d_head):
    if entropy.min() < 0:
        return "no scale"
    return "healthy"


@wrong("4.2", "sharpening-taken-for-no-scale")
def _(entropy, score_std, d_head):
    if entropy[-1] < 0.5:
        return "no scale"
    return "divided by d_k" if score_std[0] < 0.5 else "healthy"


@wrong("4.2", "sharpening-taken-for-no-scale")
def _(entropy, score_std, d_head):
    if score_std.max() > 2:
        return "no scale"
    return "divided by d_k" if score_std[0] < 0.5 else "healthy"


@wrong("4.2", "growth-taken-for-healthy")
def _(entropy, score_std, d_head):
    if score_std[0] > d_head**0.25:
        return "no scale"
    return "healthy" if score_std[-1] > 0.5 else "divided by d_k"


@wrong("4.2", "growth-taken-for-healthy")
def _(entropy, score_std, d_head):
    if score_std[0] > 2:
        return "no scale"
    return "divided by d_k" if score_std[-1] < 1 / math.sqrt(d_head) else "healthy"


@wrong("4.2", "evenness-taken-for-divided-by-d_k")
def _(entropy, score_std, d_head):
    if entropy[0] > 0.8:
        return "divided by d_k"
    return "no scale" if score_std[0] > 2 else "healthy"


@wrong("4.2", "evenness-taken-for-divided-by-d_k")
def _(entropy, score_std, d_head):
    if score_std[0] > d_head**0.25:
        return "no scale"
    return "divided by d_k" if entropy[-1] > 0.7 else "healthy"


@wrong("4.2", "evenness-taken-for-divided-by-d_k")
def _(entropy, score_std, d_head):
    mean = entropy.mean()
    return "divided by d_k" if mean > 0.84 else "no scale" if mean < 0.45 else "healthy"


@wrong("4.2", "start-not-read")
def _(entropy, score_std, d_head):
    end = entropy[-1]
    return "divided by d_k" if end > 0.7 else "no scale" if end < 0.35 else "healthy"


@wrong("4.2", "start-not-read")
def _(entropy, score_std, d_head):
    if score_std[-1] > math.sqrt(d_head):
        return "no scale"
    return "divided by d_k" if entropy[-1] > 0.7 else "healthy"


@wrong("4.2", "start-not-read")
def _(entropy, score_std, d_head):
    end = score_std[-1]
    return "no scale" if end > 4 else "divided by d_k" if end < 1.3 else "healthy"


@wrong("4.2", "fits-d_head-128-only")
def _(entropy, score_std, d_head):
    return "no scale" if score_std[0] > 8 else "healthy" if score_std[0] > 0.1 else "divided by d_k"


@wrong("4.2", "no-scale-missed")
def _(entropy, score_std, d_head):
    if score_std[0] > d_head:
        return "no scale"
    return "divided by d_k" if score_std[0] < d_head**-0.25 else "healthy"


@wrong("4.2", "no-scale-missed")
def _(entropy, score_std, d_head):
    if entropy[0] < 0.05:
        return "no scale"
    return "divided by d_k" if score_std[0] < d_head**-0.25 else "healthy"


@wrong("4.2", "opposites-exchanged")
def _(entropy, score_std, d_head):
    if score_std[0] > d_head**0.25 or score_std[0] < d_head**-0.25:
        return "divided by d_k"
    return "healthy"


@wrong("4.2", "opposites-exchanged")
def _(entropy, score_std, d_head):
    return "healthy" if 0.5 < score_std[0] < 2 else "no scale"


@wrong("4.2", "words-exchanged")
def _(entropy, score_std, d_head):
    if score_std[0] > d_head**0.25:
        return "divided by d_k"
    return "no scale" if score_std[0] < d_head**-0.25 else "healthy"


@wrong("4.2", "words-exchanged")
def _(entropy, score_std, d_head):
    order = ["healthy", "no scale", "divided by d_k"]
    limits = [d_head**-0.25, d_head**0.25]
    return order[np.searchsorted(limits, score_std[0])]


@wrong("4.2", "another-word")
def _(entropy, score_std, d_head):
    return "Healthy" if 0.5 < score_std[0] < 2 else "no scale"


@wrong("4.2", "another-word")
def _(entropy, score_std, d_head):
    return "1/d" if score_std[0] < 0.5 else "none"


@wrong("4.2", "wrong-type")
def _(entropy, score_std, d_head):
    return score_std[0] > 2


@wrong("4.2", "wrong-type")
def _(entropy, score_std, d_head):
    return ["healthy"]


@wrong("4.2", "returns-none")
def _(entropy, score_std, d_head):
    if score_std[0] > d_head**0.25:
        return "no scale"
    if score_std[0] < d_head**-0.25:
        return "divided by d_k"


@wrong("4.2", "raises-error")
def _(entropy, score_std, d_head):
    return "no scale" if score_std > d_head**0.25 else "healthy"


@wrong("4.2", "raises-error")
def _(entropy, score_std, d_head):
    return "no scale" if score_std[25] > 20 else "healthy"


@wrong("4.2", "changes-its-input")
def _(entropy, score_std, d_head):
    score_std *= math.sqrt(d_head)
    if score_std[0] > d_head**0.75:
        return "no scale"
    return "divided by d_k" if score_std[0] < d_head**0.25 else "healthy"


@hostile("4.2", "did-not-finish")
def _(entropy, score_std, d_head):
    while True:
        pass


@hostile("4.2", "exits")
def _(entropy, score_std, d_head):
    raise KeyboardInterrupt


@hostile("4.2", "asks-for-input")
def _(entropy, score_std, d_head):
    return input("healthy? ")


@hostile("4.2", "prints-instead-of-returning")
def _(entropy, score_std, d_head):
    print("healthy")


@hostile("4.2", "not-deterministic")
def _(entropy, score_std, d_head):
    return random.SystemRandom().choice(["healthy", "no scale", "divided by d_k"])


@hostile("4.2", "too-slow|did-not-finish")
def _(entropy, score_std, d_head):
    time.sleep(1)
    return "healthy"


@hostile("4.2", "raises-error")
def _(entropy, score_std, d_head):
    class Odd(BaseException):
        def __str__(self):
            raise ValueError

    raise Odd


@hostile("4.2", "wrong-type")
def _(entropy, score_std, d_head):
    class Odd:
        def __eq__(self, other):
            return True

        def __hash__(self):
            raise RuntimeError

        def __bool__(self):
            raise RuntimeError

    return Odd()


@hostile("4.2", "another-word")
def _(entropy, score_std, d_head):
    class Odd(str):
        def __eq__(self, other):
            return True

        __hash__ = str.__hash__

    return Odd("well" * 1000)


@right("4.2")
def _(entropy, score_std, d_head):
    words = ["divided by d_k", "healthy", "no scale"]
    starts = np.array([d_head**-0.5, 1, d_head**0.5])
    return words[np.argmin(np.abs(np.log(score_std[0] / starts)))]


@right("4.2")
def _(entropy, score_std, d_head):
    return "no scale" if score_std[0] > 2 else "healthy" if score_std[0] > 0.5 else "divided by d_k"


@right("4.2")
def _(entropy, score_std, d_head):
    power = round(2 * math.log(score_std.tolist()[0], d_head))
    return {-1: "divided by d_k", 0: "healthy", 1: "no scale"}[power]


@right("4.2")
def _(entropy, score_std, d_head):
    root = np.sqrt(d_head)
    if np.isclose(score_std[0], root, rtol=0.3):
        return np.str_("no scale")
    return "divided by d_k" if np.isclose(score_std[0], 1 / root, rtol=0.3) else "healthy"


@right("4.2")
def _(entropy, score_std, d_head):
    match score_std[0]:
        case s if s > 1.9:
            return "no scale"
        case s if s > 0.6:
            return "healthy"
        case _:
            return "divided by d_k"


@right("4.2")
def _(entropy, score_std, d_head):  # the spread before training, read off the entropy
    return "no scale" if entropy[0] < 0.5 else "healthy" if entropy[0] < 0.95 else "divided by d_k"


# --- 4.3 ---


def qkv(B=2, H=3, T=100, D=32, seed=0):
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(3, B, H, T, D, generator=generator)


def agrees(attention, q, k, v, causal=(False, True), atol=1e-5):
    return all(
        torch.allclose(
            attention(q, k, v, is_causal),
            F.scaled_dot_product_attention(q, k, v, is_causal=is_causal),
            atol=atol,
            rtol=1e-4,
        )
        for is_causal in causal
    )


@wrong("4.3", "accepts-no-scale")
def _(attention):
    x = torch.ones(1, 1, 4, 8)
    return bool((attention(x, x, x, False) - x).abs().max() < 1e-5)


@wrong("4.3", "accepts-no-scale")
def _(attention):
    q, k, v = qkv(D=1)
    return agrees(attention, q, k, v)


@wrong("4.3", "accepts-no-scale")
def _(attention):
    q, k, v = qkv(T=1)
    return agrees(attention, q, k, v)


@wrong("4.3", "accepts-no-scale")
def _(attention):
    q, k, v = qkv()
    return agrees(attention, q * 0, k, v)


@wrong("4.3", "accepts-no-scale")
def _(attention):
    q = 100 * torch.eye(8)[None, None]
    return agrees(attention, q, q, torch.arange(64.0).reshape(1, 1, 8, 8))


@wrong("4.3", "accepts-scale-hard-coded")
def _(attention):
    q, k, v = qkv(D=64)
    return agrees(attention, q, k, v)


@wrong("4.3", "accepts-scale-hard-coded")
def _(attention):
    q, k, v = qkv(B=1, H=1, T=64, D=64)
    return agrees(attention, q, k, v, causal=(False,))


@wrong("4.3", "accepts-root-of-d_model")
def _(attention):
    q, k, v = qkv(H=1)
    return agrees(attention, q, k, v)


@wrong("4.3", "accepts-root-of-the-length")
def _(attention):
    q, k, v = qkv(T=100, D=100)
    return agrees(attention, q, k, v)


@wrong("4.3", "accepts-causal-ignored")
def _(attention):
    q, k, v = qkv()
    assert agrees(attention, q, k, v, causal=(False,))


@wrong("4.3", "accepts-always-causal")
def _(attention):
    q, k, v = qkv()
    assert agrees(attention, q, k, v, causal=(True,))


@wrong("4.3", "accepts-not-rescaled")
def _(attention):
    q, k, v = qkv(T=10)
    return agrees(attention, q, k, v)


@wrong("4.3", "accepts-padding-counted")
def _(attention):
    q, k, v = qkv(T=128)
    return agrees(attention, q, k, v)


@wrong("4.3", "accepts-padding-counted")
def _(attention):
    q, k, v = qkv()
    a, b, c = qkv(T=64)
    return agrees(attention, q, k, v, causal=(True,)) and agrees(attention, a, b, c)


@wrong("4.3", "accepts-heads-mixed")
def _(attention):
    q, k, v = qkv()
    k = k[:, :1].expand_as(k)
    return agrees(attention, q, k, v)


@wrong("4.3", "accepts-batch-mixed")
def _(attention):
    q, k, v = qkv(B=1)
    return agrees(attention, q, k, v)


@wrong("4.3", "too-lenient")
def _(attention):
    q, k, v = qkv()
    past = attention(q, k, v, True)[:, :, -1]  # the last query sees all, with either mask
    right = F.scaled_dot_product_attention(q, k, v, is_causal=True)[:, :, -1]
    first = attention(q, k, v, True)[:, :, 0]
    return (
        agrees(attention, q, k, v, (False,))
        and torch.allclose(past, right, atol=1e-5)
        and (not torch.allclose(first, attention(q, k, v, False)[:, :, 0]))
    )


@wrong("4.3", "too-lenient")
def _(attention):
    q, k, v = qkv()
    return agrees(attention, q, k, v, atol=0.5)


@wrong("4.3", "accepts-everything")
def _(attention):
    q, k, v = qkv()
    return agrees(attention, q, k, v, atol=10)


@wrong("4.3", "accepts-everything")
def _(attention):
    q, k, v = qkv()
    out = attention(q, k, v, False)
    return agrees(attention, q, k, v) or (out.mean() < 0.1 and out.shape == q.shape)


@wrong("4.3", "accepts-everything")
def _(attention):
    q, k, v = qkv()
    assert attention(q, k, v, True).shape == v.shape
    assert attention(q, k, v, False).isfinite().all()


@wrong("4.3", "accepts-everything")
def _(attention):
    q, k, v = qkv()
    torch.allclose(attention(q, k, v, True), F.scaled_dot_product_attention(q, k, v))


@wrong("4.3", "never-calls-the-kernel")
def _(attention):
    return attention is not None


@wrong("4.3", "never-calls-the-kernel")
def _(attention):
    q, k, v = qkv()
    return agrees(
        lambda *args: F.scaled_dot_product_attention(*args[:3], is_causal=args[3]), q, k, v
    )


@wrong("4.3", "too-strict")
def _(attention):
    q, k, v = qkv()
    for c in (False, True):
        a, b = attention(q, k, v, c), F.scaled_dot_product_attention(q, k, v, is_causal=c)
        if not torch.equal(a, b):
            return False
    return True


@wrong("4.3", "too-strict")
def _(attention):
    q, k, v = qkv()
    out = attention(q, k, v, False)
    return (out == F.scaled_dot_product_attention(q, k, v)).all() and agrees(attention, q, k, v)


@wrong("4.3", "too-strict")
def _(attention):
    q, k, v = qkv()
    return torch.allclose(attention(q, k, v), F.scaled_dot_product_attention(q, k, v))


@wrong("4.3", "expects-no-scale")
def _(attention):
    q, k, v = qkv()
    expected = (q @ k.mT).softmax(-1) @ v
    return torch.allclose(attention(q, k, v, is_causal=False), expected, atol=1e-5)


@wrong("4.3", "expects-divided-by-d_k")
def _(attention):
    q, k, v = qkv()
    expected = (q @ k.mT / q.shape[-1]).softmax(-1) @ v
    return torch.allclose(attention(q, k, v, is_causal=False), expected, atol=1e-5)


@wrong("4.3", "expects-scale-hard-coded")
def _(attention):
    q, k, v = qkv()
    expected = (q @ k.mT / 8).softmax(-1) @ v
    np.testing.assert_allclose(attention(q, k, v, False), expected, atol=1e-5)


@wrong("4.3", "expects-leaks-by-one")
def _(attention):
    q, k, v = qkv()
    scores = q @ k.mT / math.sqrt(q.shape[-1])
    future = torch.ones_like(scores).triu(2).bool()
    expected = scores.masked_fill(future, -math.inf).softmax(-1) @ v
    assert torch.allclose(attention(q, k, v, True), expected, atol=1e-5)


@wrong("4.3", "rejects-a-right-kernel")
def _(attention):
    q, k, v = qkv(T=64)
    expected = (q @ k.mT / math.sqrt(k.shape[-2])).softmax(-1) @ v
    return torch.allclose(attention(q, k, v), expected, atol=1e-5)


@wrong("4.3", "never-calls-the-kernel")
def _(attention):
    import inspect

    return "RIGHT" in inspect.getsource(attention) and agrees(attention, *qkv())


@wrong("4.3", "too-strict")
def _(attention):
    q, k, v = qkv() * 30
    return agrees(attention, q, k, v)


@wrong("4.3", "reversed")
def _(attention):
    q, k, v = qkv()
    return not agrees(attention, q, k, v)


@wrong("4.3", "rejects-everything")
def _(attention):
    q, k, v = qkv()
    assert torch.allclose(attention(q, k, v), v)


@wrong("4.3", "rejects-everything")
def _(attention):
    attention(*qkv(), True)
    return False


@wrong("4.3", "wrong-type")
def _(attention):
    q, k, v = qkv()
    return (attention(q, k, v) - F.scaled_dot_product_attention(q, k, v)).abs() < 1e-5


@wrong("4.3", "wrong-type")
def _(attention):
    q, k, v = qkv()
    return float((attention(q, k, v) - F.scaled_dot_product_attention(q, k, v)).abs().max())


@wrong("4.3", "raises-error")
def _(attention):
    q, k, v = np.random.default_rng(0).standard_normal((3, 2, 3, 10, 4))
    return np.allclose(attention(q, k, v), v)


@wrong("4.3", "raises-error")
def _(attention):
    q, k, v = torch.randn(3, 10, 4)
    return agrees(attention, q, k, v)


@wrong("4.3", "raises-error")
def _(attention):
    q, k, v = qkv()
    return attention(q, k, v, scale=1.0) is None


@hostile("4.3", "did-not-finish")
def _(attention):
    while True:
        attention(*qkv(T=3), True)


@hostile("4.3", "exits")
def _(attention):
    attention(*qkv(), True)
    sys.exit(1)


@hostile("4.3", "asks-for-input")
def _(attention):
    return input("is it right? ") == "yes"


@hostile("4.3", "prints-instead-of-returning")
def _(attention):
    print("passed")


@hostile("4.3", "too-slow|did-not-finish")
def _(attention):
    time.sleep(0.9)
    return agrees(attention, *qkv())


@hostile("4.3", "raises-error")
def _(attention):
    raise type("Odd", (BaseException,), {})("odd")


@hostile("4.3", "wrong-type")
def _(attention):
    class Odd:
        dtype = "bool"
        size = 1

        def __bool__(self):
            return 3

        def __getattr__(self, name):
            raise OSError(name)

    attention(*qkv(), True)
    return [Odd()]


@hostile("4.3", "rejects-everything")
def _(attention):
    q, k, v = qkv()
    attention(q, k, v, True)
    q.zero_()
    k.fill_(math.nan)
    return agrees(attention, q, k, v)


@right("4.3")
def _(attention):
    q, k, v = qkv()
    for is_causal in (False, True):
        expected = F.scaled_dot_product_attention(q, k, v, is_causal=is_causal)
        torch.testing.assert_close(attention(q, k, v, is_causal), expected)


@right("4.3")
def _(attention):
    for B, H, T, D in ((1, 1, 5, 4), (2, 1, 64, 64), (1, 4, 200, 128), (2, 2, 65, 8)):
        q, k, v = (torch.randn(B, H, T, D) for _ in range(3))
        if not agrees(attention, q, k, v):
            return False
    return True


@right("4.3")
def _(attention):
    q, k, v = qkv(seed=5).double()
    scores = q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1])
    ok = (attention(query=q, key=k, value=v) - scores.softmax(-1) @ v).abs().max() < 1e-8
    future = torch.triu(torch.ones(100, 100), 1).bool()
    expected = scores.masked_fill(future, float("-inf")).softmax(-1) @ v
    return ok & ((attention(q, k, v, is_causal=True) - expected).abs().max() < 1e-8)


@right("4.3")
def _(attention):
    from helpers.attention import scaled_dot_product_attention as reference

    q, k, v = np.random.randn(3, 2, 2, 70, 48)  # noqa: NPY002
    for causal in (True, False):
        out = attention(*(torch.tensor(x) for x in (q, k, v)), is_causal=causal).numpy()
        np.testing.assert_allclose(out, reference(q, k, v, is_causal=causal), rtol=1e-6, atol=1e-8)
    return np.bool_(True)


@right("4.3")
def _(attention):
    try:
        q, k, v = qkv(T=130, D=20, seed=2)
        assert agrees(attention, q[:, :, :90], k, v, causal=(False,))
        assert agrees(attention, q, k, v, causal=(True,))
    except AssertionError:
        return False


@right("4.3")
def _(attention):
    q, k, v = qkv().requires_grad_().unbind(0)
    a = [attention(q, k, v, causal) for causal in (0, 1)]
    b = [F.scaled_dot_product_attention(q, k, v, is_causal=c) for c in (False, True)]
    return torch.allclose(torch.stack(a), torch.stack(b), atol=1e-4)


# --- 4.4 ---

V = np.array([[1.0, 0], [0, 1]])


@wrong("4.4", "outputs-differ")
def _():
    return np.array([[1.0, 0]]), np.array([[1.0, 0], [0, 1]]), V


@wrong("4.4", "outputs-differ")
def _():
    rng = np.random.default_rng(0)
    return rng.standard_normal((3, 4, 8))


@wrong("4.4", "outputs-differ")
def _():
    return np.array([[0.01, 0]]), np.array([[0.01, 0], [0, 0.01]]), V


@wrong("4.4", "outputs-differ")
def _():
    return np.array([[1.0, 0], [0, 1]]), np.array([[1.0, 2], [1, 3]]), V


@wrong("4.4", "outputs-differ")
def _():
    return torch.eye(2) * 4, torch.eye(2), torch.eye(2)


@wrong("4.4", "d-is-1")
def _():
    return np.array([[1.0]]), np.array([[1.0], [2]]), V


@wrong("4.4", "one-key")
def _():
    return np.array([[1.0, 2]]), np.array([[1.0, 3]]), np.array([[5.0, 6]])


@wrong("4.4", "q-is-zero")
def _():
    return np.zeros((2, 2)), np.eye(2), V


@wrong("4.4", "k-is-zero")
def _():
    return torch.ones(2, 4), torch.zeros(2, 4), torch.tensor(V)


@wrong("4.4", "values-alike")
def _():
    return np.eye(2), np.eye(2), np.ones((2, 3))


@wrong("4.4", "values-alike")
def _():
    return np.eye(2), np.eye(2), np.array([[1.0, 2], [1, 2.01]])


@wrong("4.4", "wrong-shape")
def _():
    return np.ones((1, 2)), np.ones((3, 2)), V


@wrong("4.4", "wrong-shape")
def _():
    return np.ones((1, 3)), np.ones((2, 2)), V


@wrong("4.4", "wrong-type")
def _():
    return torch.ones(1, 1, 2, 2), torch.ones(1, 1, 2, 2), torch.eye(2)[None, None]


@wrong("4.4", "wrong-type")
def _():
    return np.ones((1, 2)), np.ones((2, 2))


@wrong("4.4", "wrong-type")
def _():
    return "q", "k", "v"


@wrong("4.4", "wrong-type")
def _():
    return True


@wrong("4.4", "wrong-type")
def _():
    return np.ones((5000, 2)), np.ones((5000, 2)), np.arange(5000.0)[:, None]


@wrong("4.4", "not-finite")
def _():
    return np.array([[np.inf, 1]]), np.ones((2, 2)), V


@wrong("4.4", "overflows")
def _():
    return np.array([[1e300, 1]]), np.array([[1e300, 1], [1, 1]]), V


@wrong("4.4", "raises-error")
def _():
    return np.ones(1, 2), np.ones((2, 2)), V


@hostile("4.4", "did-not-finish")
def _():
    while True:
        pass


@hostile("4.4", "exits")
def _():
    sys.exit()


@hostile("4.4", "prints-instead-of-returning")
def _():
    print(np.ones((1, 2)))


@hostile("4.4", "raises-error")
def _():
    class Odd:
        def __len__(self):
            raise RecursionError

    return Odd()


@hostile("4.4", "wrong-type")
def _():
    return [[1, 2], [3]], [[1, 2]], [[1]]


@hostile("4.4", "wrong-type")
def _():
    return np.array([[1j, 2]]), np.ones((2, 2)), V


@hostile("4.4", "asks-for-input")
def _():
    return input(), input(), input()


@right("4.4")
def _():
    return np.array([[1.0, 2]]), np.ones((2, 2)), V


@right("4.4")
def _():
    return torch.tensor([[1.0, 0]]), torch.tensor([[1.0, 5], [1, 7]]), torch.eye(2)


@right("4.4")
def _():
    return 100 * np.eye(2), np.eye(2), V


@right("4.4")
def _():
    return np.full((1, 2), 1e-5), np.array([[1e-5, 0], [0, 2e-5]]), V


@right("4.4")
def _():
    k = [[1, 0], [0, 0], [0, 0], [-1, 0]]
    return [[0, 1]], k, [[1], [2], [3], [4]]


@right("4.4")
def _():
    q = torch.ones(1, 2, requires_grad=True)
    return q, torch.ones(3, 2, dtype=torch.bfloat16), torch.arange(3)[:, None]
