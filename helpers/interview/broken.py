"""Attention functions as they come into a code review, most of them broken.

`helpers.interview.debug` shows them without their names and asks what is wrong. So nothing in a
body gives the answer away, and no comment does. `softmax` is right: it is that of
`helpers.attention`.
"""

import numpy as np

from helpers.attention import softmax


def scores_left_large(q, k, v):
    scores = q @ k.mT
    scores = scores - scores.max(axis=-1, keepdims=True)
    weights = np.exp(scores)
    weights = weights / weights.sum(axis=-1, keepdims=True)
    return weights @ v


def width_of_all_heads(q, k, v):
    H, D = q.shape[-2:]
    scale = (H * D) ** -0.5
    scores = np.einsum("bqhd,bkhd->bhqk", q, k) * scale
    weights = softmax(scores, axis=-1)
    return np.einsum("bhqk,bkhd->bqhd", weights, v)


def scaled_here_and_there(q, k, v):
    D = q.shape[-1]
    q = q / np.sqrt(D)
    k = np.swapaxes(k, -1, -2)
    scores = np.matmul(q, k) / np.sqrt(D)
    weights = softmax(scores, axis=-1)
    return np.matmul(weights, v)


def keys_first(q, k, v):
    scale = q.shape[-1] ** -0.5
    scores = np.einsum("bhkd,bhqd->bhkq", k, q) * scale
    weights = softmax(scores, axis=-1)
    return np.einsum("bhkq,bhkd->bhqd", weights, v)


def heads_last(q, k, v):
    scale = q.shape[-1] ** -0.5
    scores = np.einsum("bqhd,bkhd->bqkh", q, k) * scale
    weights = softmax(scores, axis=-1)
    return np.einsum("bqkh,bkhd->bqhd", weights, v)


def filled_where_true(q, k, v, mask=None):
    scores = q @ k.mT / np.sqrt(q.shape[-1])
    if mask is not None:
        scores = np.where(mask, -np.inf, scores)
    return softmax(scores, axis=-1) @ v


def masked_at_the_end(q, k, v, mask=None):
    scores = q @ k.mT / np.sqrt(q.shape[-1])
    weights = softmax(scores, axis=-1)
    if mask is not None:
        weights = np.where(mask, weights, 0)
    return weights @ v


def triangle_kept(q, k, v):
    scores = q @ k.mT / np.sqrt(q.shape[-1])
    scores = np.tril(scores)
    weights = softmax(scores, axis=-1)
    return weights @ v


def diagonal_of_two(q, k, v):
    T_q, T_k = q.shape[-2], k.shape[-2]
    scores = q @ k.mT / np.sqrt(q.shape[-1])
    future = np.triu(np.ones((T_q, T_k), dtype=bool), k=2)
    scores = np.where(future, -np.inf, scores)
    return softmax(scores, axis=-1) @ v


def counted_from_the_first(q, k, v):
    T_q, T_k = q.shape[-2], k.shape[-2]
    rows, columns = np.arange(T_q)[:, None], np.arange(T_k)[None, :]
    scores = q @ k.mT / np.sqrt(q.shape[-1])
    scores = np.where(columns <= rows, scores, -np.inf)
    return softmax(scores, axis=-1) @ v


def straight_exponentials(q, k, v):
    scores = q @ k.mT / q.shape[-1] ** 0.5
    weights = np.exp(scores)
    weights = weights / weights.sum(axis=-1, keepdims=True)
    return weights @ v


def one_maximum(q, k, v):
    scores = q @ k.mT / np.sqrt(q.shape[-1])
    weights = np.exp(scores - scores.max())
    total = weights.sum(axis=-1, keepdims=True)
    return weights @ v / total


def nothing_to_choose_from(q, k, v, mask=None):
    scores = q @ k.mT / np.sqrt(q.shape[-1])
    if mask is not None:
        scores = np.where(mask, scores, -np.inf)
    largest = scores.max(axis=-1, keepdims=True)
    weights = np.exp(scores - largest)
    total = weights.sum(axis=-1, keepdims=True)
    return weights / total @ v


def reshaped_to_heads(q, k, v):
    def heads_first(x):
        B, T, H, D = x.shape
        return x.reshape(B, H, T, D)

    q, k, v = heads_first(q), heads_first(k), heads_first(v)
    weights = softmax(q @ k.mT / np.sqrt(q.shape[-1]), axis=-1)
    return (weights @ v).transpose(0, 2, 1, 3)


def tiled_heads(q, k, v, enable_gqa=False):
    if enable_gqa:
        group = q.shape[1] // k.shape[1]
        k = np.tile(k, (1, group, 1, 1))
        v = np.tile(v, (1, group, 1, 1))
    scores = q @ k.mT / np.sqrt(q.shape[-1])
    return softmax(scores, axis=-1) @ v


