"""Sound functions: torch's, the helpers', half precision, and unusual ways to write it rightly."""

import functools
import math

import numpy as np
import torch
import torch.nn.functional as F
from torch.nn.attention import SDPBackend, sdpa_kernel

from doctor_cases.patients import additive, safe, scores, soft, ward
from helpers.attention import attention_backward, attention_steps, scaled_dot_product_attention

SOUND, sound = ward()

# --- The ones that others rely on ---

sound()(F.scaled_dot_product_attention)
sound(dtype="float64")(F.scaled_dot_product_attention)
sound(dtype="bfloat16")(F.scaled_dot_product_attention)
sound(dtype="float16")(F.scaled_dot_product_attention)
sound(every_seed=True)(scaled_dot_product_attention)
sound(dtype="float64")(scaled_dot_product_attention)
sound(dtype="float16")(scaled_dot_product_attention)
sound(layout="TD")(scaled_dot_product_attention)
sound(layout="HTD")(scaled_dot_product_attention)
sound(layout="BTD", framework="numpy")(scaled_dot_product_attention)
sound()(attention_steps)
sound()(functools.partial(scaled_dot_product_attention, is_causal=False))
sound(causal=True)(functools.partial(F.scaled_dot_product_attention, is_causal=True))


@sound()
def _(query, key, value, attn_mask=None, is_causal=False, scale=None, enable_gqa=False):
    with sdpa_kernel(SDPBackend.MATH):
        return F.scaled_dot_product_attention(
            query, key, value, attn_mask, 0.0, is_causal, scale=scale, enable_gqa=enable_gqa
        )


@sound()
def _(q, k, v, scale=None):
    steps = attention_steps(q, k, v, scale)
    return steps.output, steps.weights


@sound()
def _(q, k, v):
    weights = soft(scores(q, k))
    return weights, weights @ v


# --- Other conventions ---


@sound(scale=1)
def _(q, k, v):
    return soft(q @ k.mT) @ v


@sound(scale="1/d_k")
def _(q, k, v):
    return soft(q @ k.mT / q.shape[-1]) @ v


@sound(scale=lambda d: d**-0.7)
def _(q, k, v):
    return soft(q @ k.mT * q.shape[-1] ** -0.7) @ v


@sound(scale=-0.3)
def _(q, k, v):
    return soft(q @ k.mT * -0.3) @ v


@sound(layout="BTHD")
def _(q, k, v):
    out = F.scaled_dot_product_attention(*(x.transpose(1, 2) for x in (q, k, v)))
    return out.transpose(1, 2)


@sound(layout="THD", causal=True)
def _(q, k, v):
    s = np.einsum("ihd,jhd->hij", q, k) / np.sqrt(q.shape[-1])
    s = np.where(np.tri(*s.shape[-2:], dtype=bool), s, -np.inf)
    return np.einsum("hij,jhd->ihd", soft(s), v)


@sound(causal_alignment="lower_right")
def _(q, k, v, is_causal=False):
    s = scores(q, k)
    if is_causal:
        s = np.where(np.tri(*s.shape[-2:], s.shape[-1] - s.shape[-2], dtype=bool), s, -np.inf)
    return safe(s) @ v


@sound(causal=True, causal_alignment="lower_right", empty_rows="any")
def _(q, k, v):
    s = scores(q, k)
    return soft(np.where(np.tri(*s.shape[-2:], s.shape[-1] - s.shape[-2]) == 1, s, -1e9)) @ v


@sound(mask_true_means="masked")
def _(q, k, v, attn_mask=None):
    s = scores(q, k)
    if attn_mask is not None and attn_mask.dtype == bool:
        s = np.where(attn_mask, -np.inf, s)
    elif attn_mask is not None:
        s = s + attn_mask
    return safe(s) @ v


@sound(d_k=64, d_v=64)
def _(q, k, v):
    return F.scaled_dot_product_attention(q.view(*q.shape[:3], 64), k, v.reshape(*v.shape[:3], 64))


@sound(empty_rows="any")
def _(query, key, value, mask=None, dropout=None):
    s = torch.matmul(query, key.transpose(-2, -1)) / math.sqrt(query.size(-1))
    if mask is not None:
        s = s.masked_fill(mask == 0, -1e9)
    p = s.softmax(dim=-1)
    return torch.matmul(p, value), p


@sound(framework="torch", gradients=False)
def _(q, k, v):
    with torch.no_grad():
        return F.scaled_dot_product_attention(q, k, v)


@sound()  # a mask that is added
def _(q, k, v, mask=0):
    return safe(scores(q, k) + mask) @ v


