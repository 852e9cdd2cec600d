# ruff: noqa: RUF009  (column() only declares a field)
"""Watches the attention of any torch model: how sharp each head is, how far its scores spread.

    with AttentionMonitor() as monitor:
        model(x)
    print(monitor)

How it sees. A `torch.overrides.TorchFunctionMode` gets every call of a torch function that the
thread makes, whatever name the caller bound it to, and with it `scaled_dot_product_attention` and
`multi_head_attention_forward`. While `nn.MultiheadAttention`, `nn.TransformerEncoderLayer` and
`nn.TransformerEncoder` run, the mode steps aside, because it would keep them from their fast path;
their inputs come from a global module hook. Nothing is patched. Each call is made first, with the
arguments it was given; then the scores are computed once more from the same arguments, in blocks,
and only statistics are kept.
"""

from __future__ import annotations

import inspect
import math
import threading
import weakref
from collections import Counter
from contextlib import ExitStack
from dataclasses import dataclass, field

import numpy as np
import torch
import torch.nn.functional as F
from torch.nn.attention.bias import CausalBias, CausalVariant
from torch.nn.modules.module import (
    register_module_forward_hook,
    register_module_forward_pre_hook,
)
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import _disable_current_modes

from helpers._table import Table, column

__all__ = ["AttentionMonitor", "AttentionRow", "AttentionTable"]

SCORES_AT_ONCE = 2**18  # numbers in one block of scores on a CPU: 1 MiB, what a cache holds
SCORES_AT_ONCE_ELSEWHERE = 2**24  # and on a GPU, which wants few large blocks: 64 MiB
KEPT_WEIGHTS = 2**28  # bytes of weights that keep_weights=True keeps at most: 256 MiB
RULED_OUT = -1e4  # added to a score, this or less rules a key out: e^-10000 is 0 in every dtype

# A row of normalised entropy h spreads over T^h keys in effect: at 0.1, 1.5 of 64 or 2 of 1,024.
# Random scores of 64 keys get there at a standard deviation of 11, which d_head 128 without a scale
# has before any training.
COLLAPSED = 0.1
# With scores this close, a key one deviation above the others gets e^0.2 = 1.22 times its share.
UNIFORM, UNIFORM_STD = 0.99, 0.2


@dataclass(frozen=True, eq=False)
class AttentionRow:
    """One head in one call, pooled over its batch and its query rows.

    Rows that may attend to fewer than two keys have nothing to decide and are left out of
    everything here but q_rms and k_rms; so are the padded queries of a self-attention whose
    key_padding_mask says which they are. nan if no row is left.

    call              number of the call, from 1, counting those that were seen but not recorded
    model, layer      class of the outermost module, and the qualified name in it of the innermost
                      one that was running ("#2": its second attention in one pass). Outside any
                      module "" and "call 7".
    kind              "sdpa", "MultiheadAttention" or "TransformerEncoderLayer"
    head, batch       number of the head, from 0, and how many batch entries were pooled
    T_q, T_k, d_head  queries, keys and features of a head (the longest, if the batch is nested)
    scale             the scale that the scores were multiplied with: as given, or 1/√d_head
    rows              query rows that count, over the batch
    entropy           −Σ w ln w over ln(keys that the row may attend), mean of rows: 0 to 1
    largest_weight    the largest weight of a row, mean of rows
    score_std         deviation of the scaled scores within a row, over the keys it may attend,
                      masks and biases not added: the root of the mean of the rows' variances
                      (n − 1 in the denominator). Softmax sees no other spread.
    score_std_pooled  deviation of all those scores together
    q_rms, k_rms      root mean square of the entries of q and of k
    weights           (batch, T_q, T_k), float32, on the CPU, with keep_weights=True; else None
    """

    call: int
    model: str
    layer: str
    kind: str
    head: int
    batch: int
    T_q: int
    T_k: int
    d_head: int
    scale: float
    rows: int
    entropy: float
    largest_weight: float
    score_std: float
    score_std_pooled: float
    q_rms: float
    k_rms: float
    weights: torch.Tensor | None = field(default=None, repr=False)

    @property
    def scale_estimate(self) -> float:
        """scale · q_rms/k_rms: the scale if q was made as large as k and shrunk before the call.

        A guess. What a model multiplied into q beforehand cannot be known from q.
        """
        return self.scale * self.q_rms / self.k_rms if self.k_rms else math.nan


@dataclass(frozen=True, eq=False, repr=False)
class AttentionTable(Table):
    """One line for each head of each layer, over all its recorded calls, each query row counting
    alike (spreads: root mean square)."""

    layer: np.ndarray = column("layer")
    head: np.ndarray = column("head")
    calls: np.ndarray = column("calls")
    T_q: np.ndarray = column("T_q")
    T_k: np.ndarray = column("T_k")
    d_head: np.ndarray = column("d_head")
    scale: np.ndarray = column("scale", ".4f")
    scale_ratio: np.ndarray = column("scale·√d", ".2f")
    entropy: np.ndarray = column("entropy")
    largest_weight: np.ndarray = column("largest weight")
    score_std: np.ndarray = column("score std")
    score_std_pooled: np.ndarray = column("pooled")


# ── statistics of one call ───────────────────────────────────────────────────────────────────────


