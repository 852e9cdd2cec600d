"""Sick torch functions: gradients, half precision, state of modules."""

import math

import torch
import torch.nn.functional as F

from doctor_cases.patients import ward

DISEASED, sick = ward()


def weights_of(q, k, mask=None):
    s = q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1])
    return torch.softmax(s if mask is None else s.masked_fill(~mask, -torch.inf), dim=-1)


@sick("no-scale")
def _(q, k, v):
    return F.scaled_dot_product_attention(q, k, v, scale=1.0)


@sick("divided-by-d_k|scale-twice")
def _(q, k, v):
    return F.scaled_dot_product_attention(q / math.sqrt(q.size(-1)), k, v)


@sick("softmax-over-heads")
def _(q, k, v):
    return torch.softmax(q @ k.transpose(-2, -1) / math.sqrt(q.size(-1)), dim=1) @ v


@sick("mask-inverted")
def _(q, k, v, attn_mask=None):
    if attn_mask is not None and attn_mask.dtype == torch.bool:
        attn_mask = ~attn_mask
    return F.scaled_dot_product_attention(q, k, v, attn_mask)


@sick("changes-its-input")
def _(q, k, v, attn_mask=None):
    out = F.scaled_dot_product_attention(q, k, v, attn_mask)
    if attn_mask is not None:
        attn_mask.zero_()
    return out


@sick("dropout-active")
def _(q, k, v, dropout_p=0.25):
    return F.scaled_dot_product_attention(q, k, v, dropout_p=dropout_p)