def output_left_behind(q, k, v, block=64):
    q = q / np.sqrt(q.shape[-1])
    m, total, acc = -np.inf, 0.0, 0.0
    for start in range(0, k.shape[-2], block):
        s = q @ k[..., start : start + block, :].mT
        m_new = np.maximum(m, s.max(axis=-1, keepdims=True))
        p = np.exp(s - m_new)
        total = total * np.exp(m - m_new) + p.sum(axis=-1, keepdims=True)
        acc = acc + p @ v[..., start : start + block, :]
        m = m_new
    return acc / total


def sum_left_behind(q, k, v, block=32):
    q = q / np.sqrt(q.shape[-1])
    m, total, acc = -np.inf, 0.0, 0.0
    for start in range(0, k.shape[-2], block):
        s = q @ k[..., start : start + block, :].mT
        m_new = np.maximum(m, s.max(axis=-1, keepdims=True))
        p = np.exp(s - m_new)
        acc = acc * np.exp(m - m_new) + p @ v[..., start : start + block, :]
        total += p.sum(axis=-1, keepdims=True)
        m = m_new
    return acc / total


def filled_up(q, k, v, block=64):
    q = q / np.sqrt(q.shape[-1])
    T_k = k.shape[-2]
    k, v = (np.pad(x, ((0, 0), (0, 0), (0, -T_k % block), (0, 0))) for x in (k, v))
    m, total, acc = -np.inf, 0.0, 0.0
    for start in range(0, T_k, block):
        s = q @ k[..., start : start + block, :].mT
        m_new = np.maximum(m, s.max(axis=-1, keepdims=True))
        p = np.exp(s - m_new)
        total = total * np.exp(m - m_new) + p.sum(axis=-1, keepdims=True)
        acc = acc * np.exp(m - m_new) + p @ v[..., start : start + block, :]
        m = m_new
    return acc / total


def whole_blocks(q, k, v, block=16):
    out = np.zeros((*q.shape[:-1], v.shape[-1]), dtype=v.dtype)
    for block_number in range(q.shape[-2] // block):
        rows = slice(block_number * block, (block_number + 1) * block)
        scores = q[..., rows, :] @ k.mT / np.sqrt(q.shape[-1])
        out[..., rows, :] = softmax(scores, axis=-1) @ v
    return out


def parts_alike(q, k, v, part=64):
    parts = []
    for start in range(0, k.shape[-2], part):
        keys, values = k[..., start : start + part, :], v[..., start : start + part, :]
        scores = q @ keys.mT / np.sqrt(q.shape[-1])
        parts.append(softmax(scores, axis=-1) @ values)
    return np.mean(parts, axis=0)


def half_a_sum(q, k, v):
    weights = softmax(q @ k.mT / q.shape[-1] ** 0.5, axis=-1)
    out = np.zeros((*q.shape[:-1], v.shape[-1]), dtype=np.float16)
    for j in range(k.shape[-2]):
        out += (weights[..., j, None] * v[..., j, None, :]).astype(np.float16)
    return out.astype(v.dtype)


def in_place(q, k, v):
    q *= q.shape[-1] ** -0.5
    scores = q @ k.mT
    scores -= scores.max(axis=-1, keepdims=True)
    weights = np.exp(scores)
    weights /= weights.sum(axis=-1, keepdims=True)
    return weights @ v


def powers_of_two(q, k, v):
    scores = q @ k.mT / np.sqrt(q.shape[-1])
    scores = scores - scores.max(axis=-1, keepdims=True)
    weights = np.exp2(scores)
    return weights @ v / weights.sum(axis=-1, keepdims=True)


def bias_inside(q, k, v, attn_bias=None):
    scores = q @ k.mT
    if attn_bias is not None:
        scores = scores + attn_bias
    weights = softmax(scores / np.sqrt(q.shape[-1]), axis=-1)
    return weights @ v


def for_mup(q, k, v):
    D = q.shape[-1]
    scores = q @ k.mT / D
    weights = np.exp(scores - scores.max(axis=-1, keepdims=True))
    return weights @ v / weights.sum(axis=-1, keepdims=True)


def with_exp2(q, k, v, block=32):
    q = q * (np.log2(np.e) / np.sqrt(q.shape[-1]))
    m, total, acc = -np.inf, 0.0, 0.0
    for start in reversed(range(0, k.shape[-2], block)):
        s = q @ k[..., start : start + block, :].mT
        m_new = np.maximum(m, s.max(axis=-1, keepdims=True))
        p, shrink = np.exp2(s - m_new), np.exp2(m - m_new)
        total = total * shrink + p.sum(axis=-1, keepdims=True)
        acc = acc * shrink + p @ v[..., start : start + block, :]
        m = m_new
    return acc / total


def counted_from_the_last(q, k, v):
    T_q, T_k = q.shape[-2], k.shape[-2]
    scores = q @ k.mT / np.sqrt(q.shape[-1])
    if T_q > 1:
        seen = np.tri(T_q, T_k, T_k - T_q, dtype=bool)
        scores = np.where(seen, scores, -np.inf)
    return softmax(scores, axis=-1) @ v