@sound(empty_rows="any")  # a mask of ones and zeros
def _(q, k, v, attention_mask=None):
    s = torch.einsum("bhid,bhjd->bhij", q, k) / math.sqrt(q.size(-1))
    if attention_mask is not None:
        s = s + (1 - attention_mask) * torch.finfo(s.dtype).min
    return s.softmax(dim=-1) @ v


@sound(mask_true_means="masked", empty_rows="any")  # a mask of ones where there is padding
def _(q, k, v, mask=None):
    s = scores(q, k)
    return soft(s if mask is None else s + mask * -1e9) @ v


@sound()  # Keras has the value before the key
def _(query, value, key):
    return soft(scores(query, key)) @ value


@sound()
def _(*, key, query, value):
    return soft(scores(query, key)) @ value


@sound()
def _(q, k, v, attn_mask, is_causal, scale):
    return scaled_dot_product_attention(q, k, v, attn_mask, is_causal, scale)


# --- Half precision ---


@sound()
def _(q, k, v):
    return F.scaled_dot_product_attention(q.bfloat16(), k.bfloat16(), v.bfloat16())


@sound()
def _(q, k, v):
    return F.scaled_dot_product_attention(q.half(), k.half(), v.half())


@sound()
def _(q, k, v):
    if q.dtype == torch.float32:
        raise TypeError("only fp16 and bf16")
    return F.scaled_dot_product_attention(q, k, v)


@sound(dtype="bfloat16")
def _(q, k, v):
    weights = torch.softmax(q @ k.mT / math.sqrt(q.size(-1)), dim=-1)
    return weights @ v


@sound(dtype="float16")
def _(q, k, v):
    weights = torch.softmax((q / math.sqrt(q.size(-1))) @ k.mT, dim=-1)
    return weights @ v


@sound(dtype="bfloat16")
def _(q, k, v):
    s = (q * q.size(-1) ** -0.25) @ (k * k.size(-1) ** -0.25).mT
    return torch.softmax(s, dim=-1, dtype=torch.float32).to(v.dtype) @ v


@sound(dtype="float16")
def _(q, k, v):
    s = scores(q, k)
    e = np.exp(s - s.max(-1, keepdims=True))
    return (e / e.sum(-1, keepdims=True)).astype(np.float16) @ v


@sound(every_seed=True, dtype="bfloat16")
def _(q, k, v):  # as a fused kernel: float32 inside, weights rounded before they meet v
    scale = q.size(-1) ** -0.5 * 1.4426950408889634
    m = torch.full((*q.shape[:-1], 1), -torch.inf)
    total, acc = torch.zeros_like(m), torch.zeros(*q.shape[:-1], v.size(-1))
    for start in range(0, k.size(-2), 64):
        s = (q.float() @ k[..., start : start + 64, :].float().mT) * scale
        new = torch.maximum(m, s.amax(-1, keepdim=True))
        p, alpha = torch.exp2(s - new), torch.exp2(m - new)
        acc = acc * alpha + (p.to(v.dtype).float() @ v[..., start : start + 64, :].float())
        total, m = total * alpha + p.sum(-1, keepdim=True), new
    return (acc / total).to(q.dtype)


# --- Unusual ways to write it ---


@sound(layout="TD")
def _(q, k, v):
    out = []
    for query in q.tolist():
        s = [sum(a * b for a, b in zip(query, key)) / math.sqrt(len(query)) for key in k.tolist()]
        e = (
            [math.exp(x - max(s)) for x in s]
            if len(s) < 200
            else list(np.exp(np.array(s) - max(s)))
        )
        out.append([sum(w * x for w, x in zip(e, column)) / sum(e) for column in v.T.tolist()])
    return out


@sound()
def _(q, k, v):
    out = np.empty((*q.shape[:-1], v.shape[-1]), dtype=q.dtype)
    for b, h, i in np.ndindex(q.shape[:-1]):
        out[b, h, i] = soft(k[b, h] @ q[b, h, i] / math.sqrt(q.shape[-1])) @ v[b, h]
    return out


@sound(every_seed=True)
def _(q, k, v):
    s = np.einsum("...id,...jd->...ij", q, k, optimize=True) / q.shape[-1] ** 0.5
    return np.einsum("...ij,...jd->...id", soft(s), v)


@sound(every_seed=True)
def _(q, k, v):
    s = scores(q, k)
    return np.exp(s - np.logaddexp.reduce(s, axis=-1, keepdims=True)) @ v


@sound(every_seed=True)
def _(q, k, v):
    return soft((q / np.sqrt(q.shape[-1])) @ k.mT) @ v


@sound(every_seed=True)
def _(q, k, v):
    root = q.shape[-1] ** 0.25
    return soft((q / root) @ (k / root).mT) @ v