class InTraining(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.dropout = torch.nn.Dropout(0.3)

    def forward(self, q, k, v):
        return self.dropout(weights_of(q, k)) @ v


sick("dropout-active")(InTraining())


@sick("needs-contiguous")
def _(q, k, v):
    B, H, T, d = q.shape
    out = weights_of(q.view(B * H, T, d), k.view(B * H, -1, d)) @ v.reshape(B * H, -1, v.size(-1))
    return out.view(B, H, T, -1)


@sick("low-precision")
def _(q, k, v):
    return F.scaled_dot_product_attention(q.bfloat16(), k.bfloat16(), v.bfloat16()).float()


@sick("low-precision-accumulation")
def _(q, k, v):
    weights = weights_of(q, k)
    out = torch.zeros(*q.shape[:-1], v.size(-1), dtype=q.dtype)
    for j in range(k.size(-2)):
        out += weights[..., j, None] * v[..., j, None, :]
    return out


@sick("low-precision-accumulation", dtype="bfloat16")
def _(q, k, v):
    e = torch.exp(q @ k.mT / math.sqrt(q.size(-1)))
    total = torch.zeros(*q.shape[:-1], 1, dtype=q.dtype)
    for j in range(k.size(-2)):
        total += e[..., j, None]
    return e @ v / total


@sick("not-finite-in-half-precision")
def _(q, k, v):
    s = (q * 1000) @ (k * 1000).mT / 1e6 / math.sqrt(q.size(-1))
    return torch.softmax(s, dim=-1) @ v


@sick("gradient-missing")
def _(q, k, v):
    with torch.no_grad():
        return weights_of(q, k) @ v


@sick("gradient-missing")
def _(q, k, v):
    return F.scaled_dot_product_attention(q.detach(), k.detach(), v.detach())


@sick("gradient-stops")
def _(q, k, v):
    return weights_of(q, k).detach() @ v


@sick("gradient-stops")
def _(q, k, v):
    return weights_of(q, k.detach()) @ v


@sick("gradient-overflows")
def _(q, k, v):
    s = q @ k.mT / math.sqrt(q.size(-1))
    m = s.max(dim=-1, keepdim=True).values
    e = torch.where(m.abs() < 50, torch.exp(s), torch.exp(s - m))
    return e / e.sum(-1, keepdim=True) @ v


@sick("gradient-nan-on-fully-masked-row")
def _(q, k, v, mask=None):
    s = q @ k.mT / math.sqrt(q.size(-1))
    if mask is not None:
        s = s + torch.where(mask, 0.0, -torch.inf)
    return torch.nan_to_num(torch.softmax(s, dim=-1)) @ v


def with_backward(backward, masks=False):
    """The right output with a backward pass of its own: backward(q, k, v, weights, dO, mask)."""

    class Function(torch.autograd.Function):
        @staticmethod
        def forward(ctx, q, k, v, mask):
            weights = weights_of(q, k, mask)
            ctx.save_for_backward(q, k, v, weights)
            ctx.mask = mask
            return weights @ v

        @staticmethod
        def backward(ctx, d_out):
            return (*backward(*ctx.saved_tensors, d_out), None)

    if masks:
        return lambda q, k, v, is_causal=False: Function.apply(
            q,
            k,
            v,
            torch.ones(q.size(-2), k.size(-2), dtype=torch.bool).tril() if is_causal else None,
        )
    return lambda q, k, v: Function.apply(q, k, v, None)


def right(q, k, v, weights, d_out, *, row=True, scale=None):
    scale = q.size(-1) ** -0.5 if scale is None else scale
    d_weights = d_out @ v.mT
    shift = (weights * d_weights).sum(-1, keepdim=True) if row else 0
    d_scores = weights * (d_weights - shift)
    return scale * d_scores @ k, scale * d_scores.mT @ q, weights.mT @ d_out


def without_scale(*saved):
    return right(*saved, scale=1.0)


def scaled_twice(q, *saved):
    return right(q, *saved, scale=1 / q.size(-1))


def without_row_sum(*saved):
    return right(*saved, row=False)


def not_transposed(q, k, v, weights, d_out):
    dq, dk, dv = right(q, k, v, weights, d_out)
    if q.size(-2) != k.size(-2):
        return dq, torch.zeros_like(dk), dv
    d_weights = d_out @ v.mT
    d_scores = weights * (d_weights - (weights * d_weights).sum(-1, keepdim=True))
    return dq, q.size(-1) ** -0.5 * d_scores @ q, dv


def unmasked(q, k, v, weights, d_out):
    return right(q, k, v, weights_of(q, k), d_out)


def contiguous_only(q, k, v, weights, d_out):
    raw = torch.as_strided(d_out, d_out.shape, torch.empty(d_out.shape).stride()) if (
        d_out.untyped_storage().nbytes() >= d_out.numel() * d_out.element_size()
    ) else torch.zeros(d_out.shape)  # fmt: skip
    return right(q, k, v, weights, raw)


def raising(q, k, v, weights, d_out):
    raise RuntimeError("not implemented")


def halved(*saved):
    return [g * 0.5 for g in right(*saved)]


sick("gradient-without-scale")(with_backward(without_scale))
sick("gradient-scaled-twice")(with_backward(scaled_twice))
sick("gradient-without-row-sum")(with_backward(without_row_sum))
sick("gradient-not-transposed")(with_backward(not_transposed))
sick("gradient-ignores-the-mask")(with_backward(unmasked, masks=True))
sick("gradient-assumes-contiguous")(with_backward(contiguous_only))
sick("gradient-raises")(with_backward(raising))
sick("gradient-wrong")(with_backward(halved))


class Averages(torch.autograd.Function):
    """Repeats heads; its gradient is their mean."""

    @staticmethod
    def forward(ctx, x, group):
        ctx.group = group
        return x.repeat_interleave(group, dim=1)

    @staticmethod
    def backward(ctx, grad):
        B, H, T, d = grad.shape
        return grad.reshape(B, H // ctx.group, ctx.group, T, d).mean(dim=2), None


@sick("gradient-of-groups-not-summed")
def _(q, k, v, enable_gqa=False):
    group = q.size(1) // k.size(1)
    return weights_of(q, Averages.apply(k, group)) @ Averages.apply(v, group)