@dataclass
class _Attention:
    """softmax(q kᵀ · scale + masks), said in one way for all who compute it."""

    q: torch.Tensor  # (B, H, T_q, D)
    k: torch.Tensor  # (B, H, T_k, D)
    scale: float
    masks: list[torch.Tensor]  # broadcast to (B, H, T_q, T_k): True = may attend, or added floats
    diagonal: int | None = None  # causal: query i sees the keys up to i + diagonal
    counted: torch.Tensor | None = None  # (B, T_q) boolean: the queries that are no padding

    @property
    def shape(self) -> tuple[int, int, int, int]:
        return *self.q.shape[:3], self.k.shape[2]


def _blocks(attention: _Attention):
    """Slices of batch, heads, queries and keys that make at most SCORES_AT_ONCE scores each (but
    one query with all its keys at least), without the keys that are still to come."""
    B, H, T_q, T_k = attention.shape
    on_cpu = attention.q.device.type == "cpu"
    most = (SCORES_AT_ONCE if on_cpu else SCORES_AT_ONCE_ELSEWHERE) // max(T_k, 1)
    causal = attention.diagonal is not None
    queries = max(1, min(T_q, most, max(64, T_q // 8) if causal else T_q))
    heads = max(1, min(H, most // queries))
    batch = max(1, min(B, most // (queries * H)))
    for t in range(0, T_q, queries):
        end = min(t + queries, T_q)
        keys = slice(0, max(0, min(T_k, end + attention.diagonal)) if causal else T_k)
        for b in range(0, B if keys.stop else 0, batch):
            for h in range(0, H, heads):
                yield slice(b, b + batch), slice(h, h + heads), slice(t, end), keys


def _allowed_and_bias(attention: _Attention, block):
    """What the masks do in a block: keys that may be attended (None: all), numbers to add."""
    allowed, bias = _past(attention, block), None
    for mask in attention.masks:
        part = mask[tuple(s if n > 1 else slice(None) for s, n in zip(block, mask.shape))]
        if part.dtype != torch.bool:
            bias = part if bias is None else bias + part
            part = part > RULED_OUT
        allowed = part if allowed is None else allowed & part
    return allowed, bias


def _past(attention: _Attention, block):
    """The keys that a causal attention lets the queries of a block see; None without one."""
    if attention.diagonal is None:
        return None
    queries, keys = (torch.arange(s.start, s.stop, device=attention.q.device) for s in block[2:])
    return keys <= queries[:, None] + attention.diagonal


def _largest_subtracted(scores, blocked):
    """The largest score of each row; in place, it becomes 0, and so does what is `blocked`."""
    if blocked is not None:
        scores.masked_fill_(blocked, -torch.inf)
    largest = scores.amax(-1, keepdim=True)
    scores -= largest
    if blocked is not None:
        scores.masked_fill_(blocked, 0)
    return largest[..., 0]


def _spread(shifted, n):
    """Mean of each row of scores that are 0 where they do not count, and the sum of the squared
    deviations from it. The largest being 0, the mean is small and little is lost in subtracting."""
    mean = shifted.sum(-1) / n
    squares = torch.linalg.vector_norm(shifted, dim=-1).square()
    return mean, (squares - n * mean.square()).clamp_(min=0)


def _block_statistics(scores, allowed, bias):
    """(5, b, h, t): the rows of `_row_statistics` for one block; e^s and its sums. Overwrites
    `scores`, what q kᵀ · scale gave."""
    blocked = None if allowed is None else ~allowed
    n = torch.full_like(scores[..., 0], scores.shape[-1])
    if allowed is not None:
        n = allowed.expand(scores.shape).sum(-1, dtype=scores.dtype)
    seen = scores if bias is None else scores + bias
    largest = _largest_subtracted(scores, blocked)
    mean, squares = _spread(scores, n)
    if bias is not None:
        _largest_subtracted(seen, blocked)
    exps = seen.exp()
    if blocked is not None:
        exps.masked_fill_(blocked, 0)
    total = exps.sum(-1)
    entropy = total.log() - seen.mul_(exps).sum(-1) / total  # ln Σe^s − Σ w s, as the largest s = 0
    share = (entropy / n.log()).clamp_(0, 1)
    return torch.stack([n, mean + largest, squares, share, 1 / total]), exps, total


def _row_statistics(attention: _Attention, weights=None) -> torch.Tensor:
    """(5, B, H, T_q): keys, mean and squared deviations of scores, entropy over its largest value,
    largest weight. Fills `weights` (B, H, T_q, T_k) if given."""
    dtype = torch.promote_types(attention.q.dtype, torch.float32)
    rows = torch.zeros(5, *attention.shape[:3], dtype=dtype, device=attention.q.device)
    for block in _blocks(attention):
        b, h, t, keys = block
        q, k = attention.q[b, h, t].to(dtype), attention.k[b, h, keys].to(dtype)
        scores = (q @ k.mT).mul_(attention.scale)
        found, exps, total = _block_statistics(scores, *_allowed_and_bias(attention, block))
        rows[:, b, h, t] = found
        if weights is not None:
            weights[block] = (exps / total[..., None]).to(weights)
    if attention.counted is not None:
        rows[0] *= attention.counted[:, None, :]
    return rows


def _exact(x: torch.Tensor) -> torch.dtype:
    """What to add many numbers up in; Apple's GPUs have no float64."""
    return torch.float32 if x.device.type == "mps" else torch.float64


def _head_statistics(rows: torch.Tensor) -> torch.Tensor:
    """(5, H, R) of all rows of a call -> (H, 5): rows that count, and the means of AttentionRow."""
    counts = rows[0] >= 2
    n, mean, squares, entropy, largest = rows.where(counts, 0).to(_exact(rows))
    count, scores = counts.sum(-1), n.sum(-1)
    overall = (n * mean).sum(-1) / scores
    apart = (n * (mean - overall[:, None]).square()).sum(-1)
    within = (squares / (n - 1)).where(counts, 0).sum(-1) / count
    pooled = (squares.sum(-1) + apart) / (scores - 1)
    means = entropy.sum(-1) / count, largest.sum(-1) / count
    return torch.stack([count, *means, within.sqrt(), pooled.sqrt()], dim=-1)


def _rms(parts: list[torch.Tensor]) -> torch.Tensor:
    """(B, H, T, D) each -> (H,), over all other axes."""
    squares = sum(part.float().square().sum((0, 2, 3)).to(_exact(part)) for part in parts)
    return (squares / sum(part[:, 0].numel() for part in parts)).sqrt()


def _statistics(attentions: list[_Attention], weights=None) -> torch.Tensor:
    """(H, 7) on the inputs' device: those of `_head_statistics`, then q_rms and k_rms."""
    rows = [_row_statistics(a, weights).transpose(1, 2).flatten(2) for a in attentions]
    rms = [_rms([getattr(a, name) for a in attentions]) for name in ("q", "k")]
    return torch.cat([_head_statistics(torch.cat(rows, -1)), torch.stack(rms, -1)], -1)


# ── what the four functions were asked ───────────────────────────────────────────────────────────


class _CannotSee(Exception):
    """Why a call was not recorded, in words."""


def _from_sdpa(
    query, key, value, attn_mask=None, dropout_p=0.0, is_causal=False, scale=None, enable_gqa=False
):
    """The arguments of scaled_dot_product_attention. Dropout acts after the weights."""
    scale = 1 / math.sqrt(query.size(-1)) if scale is None else float(scale)
    if not query.is_nested:
        return [_plain(query, key, attn_mask, is_causal, scale, enable_gqa)]
    if attn_mask is not None:
        raise _CannotSee("a mask over nested tensors")
    pairs = zip(query.unbind(), key.unbind())
    return [_plain(q[None], k[None], None, is_causal, scale, enable_gqa) for q, k in pairs]


def _plain(q, k, mask, is_causal, scale, enable_gqa):
    if enable_gqa:
        k = k.repeat_interleave(q.shape[-3] // k.shape[-3], -3)  # heads 0 0 1 1
    diagonal = 0 if is_causal else None
    if isinstance(mask, CausalBias):
        late = mask.seq_len_kv - mask.seq_len_q
        diagonal = late if mask.variant == CausalVariant.LOWER_RIGHT else 0
        mask = None
    lead = torch.broadcast_shapes(q.shape[:-2], k.shape[:-2])
    q, k = (_four_axes(x.expand(*lead, *x.shape[-2:]), lead, enable_gqa) for x in (q, k))
    masks = [] if mask is None else [_four_axes(mask, lead, enable_gqa)]
    return _Attention(q, k, scale, masks, diagonal)


def _four_axes(x, lead, heads):
    """To (B, H, rows, columns). With three axes the first is the batch, unless it holds `heads`."""
    x = x[(None,) * (len(lead) + 2 - x.ndim)]
    if len(lead) < 2:
        return x[None, None] if not lead else x[None] if heads else x[:, None]
    if x.shape[:-3].numel() > 1:
        x = x.expand(*lead[:-1], *x.shape[-3:])
    return x.flatten(0, -4) if x.ndim > 4 else x


_MHA_SIGNATURE = inspect.signature(F.multi_head_attention_forward)


def _from_mha(*args, **kwargs):
    """The arguments of multi_head_attention_forward: (T, B, E), or (T, E), before projection."""
    bound = _MHA_SIGNATURE.bind(*args, **kwargs)
    bound.apply_defaults()
    a = bound.arguments
    return [_projected_heads(a["query"], a["key"], a["query"] is a["key"], a)]


def _from_module(
    module, query, key, value, key_padding_mask=None, need_weights=True, attn_mask=None,
    average_attn_weights=True, is_causal=False,
):  # fmt: skip
    """What nn.MultiheadAttention was called with. Nested inputs can only be one and the same."""
    self_attention = query is key
    if query.is_nested:
        lengths = torch.tensor([len(x) for x in query.unbind()], device=query.device)
        query = key = query.to_padded_tensor(0.0)
        key_padding_mask = torch.arange(query.shape[1], device=query.device) >= lengths[:, None]
    if module.batch_first and query.ndim == 3:
        query, key = query.transpose(0, 1), key.transpose(0, 1)
    names = ["in_proj_weight", "in_proj_bias", "bias_k", "q_proj_weight", "k_proj_weight"]
    a = {name: getattr(module, name) for name in names} | {
        "num_heads": module.num_heads,
        "use_separate_proj_weight": not module._qkv_same_embed_dim,
        "static_k": None,
        "add_zero_attn": module.add_zero_attn,
        "key_padding_mask": key_padding_mask,
        "need_weights": need_weights,
        "attn_mask": attn_mask,
        "is_causal": is_causal,
    }
    return [_projected_heads(query, key, self_attention, a)]


def _from_encoder_layer(layer, src, src_mask=None, src_key_padding_mask=None, is_causal=False):
    """What nn.TransformerEncoderLayer was called with, as the call that its fast path saves."""
    x, norm = src, layer.norm1
    if layer.norm_first:  # not norm(src): a module that is called would be seen
        x = F.layer_norm(src, norm.normalized_shape, norm.weight, norm.bias, norm.eps)
    return _from_module(layer.self_attn, x, x, x, src_key_padding_mask, False, src_mask)


def _projected_heads(query, key, self_attention, a) -> _Attention:
    """(T, B, E), or (T, E), and the arguments of multi_head_attention_forward."""
    padding, H = a["key_padding_mask"], a["num_heads"]
    if query.ndim == 2:
        query, key = query[:, None], key[:, None]
        padding = None if padding is None else padding[None]
    q, k = (_split_heads(x.transpose(0, 1), H) for x in _projected(query, key, a))
    if a["static_k"] is not None:
        k = a["static_k"].unflatten(0, (-1, H))
    if a["add_zero_attn"]:
        k = F.pad(k, (0, 0, 0, 1))

    # With the hint alone torch ignores the mask.
    causal = a["is_causal"] and padding is None and not a["need_weights"]
    masks, more = [], k.shape[2] - key.shape[0]  # keys that bias_k and add_zero_attn put behind
    if a["attn_mask"] is not None and not causal:
        mask = _may_attend(a["attn_mask"], more)
        masks.append(mask[None, None] if mask.ndim == 2 else mask.unflatten(0, (-1, H)))
    counted = None
    if padding is not None:
        masks.append(_may_attend(padding, more)[:, None, None])
        counted = masks[-1][:, 0, 0, : query.shape[0]] if self_attention else None
        counted = counted if counted is None or counted.dtype == torch.bool else counted > RULED_OUT
    scale = 1 / math.sqrt(q.shape[-1])
    return _Attention(q, k, scale, masks, 0 if causal else None, counted)


def _projected(query, key, a):
    """q (T_q, B, E) and k (T_k, B, E), the learned extra key behind the others."""
    E, bias = query.shape[-1], a["in_proj_bias"]
    if a["use_separate_proj_weight"]:
        W_q, W_k = a["q_proj_weight"], a["k_proj_weight"]
    else:
        W_q, W_k = a["in_proj_weight"][:E], a["in_proj_weight"][E : 2 * E]
    b_q, b_k = (None, None) if bias is None else (bias[:E], bias[E : 2 * E])
    q, k = F.linear(query, W_q, b_q), F.linear(key, W_k, b_k)
    if a["bias_k"] is not None:
        k = torch.cat([k, a["bias_k"].to(k.dtype).expand(-1, k.shape[1], -1)])
    return q, k


def _split_heads(x, H):
    """(B, T, E) -> (B, H, T, E/H)."""
    return x.unflatten(-1, (H, -1)).transpose(1, 2)


def _may_attend(mask, more: int):
    """A mask of nn.MultiheadAttention, where True means ruled out, turned into one where it means
    may attend, with `more` keys at the end that all may attend."""
    value = True if mask.dtype == torch.bool else 0.0
    return F.pad(~mask if value is True else mask, (0, more), value=value)


# function -> what its rows are called, and how its arguments are read
_FUNCTIONS = {
    F.scaled_dot_product_attention: ("sdpa", _from_sdpa),
    torch.ops.aten.scaled_dot_product_attention: ("sdpa", _from_sdpa),
    torch.ops.aten.scaled_dot_product_attention.default: ("sdpa", _from_sdpa),
    F.multi_head_attention_forward: ("MultiheadAttention", _from_mha),
}


# ── seeing the calls ─────────────────────────────────────────────────────────────────────────────


class _Watch(TorchFunctionMode):
    """Passes every torch function on unchanged, and tells the monitor of those in `_FUNCTIONS`."""

    def __init__(self, saw):
        super().__init__()
        self._saw = saw
        self._above: list | None = None  # while it is aside, the modes that lay on it

    def __torch_function__(self, func, types, args=(), kwargs=None):
        result = func(*args, **(kwargs or {}))
        # In this order: torch 2.13's compiler mixes values up where is_compiling() comes first.
        if func in _FUNCTIONS and not torch.compiler.is_compiling():
            self._saw(*_FUNCTIONS[func], args, kwargs or {})
        return result

    def step_aside(self, aside: bool) -> None:
        """Out of the stack of modes, or back to its place. Whoever else took it out puts it back:
        torch does, while a torch function runs."""
        modes = torch.overrides._get_current_function_mode_stack()
        if aside and self in modes:
            place = modes.index(self)
            self._above = modes[place + 1 :]
            _replace_modes(modes, [*modes[:place], *self._above])
        elif not aside and self._above is not None:
            place = next((i for i, mode in enumerate(modes) if mode in self._above), len(modes))
            _replace_modes(modes, [*modes[:place], self, *modes[place:]])
            self._above = None


def _replace_modes(old: list, new: list) -> None:
    same = next(
        (i for i, (a, b) in enumerate(zip(old, new)) if a is not b), min(map(len, (old, new)))
    )
    for _ in old[same:]:
        torch.overrides._pop_mode()
    for mode in new[same:]:
        torch.overrides._push_mode(mode)


@dataclass
class _Running:
    """A module whose forward is running."""

    module: torch.nn.Module
    kind: str  # its name in _STEP_ASIDE, "compiled", or ""; the mode is off unless it is ""
    attended: bool = False  # an encoder layer that called its self_attn


class _Modules:
    """Knows which module is running. Global hooks tell it of each that begins and ends.

    While one of torch's own attention modules runs, and while something compiled does, the mode
    is off: a mode keeps them from the fast path, which gives other numbers at padded positions
    and is the only one to take nested tensors. Their attention is read from their inputs.
    """

    def __init__(self, saw):
        self._saw = saw
        self.watch: _Watch | None = None
        self.thread = 0
        self.running: list[_Running] = []
        self.compiled: set[str] = set()
        self._names: dict[int, str] = {}  # id of a module -> its name in the outermost
        self._times = Counter()  # name -> attentions in this pass of the outermost
        self._models: list[tuple[weakref.ref, str]] = []

    def __enter__(self):
        self.thread = threading.get_ident()
        self.running.clear()
        with ExitStack() as stack:
            for hook in (
                register_module_forward_pre_hook(self._begins),
                register_module_forward_hook(self._ends, with_kwargs=True, always_call=True),
            ):
                stack.callback(hook.remove)
            self.watch = _Watch(self._saw)
            torch.overrides._push_mode(self.watch)
            stack.callback(self.watch.step_aside, True)
            self._open = stack.pop_all()

    def __exit__(self, *_):
        self._open.close()

    def _begins(self, module, _args):
        if torch.compiler.is_compiling():  # first: a compiler reads on only where this is False
            return
        if threading.get_ident() != self.thread:
            return
        if self.running and getattr(self.running[-1].module, "self_attn", None) is module:
            self.running[-1].attended = True
        self.running.append(_Running(module, _kind(module)))
        if self.running[-1].kind == "compiled":
            self.compiled.add(_class_name(module))
        self._set_watch()

    def _set_watch(self):
        self.watch.step_aside(bool(self.running and self.running[-1].kind))

    def _ends(self, module, args, *rest):
        # After an exception torch leaves the kwargs out.
        kwargs, result = rest if len(rest) == 2 else ({}, None)
        if torch.compiler.is_compiling() or threading.get_ident() != self.thread:
            return
        if not any(step.module is module for step in self.running):
            return  # it was running already when the monitor began
        while self.running[-1].module is not module:  # what an exception ended without a word
            self.running.pop()
        if result is not None:
            self._look_at(self.running[-1], (module, *args), kwargs)
        self.running.pop()
        if not self.running:
            self._names.clear()
            self._times.clear()
        self._set_watch()

    def _look_at(self, step: _Running, args, kwargs):
        if step.kind == "MultiheadAttention":
            self._saw(step.kind, _from_module, args, kwargs)
        elif step.kind == "TransformerEncoderLayer" and not step.attended:
            self._saw(step.kind, _from_encoder_layer, args, kwargs)

    def label(self, suffix: str) -> tuple[str, str]:
        """Names of the outermost module's class and of the innermost that is running."""
        if not self.running:
            return "", ""
        root, leaf = self.running[0].module, self.running[-1].module
        if not self._names:
            self._names = {id(module): name for name, module in root.named_modules()}
        name = self._names.get(id(leaf), _class_name(leaf)).replace("_orig_mod.", "")
        name = (name + suffix).lstrip(".") or _class_name(leaf)
        self._times[name] += 1
        again = f" #{self._times[name]}" if self._times[name] > 1 else ""
        return self._model(root), name + again

    def _model(self, root) -> str:
        for known, name in self._models:
            if known() is root:
                return name
        name = _class_name(root)
        same = sum(other.split(" (")[0] == name for _, other in self._models)
        name += f" ({same + 1})" if same else ""
        self._models.append((weakref.ref(root), name))
        return name


_STEP_ASIDE = {
    torch.nn.MultiheadAttention.forward: "MultiheadAttention",
    torch.nn.TransformerEncoderLayer.forward: "TransformerEncoderLayer",
    torch.nn.TransformerEncoder.forward: "TransformerEncoder",
}


def _kind(module) -> str:
    if isinstance(module, torch.jit.ScriptModule) or type(module).__name__ == "OptimizedModule":
        return "compiled"
    return _STEP_ASIDE.get(type(module).forward, "")


def _class_name(module) -> str:
    inner = getattr(module, "_orig_mod", module)
    return getattr(inner, "original_name", type(inner).__name__)


@dataclass
class _Call:
    """A recorded call. Its statistics stay on the device until somebody reads them."""

    number: int
    model: str
    layer: str
    kind: str
    attentions: tuple  # (batch, T_q, T_k, d_head, scale)
    statistics: torch.Tensor  # (H, 7)
    weights: torch.Tensor | None

    def rows(self) -> list[AttentionRow]:
        batch, T_q, T_k, d_head, scale = self.attentions
        return [
            AttentionRow(
                self.number, self.model, self.layer, self.kind, head, batch, T_q, T_k, d_head,
                scale, int(numbers[0]), *numbers[1:],
                None if self.weights is None else self.weights[:, head],
            )
            for head, numbers in enumerate(self.statistics.tolist())
        ]  # fmt: skip


@dataclass
class _Head:
    """One head of one layer over all its recorded calls: a line of the table."""

    layer: str
    head: int
    calls: int
    T_q: str
    T_k: str
    d_head: int
    scale: float
    scale_ratio: float
    entropy: float
    largest_weight: float
    score_std: float
    score_std_pooled: float
    q_over_k: float
    keys: int
    rows: int

    @classmethod
    def of(cls, layer: str, rows: list[AttentionRow]) -> _Head:
        last, count = rows[-1], np.array([row.rows for row in rows])

        def mean(name, power=1):
            values = np.array([getattr(row, name) for row in rows])[count > 0]
            total = (values**power * count[count > 0]).sum()
            return float((total / count.sum()) ** (1 / power)) if count.any() else math.nan

        q, k = (float(np.mean([getattr(row, name) for row in rows])) for name in ("q_rms", "k_rms"))
        return cls(
            layer, last.head, len(rows), _span(row.T_q for row in rows),
            _span(row.T_k for row in rows), last.d_head, last.scale,
            last.scale * math.sqrt(last.d_head), mean("entropy"), mean("largest_weight"),
            mean("score_std", 2), mean("score_std_pooled", 2), q / k if k else math.nan,
            max(row.T_k for row in rows), int(count.sum()),
        )  # fmt: skip


def _span(lengths) -> str:
    found = sorted(set(lengths))
    return str(found[0]) if len(found) == 1 else f"{found[0]}–{found[-1]}"


class AttentionMonitor:
    """Records the attention of every torch model that runs inside its `with` block.

        with AttentionMonitor() as monitor:
            model(x)
        print(monitor)          # a table, then warnings in words
        monitor.picture()       # a heatmap over layers and heads
        monitor.rows            # an AttentionRow for each head of each call

    keep_weights  keep the weights too, in float32 on the CPU, 256 MiB at most in all
    every         record the first of every so many calls of each layer: in training, of every so
                  many steps

    Seen are all calls of `scaled_dot_product_attention`, however its name was bound, from
    `torch.nn.functional` or `torch.ops.aten`; of `multi_head_attention_forward`; and of
    `nn.MultiheadAttention`, `nn.TransformerEncoderLayer`, `nn.TransformerEncoder` and whatever is
    made of them, with and without weights, in training and evaluation, nested or padded. Masks,
    is_causal, grouped queries and torch's CausalBias are understood, as are add_bias_kv and
    add_zero_attn. Three axes (B, T, D) are a batch with one head, or (H, T, D) with enable_gqa.
    Monitors nest; one can be used again and then goes on. `calls` counts what was seen.

    Outputs, gradients and random numbers stay what they are without a monitor, bit for bit: the
    original functions run, with the same arguments, on the same path. (A subclass of those modules
    with a forward of its own keeps off the fast path while it is watched: equal to about 1e-6, and
    it cannot take nested tensors.) Statistics are computed in float32, or float64 for such inputs,
    from the queries and keys as given; for the modules after projecting their inputs once more.
    They agree with those of the weights that torch returns to 1e-5. Dropout comes after the weights
    and is not in them; under autocast, the arguments of scaled_dot_product_attention are taken
    before they are rounded.

    Not seen, because torch shows it to nobody: what torch.compile, torch.jit or torch.export has
    compiled (`unseen` names compiled modules; run such a model uncompiled, for each monitor makes
    it compile again); other kernels, such as flex_attention, flash_attn, or a softmax written out;
    other threads than the one that entered the block, so nn.DataParallel's. Not recorded: calls
    inside torch.func transforms and on tensors without numbers (`unseen` says so), and what a
    checkpoint repeats during backward.

    Cost, measured in one run on 2 CPU cores, float32, least of 7 times: a training step of a causal
    2-layer transformer (d_model 256, 4 heads) took 1.1 times as long at T 64 and T 256, 1.2 times
    at T 1024; its forward pass alone 1.4, 1.5 and 2.2 times; nn.TransformerEncoder on its fast path
    (4 layers, T 256) 1.5 times; the attention alone 2.5 to 3.7 times (T 1024, d_head 64). Under
    that, 0.4 ms for each call and 1.5 µs for every torch function. At most 1 MiB of scores exists
    at a time (on a GPU 64 MiB) and a few arrays of that size: with 8 heads and T 4096, whose scores
    would be 512 MiB, the peak rose by 11 MiB. `every=10` divides all but the 1.5 µs by ten.

    Raises TypeError or ValueError if every is not a whole number of at least 1, RuntimeError when
    it is entered while it watches.
    Sources: Zhai et al. 2023, arXiv:2303.06296 (attention entropy and its collapse); PyTorch's
    documentation of torch.overrides and of the functions above.
    """

    def __init__(self, keep_weights: bool = False, every: int = 1):
        if isinstance(every, bool) or not isinstance(every, int):
            raise TypeError(f"every is {every!r}, not a whole number; pass an integer from 1.")
        if every < 1:
            raise ValueError(f"every is {every}; pass an integer from 1 (1 records every call).")
        self.keep_weights = bool(keep_weights)
        self.every = every
        self.calls = 0
        self._recorded: list[_Call] = []
        self._rows: list[AttentionRow] = []
        self._layer_calls = Counter()
        self._failures: dict[str, None] = {}
        self._kept_bytes = 0
        self._modules = _Modules(self._saw)
        self._watching = False

    def __enter__(self) -> AttentionMonitor:
        if self._watching:
            raise RuntimeError("this monitor is watching already: nest another AttentionMonitor().")
        self._modules.__enter__()
        self._watching = True
        return self

    def __exit__(self, *_) -> None:
        self._watching = False
        self._modules.__exit__()

    def _saw(self, kind, read, args, kwargs) -> None:
        # A trace would copy the monitor's own work; in backward, a checkpoint repeats what was
        # recorded before.
        if torch.jit.is_tracing() or torch._C._current_graph_task_id() != -1:
            return
        self.calls += 1
        layer = f"call {self.calls}"
        try:
            model, name = self._modules.label(".self_attn" if read is _from_encoder_layer else "")
            self._layer_calls[model, name] += 1
            if (self._layer_calls[model, name] - 1) % self.every:
                return
            layer = name or layer
            with torch._C.DisableTorchFunction(), _disable_current_modes(), torch.no_grad():
                self._record(model, layer, kind, read, args, kwargs)
        except Exception as error:  # the model must go on, whatever is wrong with the monitor
            why = (
                str(error) if isinstance(error, _CannotSee) else f"{type(error).__name__}: {error}"
            )
            self._failures[f"{layer} was not recorded: {why}."] = None

    def _record(self, model, layer, kind, read, args, kwargs) -> None:
        _refuse_to_look([*args, *kwargs.values()])
        attentions = read(*args, **kwargs)
        with torch.autocast(attentions[0].q.device.type, enabled=False):
            weights = self._room_for_weights(layer, attentions)
            statistics = _statistics(attentions, weights)
        if type(statistics) is not torch.Tensor:
            raise _CannotSee(f"its tensors are of class {type(statistics).__name__}")
        shapes = np.array([attention.shape for attention in attentions])
        about = int(shapes[:, 0].sum()), *shapes[:, 2:].max(0).tolist()
        about += attentions[0].q.shape[-1], attentions[0].scale
        self._recorded.append(_Call(self.calls, model, layer, kind, about, statistics, weights))

    def _room_for_weights(self, layer, attentions):
        if not self.keep_weights:
            return None
        size = 4 * math.prod(attentions[0].shape)
        limit = f"more than {KEPT_WEIGHTS // 2**20} MiB"
        if len(attentions) > 1 or self._kept_bytes + size > KEPT_WEIGHTS:
            why = "its tensors are nested" if len(attentions) > 1 else limit
            self._failures[f"The weights of {layer} were not kept: {why}."] = None
            return None
        self._kept_bytes += size
        return torch.zeros(attentions[0].shape)

    @property
    def rows(self) -> list[AttentionRow]:
        """One `AttentionRow` for each head of each recorded call, in the order of the calls."""
        self._rows += [row for call in self._recorded for row in call.rows()]
        self._recorded.clear()
        return list(self._rows)

    def _heads(self) -> list[_Head]:
        rows = self.rows
        several = len({row.model for row in rows}) > 1
        layers: dict[str, dict[int, list[AttentionRow]]] = {}
        for row in rows:
            name = f"{row.model}: {row.layer}" if several and row.model else row.layer
            layers.setdefault(name, {}).setdefault(row.head, []).append(row)
        return [
            _Head.of(name, heads[head]) for name, heads in layers.items() for head in sorted(heads)
        ]

    def table(self) -> AttentionTable:
        """One line for each head of each layer, layers in the order of their first call.

        Raises ValueError if nothing was recorded.
        """
        heads = self._heads_or_raise()
        return AttentionTable.from_rows(
            [{f.name: getattr(head, f.name) for f in AttentionTable._columns()} for head in heads]
        )

    def _heads_or_raise(self) -> list[_Head]:
        heads = self._heads()
        if not heads:
            raise ValueError(self._nothing_seen())
        return heads

    def _counted(self) -> str:
        return f"{self.calls} attention call{'' if self.calls == 1 else 's'}"

    def _nothing_seen(self) -> str:
        return (
            f"{self._counted()} seen, none recorded. Run the model inside "
            "`with AttentionMonitor() as monitor:`, in the same thread, not compiled; a model "
            "that multiplies its own matrices is not seen either."
        )

    def picture(self):
        """A heatmap of the normalised entropy, a line for each layer, a column for each head.

        Returns a `helpers.pictures.figure.Figure`: `.svg`, `.words`. Collapsed heads are outlined.
        Raises ValueError if nothing was recorded.
        """
        from helpers.pictures.heatmap import heatmap

        heads = self._heads_or_raise()
        layers = list(dict.fromkeys(head.layer for head in heads))
        count = 1 + max(head.head for head in heads)
        entropy = np.full((len(layers), count), np.nan)
        for head in heads:
            entropy[layers.index(head.layer), head.head] = head.entropy
        return heatmap(
            entropy, rows=layers, columns=[str(i) for i in range(count)], column_title="head",
            title="Normalised entropy of each head", words=_picture_words(layers, entropy),
            ends=("one key takes all", "all keys alike"), outlined=entropy < COLLAPSED,
            outline_means=f"below {COLLAPSED}: collapsed",
        )  # fmt: skip

    @property
    def unseen(self) -> list[str]:
        """What ran but could not be recorded, and why: a sentence each."""
        compiled = [
            f"{name} is compiled: the attention inside it is not seen. Watch it uncompiled."
            for name in sorted(self._modules.compiled)
        ]
        return compiled + list(self._failures)

    @property
    def warnings(self) -> list[str]:
        """A sentence or two for each thing that looks wrong; empty if nothing does."""
        heads = self._heads()
        of_layer: dict[str, list[_Head]] = {}
        for head in heads:
            of_layer.setdefault(head.layer, []).append(head)
        words = _scale_warnings(heads)
        for layer in of_layer.values():
            words += _layer_warnings(layer)
        return words

    def __str__(self) -> str:
        if not self.rows:
            return "\n".join([self._nothing_seen(), *self.unseen])
        recorded = len({row.call for row in self.rows})
        seen = f"{self._counted()} seen, {recorded} recorded"
        parts = [seen, self.table().text()]
        parts += [f"Warning: {words}" for words in self.warnings]
        return "\n".join(parts + [f"Unseen: {words}" for words in self.unseen])

    __repr__ = __str__


def _refuse_to_look(arguments: list) -> None:
    tensor = next((x for x in arguments if isinstance(x, torch.Tensor)), None)
    if torch._C._functorch.peek_interpreter_stack() is not None:
        raise _CannotSee("it ran inside a transform of torch.func, such as vmap or grad")
    if tensor is not None and (tensor.is_meta or type(tensor).__name__ == "FakeTensor"):
        raise _CannotSee("meta and fake tensors hold no numbers")
    if tensor is not None and tensor.is_cuda and torch.cuda.is_current_stream_capturing():
        raise _CannotSee("a CUDA graph was being captured")


# ── words ────────────────────────────────────────────────────────────────────────────────────────


def _picture_words(layers, entropy) -> str:
    lines = ["Normalised entropy of each head: 0, one key takes all; 1, all keys alike."]
    for name, values in zip(layers, entropy):
        lines.append(f"{name}: " + " ".join("–" if np.isnan(x) else f"{x:.2f}" for x in values))
    return "\n".join(lines)


def _layer_warnings(heads: list[_Head]) -> list[str]:
    broken = [h for h in heads if h.rows and math.isnan(h.entropy)]
    collapsed = [h for h in heads if h.entropy < COLLAPSED]
    uniform = [h for h in heads if h.entropy > UNIFORM and h.score_std < UNIFORM_STD]
    says = (broken, _broken_words), (collapsed, _collapsed_words), (uniform, _uniform_words)
    return [f"{heads[0].layer}: {_named(some, heads)} {say(some)}" for some, say in says if some]


def _named(some: list[_Head], heads: list[_Head]) -> str:
    numbers = [str(h.head) for h in some]
    if len(heads) == 1:
        return "the only head"
    if len(some) == len(heads):
        return f"all {len(heads)} heads"
    return f"head {numbers[0]}" if len(some) == 1 else f"heads {', '.join(numbers)}"


def _range_of(values, decimals: int = 2) -> str:
    values = list(values)
    low, high = (f"{value:.{decimals}f}" for value in (min(values), max(values)))
    return low if low == high else f"{low} to {high}"


def _broken_words(some: list[_Head]) -> str:
    return "met scores that are nan or infinite, so nothing can be said: did q or k overflow?"


def _collapsed_words(some: list[_Head]) -> str:
    keys = max(head.keys for head in some)
    std, limit = max(head.score_std for head in some), math.sqrt(2 * math.log(keys))
    why = (
        f"random scores saturate softmax from about √(2 ln {keys}) = {limit:.1f} on"
        if std > limit
        else "that alone does not saturate it, so single keys stand out, "
        "as in a head that copies one position"
    )
    entropy = _range_of((head.entropy for head in some), 3)
    return (
        f"collapsed: normalised entropy {entropy}, below {COLLAPSED}. "
        f"Of {keys} keys a row attends to fewer than {keys}^{COLLAPSED} = {keys**COLLAPSED:.1f}, "
        f"in effect. Standard deviation of the scaled scores within a row: "
        f"{_range_of(h.score_std for h in some)}; {why}."
    )


def _uniform_words(some: list[_Head]) -> str:
    entropy = _range_of((head.entropy for head in some), 3)
    words = (
        f"went uniform: normalised entropy {entropy}, and scaled scores that differ "
        f"within a row by only {_range_of(h.score_std for h in some)} (standard "
        "deviation), so the output is nearly the mean of all values. Before training, small "
        "weights do that and it is no fault; in a trained model these heads select nothing."
    )
    if all(_seems_scaled(head) for head in some):
        words += (
            f" The entries of q are {_range_of(h.q_over_k for h in some)} of k's, near 1/√d_head: "
            "is the scale applied twice?"
        )
    return words


def _seems_scaled(head: _Head) -> bool:
    """Whether q is smaller than k by about 1/√d_head. Only a guess: weights may do that too."""
    return head.d_head > 1 and 0.8 < head.q_over_k * math.sqrt(head.d_head) < 1.25


def _scale_warnings(heads: list[_Head]) -> list[str]:
    """One for each unusual scale, with the layers that use it."""
    unusual: dict[tuple, list[_Head]] = {}
    for head in heads:
        if not math.isclose(head.scale_ratio, 1, rel_tol=0.01):
            kind = f"{head.scale:.4g}", head.d_head, _seems_scaled(head)
            unusual.setdefault(kind, []).append(head)
    words = []
    for some in unusual.values():
        layers = list(dict.fromkeys(head.layer for head in some))
        more = f" and {len(layers) - 3} more" if len(layers) > 3 else ""
        words.append(f"{', '.join(layers[:3])}{more}: {_scale_words(some, heads)}")
    return words


def _scale_words(some: list[_Head], heads: list[_Head]) -> str:
    scale, d_head = some[0].scale, some[0].d_head
    count = sum(head.layer == some[0].layer for head in heads)
    printed = f"{scale:.4g}" + (".0" if float(f"{scale:.4g}").is_integer() else "")
    guess = f"the usual one is 1/√d_head = {1 / math.sqrt(d_head):.4g}. Was this one chosen?"
    for usual, question in (
        (1.0, "is 1/√d_head missing?"),
        (1 / d_head, "that is 1/d_head, as muP has it. Is the root missing?"),
        (math.sqrt(d_head), "that is √d_head. Multiplied where it should divide?"),
        (1 / math.sqrt(d_head * count), "that is 1/√(heads · d_head). Is it 1/√d_model, not "
         "1/√d_head?"),
    ):  # fmt: skip
        if math.isclose(scale, usual, rel_tol=0.01):
            guess = question
            break
    words = f"scale {printed} at d_head {d_head}: {guess}"
    if _seems_scaled(some[0]):
        words += (
            f" The entries of q are {_range_of(h.q_over_k for h in some)} of k's, near 1/√d_head, "
            "so q was probably scaled before the call; that cannot be known from outside."
        )
    elif scale == 1.0:
        words += " A model may have scaled q before, or folded the scale into its weights;" + (
            " that cannot be seen, but the spread of the scores can: "
            f"{_range_of(h.score_std for h in some)} within a row."
        )
    return words