@sound(every_seed=True)
def _(q, k, v):
    s = scores(q, k) * np.log2(np.e)
    e = np.exp2(s - s.max(-1, keepdims=True))
    return e @ v / e.sum(-1, keepdims=True)


@sound(every_seed=True)
def _(q, k, v):
    s = (k @ q.mT) / np.sqrt(q.shape[-1])
    return soft(s, axis=-2).mT @ v


@sound()
def _(q, k, v):  # any shift will do that keeps exp from overflowing
    s = scores(q, k)
    e = np.exp(s - s.max(-1, keepdims=True) + 3)
    return e / e.sum(-1, keepdims=True) @ v


@sound()
def _(q, k, v):  # largest |score| known beforehand from the lengths
    bound = np.linalg.norm(q, axis=-1, keepdims=True) * np.linalg.norm(k, axis=-1)[..., None, :]
    s = scores(q, k)
    top = np.minimum(s.max(-1, keepdims=True), bound.max(-1, keepdims=True))
    e = np.exp(s - top)
    return e / e.sum(-1, keepdims=True) @ v


@sound(every_seed=True)
def _(q, k, v, attn_mask=None, is_causal=False, scale=None, enable_gqa=False):  # tiles
    if enable_gqa:
        k, v = (np.repeat(x, q.shape[-3] // x.shape[-3], axis=-3) for x in (k, v))
    causal = np.tri(q.shape[-2], k.shape[-2], dtype=bool) if is_causal else None
    shape = np.broadcast_shapes(q.shape[:-2], k.shape[:-2])
    mask = additive(attn_mask) + additive(causal)
    mask = np.broadcast_to(mask, (*shape, q.shape[-2], k.shape[-2]))
    scale = q.shape[-1] ** -0.5 if scale is None else scale
    out = np.zeros((*q.shape[:-1], v.shape[-1]), dtype=q.dtype)
    for i in range(0, q.shape[-2], 32):
        rows = slice(i, i + 32)
        m = np.full((*q[..., rows, :].shape[:-1], 1), -np.inf)
        total, acc = np.zeros_like(m), np.zeros(out[..., rows, :].shape)
        for j in range(0, k.shape[-2], 48):
            keys = slice(j, j + 48)
            s = q[..., rows, :] @ k[..., keys, :].mT * scale + mask[..., rows, keys]
            new = np.maximum(m, s.max(-1, keepdims=True))
            safe_new = np.where(new == -np.inf, 0, new)
            p, alpha = np.exp(s - safe_new), np.exp(m - safe_new)
            acc, total, m = (
                acc * alpha + p @ v[..., keys, :],
                total * alpha + p.sum(-1, keepdims=True),
                new,
            )
        out[..., rows, :] = acc / np.where(total == 0, 1, total)
    return out


@sound()
def _(q, k, v):  # from the last key to the first, a key at a time
    m = np.full((*q.shape[:-1], 1), -np.inf)
    total, acc = np.zeros_like(m), np.zeros((*q.shape[:-1], v.shape[-1]))
    for j in reversed(range(k.shape[-2])):
        s = scores(q, k[..., j : j + 1, :])
        new = np.maximum(m, s)
        acc = acc * np.exp(m - new) + np.exp(s - new) * v[..., j : j + 1, :]
        total, m = total * np.exp(m - new) + np.exp(s - new), new
    return acc / total


@sound()
def _(q, k, v):  # two halves, merged by their log-sum-exps
    half = max(1, k.shape[-2] // 2)
    parts = [(k[..., :half, :], v[..., :half, :]), (k[..., half:, :], v[..., half:, :])]
    parts = [part for part in parts if part[0].shape[-2]]
    outs = [soft(scores(q, keys)) @ values for keys, values in parts]
    lses = np.stack([np.logaddexp.reduce(scores(q, keys), axis=-1) for keys, _ in parts])
    shares = soft(lses, axis=0)
    return sum(share[..., None] * out for share, out in zip(shares, outs))


@sound()
def _(q, k, v):
    order = np.random.default_rng(0).permutation(k.shape[-2])
    return soft(scores(q, k[..., order, :])) @ v[..., order, :]


@sound()
def _(q, k, v, attn_mask=None):  # the mask multiplies exponentials, which are then normalised
    if attn_mask is not None and attn_mask.dtype != bool:
        raise TypeError("boolean masks only")
    s = scores(q, k)
    if attn_mask is not None:
        s = np.where(attn_mask, s, -np.inf)
    return safe(s) @ v


@sound()
def _(q, k, v):
    weights = torch.softmax(q.double() @ k.double().mT / q.size(-1) ** 0.5, dim=-1)
    return (weights @ v.double()).to(q.dtype)


@sound()
def _(q, k, v):
    s = torch.baddbmm(
        torch.zeros(1), q.flatten(0, 1), k.flatten(0, 1).mT, beta=0, alpha=q.size(-1) ** -0.5
    )
    weights = s - s.logsumexp(-1, keepdim=True)
    return (weights.exp() @ v.flatten(0, 1)).unflatten(0, q.shape[:2])


@sound()
def _(q, k, v, is_causal=False):
    if is_causal and q.size(-2) != k.size(-2):
        raise ValueError("ambiguous")
    s = torch.einsum("bhid,bhjd->bhij", q, k) / math.sqrt(q.size(-1))
    if is_causal:
        s = s + torch.full(s.shape[-2:], -torch.inf).triu(1)
    return torch.einsum("bhij,bhjd->bhid", s.softmax(-1), v)


# --- Arguments together, and what may be refused ---


@sound()
def _(q, k, v, attn_mask=None, is_causal=False, scale=None, enable_gqa=False):
    if enable_gqa:
        k, v = (x.repeat_interleave(q.size(1) // x.size(1), dim=1) for x in (k, v))
    s = q @ k.mT * (q.size(-1) ** -0.5 if scale is None else scale)
    seen = torch.ones(s.shape[-2:], dtype=torch.bool)
    if is_causal:
        seen = seen.tril()
    if attn_mask is not None and attn_mask.dtype == torch.bool:
        seen = seen & attn_mask
    elif attn_mask is not None:
        s = s + attn_mask
    s = s.masked_fill(~seen, -torch.inf)
    empty = (s == -torch.inf).all(-1, keepdim=True)
    weights = torch.softmax(s.masked_fill(empty, 0), dim=-1)
    return weights.masked_fill(empty, 0) @ v


@sound()  # groups of heads in an axis of their own, causality and masks apart from each other
def _(q, k, v, attn_mask=None, causal=False, sm_scale=None, enable_gqa=False):
    if enable_gqa and causal:
        raise ValueError("grouped heads are not causal here")
    if causal and attn_mask is not None:
        raise ValueError("causal or a mask")
    B, H, T, d = q.shape
    q = q.reshape(B, k.shape[1], H // k.shape[1], T, d)
    s = np.einsum("bgnid,bgjd->bgnij", q, k) * (d**-0.5 if sm_scale is None else sm_scale)
    s = s.reshape(B, H, T, -1) + additive(attn_mask)
    if causal:
        s = np.where(np.tri(*s.shape[-2:], dtype=bool), s, -np.inf)
    weights = safe(s).reshape(B, k.shape[1], H // k.shape[1], T, -1)
    return np.einsum("bgnij,bgje->bgnie", weights, v).reshape(B, H, T, -1)


@sound()  # a float mask that must not require a gradient
def _(q, k, v, attn_mask=None):
    if attn_mask is not None and attn_mask.requires_grad:
        raise NotImplementedError("the bias is not trained")
    return F.scaled_dot_product_attention(q, k, v, attn_mask)


@sound(causal_alignment="lower_right")  # a single query sees all, as it should here
def _(q, k, v, is_causal=False):
    s = q @ k.mT / math.sqrt(q.size(-1))
    if is_causal and q.size(-2) > 1:
        s = s.masked_fill(~torch.ones(s.shape[-2:]).tril(k.size(-2) - q.size(-2)).bool(), -1e30)
        s = s.masked_fill((s == -1e30).all(-1, keepdim=True), -torch.inf)
    return torch.nan_to_num(torch.softmax(s, dim=-1)) @ v


class Attention(torch.nn.Module):
    """A module in training mode whose dropout is 0."""

    def forward(self, query, key, value, attn_mask=None):
        return F.scaled_dot_product_attention(
            query, key, value, attn_mask, dropout_p=0.0 if self.training else 0.5
        )


sound()(Attention())


class Analytic(torch.autograd.Function):
    """Forward and backward from the helpers, in NumPy."""

    @staticmethod
    def forward(ctx, q, k, v):
        ctx.save_for_backward(q, k, v)
        arrays = (x.detach().double().numpy() for x in (q, k, v))
        return torch.from_numpy(attention_steps(*arrays).output).to(q.dtype)

    @staticmethod
    def backward(ctx, grad):
        arrays = (x.detach().double().numpy() for x in (*ctx.saved_tensors, grad))
        return tuple(torch.from_numpy(g).to(grad.dtype) for g in attention_backward(*arrays))


@sound(framework="torch")
def _(q, k, v):
    return Analytic.apply(q, k, v)


@sound()
def _(q, k, v):
    q, k, v = map(torch.as_tensor, (q, k, v))
    return torch.softmax(q @ k.mT / math.sqrt(q.size(-1)), dim=-1) @ v


@sound(framework="torch", gradients=False)
def _(q, k, v):
    return scaled_dot_product_attention(q, k, v)
