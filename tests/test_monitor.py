"""The attention monitor: right numbers for every way torch computes attention, and no effect."""

import functools
import math
import threading
import xml.etree.ElementTree as ET

import matplotlib
import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import nn
from torch.nn.attention.bias import causal_lower_right, causal_upper_left
from torch.nn.functional import scaled_dot_product_attention as bound_before
from torch.nn.modules import module as torch_modules

from helpers.attention import attention_steps, causal_mask, normalized_entropy
from helpers.monitor import AttentionMonitor, blocks, records
from helpers.monitor.attention import Attention
from helpers.pictures.heatmap import cividis, heatmap
from helpers.pictures.palette import contrast, ink_on

LN3 = math.log(3)


def randn(*shape, seed=0, dtype=torch.float32):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed)).to(dtype)


def watched(run, **options):
    """What `run()` returns inside a monitor, and the monitor."""
    with AttentionMonitor(**options) as monitor:
        result = run()
    return result, monitor


def expected(scores, weights, allowed):
    """Statistics of each head from (B, H, T_q, T_k) arrays, as they are defined."""
    allowed = np.broadcast_to(allowed, weights.shape)
    entropy, keys = normalized_entropy(weights, allowed), allowed.sum(-1)
    counts = keys >= 2
    n = np.maximum(keys, 2)
    means = (scores * allowed).sum(-1, keepdims=True) / n[..., None]
    variances = ((scores - means) ** 2 * allowed).sum(-1) / (n - 1)
    return [
        {
            "rows": counts[:, h].sum(),
            "entropy": entropy[:, h][counts[:, h]].mean(),
            "largest_weight": weights.max(-1)[:, h][counts[:, h]].mean(),
            "score_std": math.sqrt(variances[:, h][counts[:, h]].mean()),
            "score_std_pooled": scores[:, h][(allowed & counts[..., None])[:, h]].std(ddof=1),
        }
        for h in range(weights.shape[1])
    ]


def expected_weights(weights, allowed):
    """The same without the scores."""
    heads = expected(np.zeros_like(weights), weights, allowed)
    return [{name: head[name] for name in ("rows", "entropy", "largest_weight")} for head in heads]


def assert_rows(rows, heads, tolerance=2e-5):
    assert [row.head for row in rows] == list(range(len(heads)))
    for row, head in zip(rows, heads):
        got = {name: getattr(row, name) for name in head}
        assert got == pytest.approx(head, rel=tolerance, abs=tolerance)


def unwatched() -> bool:
    return not (
        torch.overrides._get_current_function_mode_stack()
        or torch_modules._global_forward_hooks
        or torch_modules._global_forward_pre_hooks
    )


@pytest.fixture(scope="module", autouse=True)
def _one_thread():
    """Several threads only get into each other's way with matrices this small."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.fixture(autouse=True)
def _leaves_nothing_behind():
    yield
    clean = unwatched()
    while torch.overrides._get_current_function_mode_stack():
        torch.overrides._pop_mode()
    torch_modules._global_forward_hooks.clear()
    torch_modules._global_forward_pre_hooks.clear()
    assert clean


# ── scaled_dot_product_attention ─────────────────────────────────────────────────────────────────


def test_two_rows_by_hand():
    # Row 1: scaled scores ln 3 and 0, weights 3/4 and 1/4. Row 2: scores 5 and 5, weights 1/2.
    q = torch.tensor([[[[1.0, 0], [0, 1]]]])
    k = torch.tensor([[[[LN3, 5], [0, 5]]]])
    _, monitor = watched(lambda: F.scaled_dot_product_attention(q, k, k, scale=1.0))
    (row,) = monitor.rows
    first = -(0.75 * math.log(0.75) + 0.25 * math.log(0.25)) / math.log(2)  # 0.811
    assert row.entropy == pytest.approx((first + 1) / 2, abs=1e-6)
    assert row.largest_weight == pytest.approx((0.75 + 0.5) / 2, abs=1e-6)
    assert row.score_std == pytest.approx(math.sqrt((LN3**2 / 2 + 0) / 2), abs=1e-6)
    assert row.score_std_pooled == pytest.approx(np.std([LN3, 0, 5, 5], ddof=1), abs=1e-5)
    assert (row.scale, row.rows, row.call, row.kind, row.layer) == (1.0, 2, 1, "sdpa", "call 1")
    assert (row.batch, row.head, row.T_q, row.T_k, row.d_head) == (1, 0, 2, 2, 2)
    assert row.q_rms == pytest.approx(math.sqrt(2 / 4))
    assert row.k_rms == pytest.approx(math.sqrt((LN3**2 + 50) / 4))


def test_rows_with_one_key_are_left_out():
    # Causal: query 0 sees key 0 alone; query 1 sees two keys, with weights 3/4 and 1/4.
    q = torch.tensor([[[[7.0], [1]]]])
    k = torch.tensor([[[[LN3], [0.0]]]])
    _, monitor = watched(lambda: F.scaled_dot_product_attention(q, k, k, is_causal=True))
    (row,) = monitor.rows
    assert row.rows == 1
    assert row.entropy == pytest.approx(0.8112781, abs=1e-6)
    assert row.largest_weight == pytest.approx(0.75, abs=1e-6)
    assert row.score_std == pytest.approx(LN3 / math.sqrt(2), abs=1e-6)


LOW = torch.finfo(torch.float32).min
KEEP, BIAS = randn(2, 3, 5, 7, seed=9) > -0.5, randn(3, 5, 7, seed=3)
MASKS = {
    "none": ({}, True),
    "causal": ({"is_causal": True}, causal_mask(5, 7)),
    "boolean": ({"attn_mask": KEEP}, KEEP.numpy()),
    "boolean, one for all": ({"attn_mask": KEEP[0, 0]}, KEEP[0, 0].numpy()),
    "boolean, for keys": ({"attn_mask": KEEP[:, :1, :1]}, KEEP[:, :1, :1].numpy()),
    "added -inf": ({"attn_mask": torch.where(KEEP, 0.0, -torch.inf)}, KEEP.numpy()),
    "added minimum": ({"attn_mask": torch.where(KEEP, 0.0, LOW)}, KEEP.numpy()),
    "added -10,000": ({"attn_mask": torch.where(KEEP, 0.0, -1e4)}, KEEP.numpy()),
    "a bias": ({"attn_mask": BIAS}, True),
    "a bias and -inf": ({"attn_mask": BIAS.where(KEEP, -torch.inf)}, KEEP.numpy()),
    "lower right": ({"attn_mask": causal_lower_right(5, 7)}, causal_mask(5, 7, "lower_right")),
    "upper left": ({"attn_mask": causal_upper_left(5, 7)}, causal_mask(5, 7)),
    "a scale": ({"scale": 0.7}, True),
    "dropout": ({"dropout_p": 0.5}, True),
}  # fmt: skip


@pytest.mark.parametrize("name", MASKS)
@pytest.mark.parametrize("at_once", [2**18, 1, 12, 40])
def test_masks_and_blocks(name, at_once, monkeypatch):
    monkeypatch.setattr(blocks, "SCORES_AT_ONCE", at_once)
    options, allowed = MASKS[name]
    q, k, v = randn(2, 3, 5, 4), randn(2, 3, 7, 4, seed=1) * 2, randn(2, 3, 7, 6, seed=2)
    _, monitor = watched(
        lambda: F.scaled_dot_product_attention(q, k, v, **options), keep_weights=True
    )

    mask = options.get("attn_mask")
    added = mask.double().numpy() if name.startswith(("a bias", "added")) else allowed
    steps = attention_steps(
        *(x.double().numpy() for x in (q, k, v)), options.get("scale"),
        None if added is True else np.broadcast_to(added, (2, 3, 5, 7)),
    )  # fmt: skip
    assert_rows(monitor.rows, expected(steps.scaled, steps.weights, allowed))
    some = np.broadcast_to(allowed, (2, 3, 5, 7)).any(-1)[:, 1]  # fully masked rows: no weights
    weights = monitor.rows[1].weights.numpy()
    np.testing.assert_allclose(weights[some], steps.weights[:, 1][some], atol=1e-6)
    assert {row.scale for row in monitor.rows} == {options.get("scale", 0.5)}


def test_long_causal_attention_in_several_blocks():
    q, k = randn(1, 2, 200, 8), randn(1, 2, 200, 8, seed=1)
    _, monitor = watched(lambda: F.scaled_dot_product_attention(q, k, k, is_causal=True))
    steps = attention_steps(*(x.double().numpy() for x in (q, k, k)), is_causal=True)
    assert_rows(monitor.rows, expected(steps.scaled, steps.weights, causal_mask(200, 200)))


@pytest.mark.parametrize("shape", [(2, 3, 9, 11), (1, 1, 1, 1), (5, 2, 300, 7), (2, 2, 1, 4000)])
@pytest.mark.parametrize("diagonal", [None, 0, 3, -2])
def test_blocks_are_small_and_cover_everything_once(shape, diagonal, monkeypatch):
    monkeypatch.setattr(blocks, "SCORES_AT_ONCE", 600)
    B, H, T_q, T_k = shape
    q, k = torch.zeros(B, H, T_q, 1), torch.zeros(B, H, T_k, 1)
    seen = torch.zeros(shape)
    for block in blocks.blocks(Attention(q, k, 1.0, [], diagonal)):
        assert seen[block].numel() <= max(600, T_k)
        seen[block] += 1
    may = torch.ones(T_q, T_k).tril(diagonal) if diagonal is not None else torch.ones(T_q, T_k)
    assert seen.max() <= 1
    assert (seen >= may).all()


def test_grouped_queries():
    q, k = randn(2, 6, 5, 4), randn(2, 2, 7, 4, seed=1)
    run = lambda: F.scaled_dot_product_attention(q, k, k, enable_gqa=True)  # noqa: E731
    _, monitor = watched(run)
    full = k.repeat_interleave(3, 1)
    steps = attention_steps(*(x.double().numpy() for x in (q, full, full)))
    assert_rows(monitor.rows, expected(steps.scaled, steps.weights, True))
    _, three_axes = watched(
        lambda: F.scaled_dot_product_attention(q[0], k[0], k[0], enable_gqa=True)
    )
    assert_rows(three_axes.rows, expected(steps.scaled[:1], steps.weights[:1], True))


def test_other_numbers_of_axes():
    q, mask = randn(4, 2, 3, 5, 8), randn(4, 2, 3, 5, 5, seed=5) > 0
    for x, keep, shape in (
        (q, None, (8, 3, 5, 5)),
        (q, mask, (8, 3, 5, 5)),
        (q, mask[0, 0], (8, 3, 5, 5)),
        (q, mask[:1, :1], (8, 3, 5, 5)),
        (q[0, 0], mask[0, 0], (3, 1, 5, 5)),  # (B, T, D): a batch, one head
        (q[0, 0, 0], mask[0, 0, 0], (1, 1, 5, 5)),
    ):
        _, monitor = watched(lambda: F.scaled_dot_product_attention(x, x, x, keep))  # noqa: B023
        array = x.double().numpy()
        allowed = True if keep is None else keep.numpy()
        steps = attention_steps(array, array, array, attn_mask=None if keep is None else allowed)
        allowed = np.broadcast_to(allowed, steps.weights.shape).reshape(shape)
        heads = expected(steps.scaled.reshape(shape), steps.weights.reshape(shape), allowed)
        assert_rows(monitor.rows, heads)
        assert monitor.rows[0].batch == shape[0]


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float64])
def test_other_dtypes(dtype):
    q, k = randn(2, 2, 6, 8, dtype=dtype), randn(2, 2, 6, 8, seed=1, dtype=dtype)
    mask = randn(2, 2, 6, 6, seed=3, dtype=dtype)
    _, monitor = watched(lambda: F.scaled_dot_product_attention(q, k, k, mask))
    arrays = (x.double().numpy() for x in (q, k, k))
    steps = attention_steps(*arrays, attn_mask=mask.double().numpy())
    exact = 1e-12 if dtype == torch.float64 else 2e-5
    assert_rows(monitor.rows, expected(steps.scaled, steps.weights, True), exact)


def test_scores_that_are_large_or_alike_lose_nothing():
    # Deviation 0.5 around 20,000: float32 holds these scores to 0.002.
    q, k = torch.ones(1, 1, 2, 1), 20_000 + randn(1, 1, 500, 1) / 2
    _, monitor = watched(lambda: F.scaled_dot_product_attention(q, k, k))
    steps = attention_steps(*(x.double().numpy() for x in (q, k, k)))
    assert_rows(monitor.rows, expected(steps.scaled, steps.weights, True), 1e-4)


@pytest.mark.parametrize("T_q", [0, 3])
def test_nothing_to_attend_is_no_error(T_q):
    q, k = randn(2, 2, T_q, 4), randn(2, 2, 0 if T_q else 5, 4)
    _, monitor = watched(lambda: F.scaled_dot_product_attention(q, k, k))
    assert [row.rows for row in monitor.rows] == [0, 0]
    assert all(math.isnan(row.entropy) for row in monitor.rows)
    assert monitor.unseen == monitor.warnings == []


@pytest.mark.parametrize("layout", [torch.strided, torch.jagged])
@pytest.mark.filterwarnings("ignore:The PyTorch API of nested tensors")
def test_nested_tensors(layout):
    parts = [randn(3, 2, 4), randn(6, 2, 4, seed=1)]
    x = torch.nested.nested_tensor(parts, layout=layout).transpose(1, 2)
    x = x.contiguous() if layout is torch.strided else x
    _, monitor = watched(lambda: F.scaled_dot_product_attention(x, x, x))
    assert monitor.unseen == []
    assert [row.rows for row in monitor.rows] == [9, 9]
    entropies = 0
    for part in parts:
        array = part.transpose(0, 1).double().numpy()
        entropies = entropies + normalized_entropy(
            attention_steps(array, array, array).weights
        ).sum(1)
    assert [row.entropy for row in monitor.rows] == pytest.approx(list(entropies / 9), abs=1e-5)
    assert (monitor.rows[0].batch, monitor.rows[0].T_q) == (2, 6)
    _, keeps = watched(lambda: F.scaled_dot_product_attention(x, x, x), keep_weights=True)
    assert keeps.unseen == ["The weights of call 1 were not kept: its tensors are nested."]
    assert numbers(keeps) == numbers(monitor)


# ── what it must not change ──────────────────────────────────────────────────────────────────────


class Attend(nn.Module):
    """One causal attention, written as models write it."""

    def __init__(self, d=16, heads=2, **options):
        super().__init__()
        self.heads, self.options = heads, {"is_causal": True, **options}
        self.qkv, self.out = nn.Linear(d, 3 * d), nn.Linear(d, d)

    def forward(self, x):
        q, k, v = self.qkv(x).unflatten(-1, (3, self.heads, -1)).permute(2, 0, 3, 1, 4)
        return self.out(
            F.scaled_dot_product_attention(q, k, v, **self.options).transpose(1, 2).flatten(2)
        )


class Net(nn.Module):
    def __init__(self, layers=2, **options):
        super().__init__()
        self.blocks = nn.ModuleList(Attend(**options) for _ in range(layers))

    def forward(self, x):
        for block in self.blocks:
            x = x + block(x)
        return x


def encoder(layers=2, heads=2, **options):
    torch.manual_seed(0)
    options = {"batch_first": True, "dropout": 0.0, **options}
    return nn.TransformerEncoder(nn.TransformerEncoderLayer(16, heads, 32, **options), layers)


@pytest.mark.parametrize("model", ["plain", "dropout", "encoder", "attention"])
@pytest.mark.filterwarnings("ignore:enable_nested_tensor")
def test_outputs_gradients_and_random_numbers_are_bit_equal(model):
    torch.manual_seed(0)
    net = {
        "plain": lambda: Net(),
        "dropout": lambda: Net(dropout_p=0.3),
        "encoder": lambda: encoder(dropout=0.3),
        "attention": lambda: nn.Sequential(Net(1), encoder(1, norm_first=True, dropout=0.3)),
    }[model]()

    def step():
        torch.manual_seed(1)
        x = randn(2, 6, 16).requires_grad_()
        out = net(x)
        net.zero_grad()
        out.square().sum().backward()
        return [out, x.grad, *(p.grad.clone() for p in net.parameters()), torch.rand(3)]

    plain, (seen, monitor) = step(), watched(step)
    assert all(torch.equal(a, b) for a, b in zip(plain, seen, strict=True))
    assert len(monitor.rows) == 4
    assert not any(isinstance(x, torch.Tensor) for row in monitor.rows for x in vars(row).values())


def test_statistics_keep_no_graph_and_no_gradient():
    q = randn(1, 1, 3, 4).requires_grad_()
    _, monitor = watched(lambda: F.scaled_dot_product_attention(q, q, q), keep_weights=True)
    assert not monitor.rows[0].weights.requires_grad
    assert not monitor._modules.running


def test_autocast_trains_as_before():
    """A cast of a weight made without gradients must not stay in autocast's cache."""
    mha = nn.MultiheadAttention(16, 2, kdim=8, vdim=8, batch_first=True)

    def step():
        mha.zero_grad()
        with torch.autocast("cpu", torch.bfloat16):
            for _ in range(2):
                out, _ = mha(randn(2, 5, 16), randn(2, 5, 8), randn(2, 5, 8))
        out.float().sum().backward()
        return out, mha.q_proj_weight.grad.clone()

    plain, (seen, monitor) = step(), watched(step)
    assert all(torch.equal(a, b) for a, b in zip(plain, seen))
    assert len(monitor.rows) == 4


def test_statistics_are_exact_under_autocast():
    q, k = randn(1, 2, 6, 8), randn(1, 2, 6, 8, seed=1)
    with torch.autocast("cpu", torch.bfloat16):
        _, rounded = watched(lambda: F.scaled_dot_product_attention(q, k, k))
    _, exact = watched(lambda: F.scaled_dot_product_attention(q, k, k))
    assert numbers(rounded) == numbers(exact)


def test_a_checkpoint_is_recorded_once():
    from torch.utils.checkpoint import checkpoint

    net = nn.Sequential(Net(1), encoder(1))

    def step(reentrant):
        net.zero_grad()
        x = randn(2, 6, 16).requires_grad_()
        torch.autograd.backward(checkpoint(net, x, use_reentrant=reentrant).square().sum())
        return net[0].blocks[0].qkv.weight.grad.clone()

    for reentrant in (True, False):
        run = functools.partial(step, reentrant)
        plain, (seen, monitor) = run(), watched(run)
        assert torch.equal(plain, seen)
        assert monitor.calls == 2


# ── names that were bound before ─────────────────────────────────────────────────────────────────


class Holder:
    attend = staticmethod(bound_before)


def with_default(x, attend=bound_before):
    return attend(x, x, x)


@pytest.mark.parametrize(
    "attend",
    [
        bound_before,
        with_default,
        functools.partial(bound_before, is_causal=True),
        Holder.attend,
        torch.ops.aten.scaled_dot_product_attention,
        torch.ops.aten.scaled_dot_product_attention.default,
        torch._C._nn.scaled_dot_product_attention,
        lambda query, key, value: F.scaled_dot_product_attention(value=value, key=key, query=query),
    ],
)
def test_however_the_name_was_bound(attend):
    x = randn(1, 2, 3, 4)
    run = (lambda: attend(x)) if attend is with_default else (lambda: attend(x, x, x))
    plain, (seen, monitor) = run(), watched(run)
    assert torch.equal(plain, seen)
    assert [row.kind for row in monitor.rows] == ["sdpa", "sdpa"]


# ── nn.MultiheadAttention ────────────────────────────────────────────────────────────────────────


def test_multihead_attention_by_hand():
    # W_q and W_k are the identity and there is no bias: scores x xᵀ/√1 of one head with d_head 1.
    mha = nn.MultiheadAttention(1, 1, bias=False, batch_first=True)
    with torch.no_grad():
        mha.in_proj_weight.fill_(1)
    x = torch.tensor([[[1.0], [1 - LN3]]])  # row 1: 1 and 1 − ln 3, so weights 3/4 and 1/4
    mask = torch.tensor([[False, False], [True, False]])  # True = ruled out: row 2 has one key
    for weights in (True, False):
        _, monitor = watched(lambda: mha(x, x, x, attn_mask=mask, need_weights=weights))  # noqa: B023
        (row,) = monitor.rows
        assert row.entropy == pytest.approx(0.8112781, abs=1e-6)
        assert row.largest_weight == pytest.approx(0.75, abs=1e-6)
        assert row.score_std == pytest.approx(LN3 / math.sqrt(2), abs=1e-6)
        assert (row.rows, row.scale, row.d_head) == (1, 1.0, 1)
        assert (row.kind, row.layer) == ("MultiheadAttention", "MultiheadAttention")


def padding(B=3, T=6):
    lengths = torch.tensor([6, 4, 2])[:B]
    return torch.arange(T) >= lengths[:, None]


def per_head_weights(mha, query, key, value, **masks):
    """(B, H, T_q, T_k) as the module itself returns them."""
    with torch.no_grad():
        weights = mha(query, key, value, **masks, average_attn_weights=False)[1]
    return (weights if weights.ndim == 4 else weights[None]).double().numpy()


CAUSAL = torch.ones(6, 6).triu(1).bool()
MHA_MASKS = {
    "none": {},
    "padding": {"key_padding_mask": padding()},
    "padding, added": {"key_padding_mask": torch.where(padding(), -torch.inf, 0.0)},
    "padding, -1e9": {"key_padding_mask": torch.where(padding(), -1e9, 0.0)},
    "causal": {"attn_mask": CAUSAL},
    "causal, hinted": {"attn_mask": CAUSAL, "is_causal": True},
    "added": {"attn_mask": randn(6, 6, seed=5)},
    "for each head": {"attn_mask": randn(6, 6, 6, seed=5)},
    "both": {"attn_mask": CAUSAL, "key_padding_mask": padding()},
    "both, added": {
        "attn_mask": randn(6, 6, seed=5),
        "key_padding_mask": torch.where(padding(), -torch.inf, randn(3, 6, seed=6)),
    },
}


@pytest.mark.parametrize("name", MHA_MASKS)
@pytest.mark.parametrize("batch_first", [True, False])
@pytest.mark.parametrize("need_weights", [True, False])
@pytest.mark.parametrize("mode", ["train", "eval", "no_grad"])
def test_multihead_attention(name, batch_first, need_weights, mode):
    torch.manual_seed(0)
    mha = nn.MultiheadAttention(16, 2, batch_first=batch_first).train(mode == "train")
    nn.init.normal_(mha.in_proj_weight, std=0.5)
    nn.init.normal_(mha.in_proj_bias)
    x = randn(3, 6, 16) if batch_first else randn(3, 6, 16).transpose(0, 1)
    masks = MHA_MASKS[name]

    def run():
        with torch.set_grad_enabled(mode != "no_grad"):
            return mha(x, x, x, **masks, need_weights=need_weights)

    plain, (seen, monitor) = run(), watched(run)
    assert torch.equal(plain[0], seen[0])
    assert plain[1] is None if seen[1] is None else torch.equal(plain[1], seen[1])
    assert monitor.calls == 1

    weights = per_head_weights(mha, x, x, x, **masks)
    allowed = np.ones(weights.shape, bool)
    if masks.get("attn_mask") is CAUSAL:
        allowed &= ~CAUSAL.numpy()
    if "key_padding_mask" in masks:
        allowed &= ~padding().numpy()[:, None, None]
        allowed &= ~padding().numpy()[:, None, :, None]  # padded queries are left out too
    heads = expected_weights(weights, allowed)
    assert_rows(monitor.rows, heads)


def test_scores_of_multihead_attention():
    mha = nn.MultiheadAttention(16, 2, batch_first=True)
    x = randn(3, 6, 16)
    q, k, _ = F.linear(x, mha.in_proj_weight, mha.in_proj_bias).unflatten(-1, (3, 2, 8)).unbind(2)
    arrays = [z.transpose(1, 2).detach().double().numpy() for z in (q, k, k)]
    steps = attention_steps(*arrays)
    _, monitor = watched(lambda: mha(x, x, x))
    assert_rows(monitor.rows, expected(steps.scaled, steps.weights, True))
    assert monitor.rows[0].scale == pytest.approx(1 / math.sqrt(8))


@pytest.mark.parametrize("extra", [{}, {"add_bias_kv": True}, {"add_zero_attn": True},
                                   {"add_bias_kv": True, "add_zero_attn": True}])  # fmt: skip
@pytest.mark.parametrize("masked", [False, True])
def test_cross_attention_with_extra_keys(extra, masked):
    torch.manual_seed(0)
    mha = nn.MultiheadAttention(16, 2, kdim=10, vdim=12, batch_first=True, **extra)
    query, key, value = randn(3, 4, 16), randn(3, 6, 10, seed=1), randn(3, 6, 12, seed=2)
    masks = {"key_padding_mask": padding(), "attn_mask": CAUSAL[:4]} if masked else {}
    _, monitor = watched(lambda: mha(query, key, value, **masks))
    weights = per_head_weights(mha, query, key, value, **masks)
    allowed = np.ones(weights.shape, bool)
    if masked:
        allowed[..., :6] = ~(padding()[:, None, None] | CAUSAL[:4]).numpy()
    heads = expected_weights(weights, allowed)
    assert_rows(monitor.rows, heads)
    assert monitor.rows[0].T_k == 6 + len(extra)


def test_multihead_attention_without_a_batch():
    mha = nn.MultiheadAttention(16, 2)
    x = randn(6, 16)
    mask = padding()[1]
    _, monitor = watched(lambda: mha(x, x, x, key_padding_mask=mask))
    weights = per_head_weights(mha, x, x, x, key_padding_mask=mask)
    allowed = ~mask.numpy() & ~mask.numpy()[:, None]
    heads = expected_weights(weights, allowed)
    assert_rows(monitor.rows, heads)


def test_a_wrong_hint_counts_where_torch_believes_it():
    """Without weights and padding torch takes is_causal=True for the mask, with them not."""
    mha, x = nn.MultiheadAttention(16, 2, batch_first=True), randn(3, 6, 16)
    run = functools.partial(mha, x, x, x, is_causal=True, attn_mask=torch.zeros(6, 6).bool())
    _, believed = watched(lambda: run(need_weights=False))
    _, masked = watched(lambda: run(need_weights=True))
    assert (believed.rows[0].rows, masked.rows[0].rows) == (15, 18)


def test_multihead_attention_in_half_precision():
    mha = nn.MultiheadAttention(16, 2, batch_first=True).bfloat16()
    x = randn(2, 5, 16, dtype=torch.bfloat16)
    _, monitor = watched(lambda: mha(x, x, x))
    weights = per_head_weights(mha, x, x, x)
    entropy = normalized_entropy(weights / weights.sum(-1, keepdims=True)).mean((0, 2))
    assert [row.entropy for row in monitor.rows] == pytest.approx(list(entropy), abs=5e-3)


def test_the_function_behind_the_module():
    mha = nn.MultiheadAttention(16, 2)
    x = randn(6, 3, 16)
    run = lambda: F.multi_head_attention_forward(  # noqa: E731
        x, x, x, 16, 2, mha.in_proj_weight, mha.in_proj_bias, None, None, False, 0.0,
        mha.out_proj.weight, mha.out_proj.bias, key_padding_mask=padding(), need_weights=False,
    )  # fmt: skip
    plain, (seen, by_function) = run(), watched(run)
    assert torch.equal(plain[0], seen[0])
    _, by_module = watched(lambda: mha(x, x, x, key_padding_mask=padding()))
    assert by_function.calls == 1  # and not once more for the kernel it calls
    for a, b in zip(by_function.rows, by_module.rows, strict=True):
        assert (a.entropy, a.score_std, a.rows) == (b.entropy, b.score_std, b.rows)


# ── nn.TransformerEncoder ────────────────────────────────────────────────────────────────────────


def numbers(monitor):
    names = ("layer", "head", "rows", "entropy", "largest_weight", "score_std", "score_std_pooled")
    return [[getattr(row, name) for name in names] for row in monitor.rows]


def test_the_first_layer_of_an_encoder_by_hand():
    """Its first attention is that of its own nn.MultiheadAttention on the input."""
    model, x = encoder().eval(), randn(3, 6, 16)
    weights = per_head_weights(model.layers[0].self_attn, x, x, x, key_padding_mask=padding())
    allowed = ~padding().numpy()[:, None, None] & ~padding().numpy()[:, None, :, None]
    heads = expected_weights(weights, allowed)
    with torch.no_grad():
        _, monitor = watched(lambda: model(x, src_key_padding_mask=padding()))
    assert_rows(monitor.rows[:2], heads)


@pytest.mark.parametrize("masks", [{}, {"src_key_padding_mask": padding()}, {"mask": CAUSAL},
                                   {"mask": CAUSAL, "src_key_padding_mask": padding()}],
                         ids=["none", "padding", "causal", "both"])  # fmt: skip
@pytest.mark.parametrize("norm_first", [False, True])
@pytest.mark.filterwarnings("ignore:enable_nested_tensor")
def test_an_encoder_on_each_of_its_paths(masks, norm_first):
    model, x = encoder(norm_first=norm_first), randn(3, 6, 16)
    _, trained = watched(lambda: model(x, **masks))
    model.eval()
    plain, (seen, evaluated) = model(x, **masks), watched(lambda: model(x, **masks))
    assert torch.equal(plain, seen)
    with torch.no_grad():
        plain, (seen, fast) = model(x, **masks), watched(lambda: model(x, **masks))
    assert torch.equal(plain, seen)
    assert {row.kind for row in trained.rows + evaluated.rows} == {"MultiheadAttention"}
    assert {row.kind for row in fast.rows} == {"TransformerEncoderLayer"}
    assert {row.layer for row in fast.rows} == {"layers.0.self_attn", "layers.1.self_attn"}
    for one in (evaluated, fast):
        for a, b in zip(numbers(trained), numbers(one), strict=True):
            assert a[:3] == b[:3]
            assert a[3:] == pytest.approx(b[3:], abs=1e-5)
    assert trained.rows[0].rows == (12 - ("mask" in masks) * 3 if "src_key_padding_mask" in masks
                                    else 18 - ("mask" in masks) * 3)  # fmt: skip


def test_the_nested_path_was_taken(monkeypatch):
    """Where it is, torch puts zeros at padded positions; with any mode on, it does not."""
    model, x = encoder().eval(), randn(3, 6, 16)
    with torch.no_grad():
        out, monitor = watched(lambda: model(x, src_key_padding_mask=padding()))
    assert (out[padding()] == 0).all()
    assert monitor.rows[0].rows == 12


@pytest.mark.filterwarnings("ignore:The PyTorch API of nested tensors")
@pytest.mark.filterwarnings("ignore:enable_nested_tensor")
@pytest.mark.parametrize("norm_first", [False, True])
def test_nested_inputs_of_a_layer_and_of_its_attention(norm_first):
    layer, x = encoder(norm_first=norm_first).layers[0].eval(), randn(3, 6, 16)
    nested = torch.nested.nested_tensor([x[0, :6], x[1, :4], x[2, :2]])
    with torch.no_grad():
        plain = layer(nested)
        seen, monitor = watched(lambda: layer(nested))
        assert all(torch.equal(a, b) for a, b in zip(plain.unbind(), seen.unbind(), strict=True))
        _, padded = watched(lambda: layer(x, src_key_padding_mask=padding()))
        for a, b in zip(numbers(padded), numbers(monitor), strict=True):
            assert a == pytest.approx(b, abs=1e-6)
        attention = layer.self_attn
        _, alone = watched(lambda: attention(nested, nested, nested, need_weights=False))
    assert [row.rows for row in alone.rows] == [12, 12]


def test_an_encoder_of_layers_that_are_not_torchs():
    class Own(nn.TransformerEncoderLayer):
        def forward(self, src, src_mask=None, src_key_padding_mask=None, is_causal=False):
            q = src[:, None]
            return src + F.scaled_dot_product_attention(q, q, q)[:, 0]

    model = nn.TransformerEncoder(
        Own(16, 2, 32, batch_first=True), 2, enable_nested_tensor=False
    ).eval()
    with torch.no_grad():
        _, monitor = watched(lambda: model(randn(2, 5, 16)))
    assert [(row.layer, row.kind) for row in monitor.rows] == [
        ("layers.0", "sdpa"),
        ("layers.1", "sdpa"),
    ]


def test_a_whole_transformer_names_its_layers():
    torch.manual_seed(0)
    model = nn.Transformer(16, 2, 1, 1, 32, batch_first=True).eval()
    src, tgt = randn(2, 6, 16), randn(2, 4, 16)
    run = lambda: model(src, tgt, tgt_mask=CAUSAL[:4, :4], tgt_is_causal=True)  # noqa: E731
    with torch.no_grad():
        plain, (seen, monitor) = run(), watched(run)
    assert torch.equal(plain, seen)
    assert [(row.layer, row.T_q, row.T_k, row.rows) for row in monitor.rows if row.head == 0] == [
        ("encoder.layers.0.self_attn", 6, 6, 12),
        ("decoder.layers.0.self_attn", 4, 4, 6),
        ("decoder.layers.0.multihead_attn", 4, 6, 8),
    ]


# ── which call, which layer ──────────────────────────────────────────────────────────────────────


def test_layers_calls_and_models_are_told_apart():
    one, two, x = Net(), Net(1), randn(2, 6, 16)
    with AttentionMonitor() as monitor:
        one(x)
        two(x)
        one(x)
        F.scaled_dot_product_attention(x, x, x)
    firsts = [(row.call, row.model, row.layer) for row in monitor.rows if row.head == 0]
    assert firsts == [
        (1, "Net", "blocks.0"), (2, "Net", "blocks.1"), (3, "Net (2)", "blocks.0"),
        (4, "Net", "blocks.0"), (5, "Net", "blocks.1"), (6, "", "call 6"),
    ]  # fmt: skip
    assert monitor.calls == 6
    table = monitor.table()
    assert list(zip(table.layer, table.head, table.calls)) == [
        ("Net: blocks.0", 0, 2), ("Net: blocks.0", 1, 2), ("Net: blocks.1", 0, 2),
        ("Net: blocks.1", 1, 2), ("Net (2): blocks.0", 0, 1), ("Net (2): blocks.0", 1, 1),
        ("call 6", 0, 1),
    ]  # fmt: skip


def test_a_module_that_attends_twice():
    class Twice(nn.Module):
        def forward(self, x):
            return bound_before(bound_before(x, x, x), x, x)

    shared = Twice()
    model, x = nn.Sequential(shared, nn.Sequential(shared)), randn(1, 1, 3, 4)
    with AttentionMonitor() as monitor:
        model(x)
        model(x)
    assert [row.layer for row in monitor.rows] == ["0", "0 #2", "0 #3", "0 #4"] * 2
    _, alone = watched(lambda: shared(x))
    assert [row.layer for row in alone.rows] == ["Twice", "Twice #2"]


def test_every_so_many_calls_of_each_layer():
    net, x = Net(), randn(2, 6, 16)
    with AttentionMonitor(every=3) as monitor:
        for _ in range(7):
            net(x)
    assert monitor.calls == 14
    assert [row.call for row in monitor.rows if row.head == 0] == [1, 2, 7, 8, 13, 14]
    with AttentionMonitor(every=2) as outside:
        for _ in range(3):
            F.scaled_dot_product_attention(x, x, x)
    assert [row.call for row in outside.rows] == [1, 3]


@pytest.mark.parametrize(("every", "error"), [(0, ValueError), (1.5, TypeError), (True, TypeError)])
def test_every_must_be_a_number_from_one(every, error):
    with pytest.raises(error, match="every is"):
        AttentionMonitor(every=every)


def test_a_table_line_is_the_mean_of_all_rows():
    x, y = randn(2, 1, 3, 8), 9 * randn(1, 1, 7, 8, seed=1)
    layer = Attend.__new__(Attend)
    nn.Module.__init__(layer)
    layer.forward = lambda z: F.scaled_dot_product_attention(z, z, z)
    with AttentionMonitor() as monitor:
        layer(x)
        layer(y)
    one, two = monitor.rows
    (line,) = monitor.table().rows()
    assert (one.rows, two.rows) == (6, 7)
    assert line["entropy"] == pytest.approx((6 * one.entropy + 7 * two.entropy) / 13)
    assert line["score_std"] ** 2 == pytest.approx(
        (6 * one.score_std**2 + 7 * two.score_std**2) / 13
    )
    assert (line["T_q"], line["T_k"], line["calls"]) == ("3–7", "3–7", 2)


def test_weights_are_kept_up_to_a_limit(monkeypatch):
    q = randn(2, 3, 5, 4)
    monkeypatch.setattr(records, "KEPT_WEIGHTS", 4 * 2 * 3 * 5 * 5)
    with AttentionMonitor(keep_weights=True) as monitor:
        F.scaled_dot_product_attention(q, q, q)
        F.scaled_dot_product_attention(q, q, q)
    assert [row.weights is not None for row in monitor.rows] == [True] * 3 + [False] * 3
    assert monitor.rows[0].weights.shape == (2, 5, 5)
    assert "weights of call 2 were not kept" in monitor.unseen[0]
    _, without = watched(lambda: F.scaled_dot_product_attention(q, q, q))
    assert without.rows[0].weights is None


# ── entering, leaving, failing ───────────────────────────────────────────────────────────────────


class Fails(nn.Module):
    def __init__(self, inner):
        super().__init__()
        self.inner = inner

    def forward(self, x):
        self.inner(x)
        raise KeyError("a model's own mistake")


@pytest.mark.parametrize(
    "inner", [Net(), nn.Identity(), encoder(1)], ids=["net", "none", "encoder"]
)
def test_an_exception_leaves_nothing_behind(inner):
    with pytest.raises(KeyError, match="own mistake"), AttentionMonitor() as monitor:
        Fails(inner)(randn(2, 6, 16))
    assert unwatched()
    Net(1)(randn(2, 6, 16))
    assert monitor.calls == {Net: 2, nn.Identity: 0, nn.TransformerEncoder: 1}[type(inner)]


def test_after_an_exception_inside_the_block_it_goes_on():
    net, x = Net(1), randn(2, 6, 16)
    with AttentionMonitor() as monitor:
        with pytest.raises(AssertionError, match="embedding dimension"):
            encoder(1)(randn(2, 6, 15))  # fails where the mode is off
        with pytest.raises(RuntimeError):
            F.scaled_dot_product_attention(x, x[..., :3], x)
        net(x)
    assert [row.layer for row in monitor.rows] == ["blocks.0", "blocks.0"]
    assert monitor.calls == 1


def test_monitors_nest():
    model, x = nn.Sequential(Net(1), encoder(1)).eval(), randn(2, 6, 16)
    with torch.no_grad():
        plain = model(x)
        with AttentionMonitor() as outer:
            with AttentionMonitor() as inner:
                seen = model(x)
            model(x)
            F.scaled_dot_product_attention(x, x, x)
    assert torch.equal(plain, seen)
    assert (inner.calls, outer.calls) == (2, 5)
    assert numbers(inner) == numbers(outer)[:4]
    assert inner.rows[2].kind == "TransformerEncoderLayer"


def test_one_monitor_can_watch_again_but_not_twice_at_once():
    x = randn(1, 1, 3, 4)
    with AttentionMonitor() as monitor:
        F.scaled_dot_product_attention(x, x, x)
        with pytest.raises(RuntimeError, match="watching already"):
            monitor.__enter__()
        F.scaled_dot_product_attention(x, x, x)
    F.scaled_dot_product_attention(x, x, x)
    with monitor:
        F.scaled_dot_product_attention(x, x, x)
    assert [row.call for row in monitor.rows] == [1, 2, 3]


class Lists(torch.overrides.TorchFunctionMode):
    """Somebody else's mode."""

    def __init__(self):
        super().__init__()
        self.seen = []

    def __torch_function__(self, func, types, args=(), kwargs=None):
        self.seen.append(func)
        return func(*args, **(kwargs or {}))


def test_other_modes_keep_their_place_and_see_nothing_new():
    model, x = nn.Sequential(encoder(1), Net(1)).eval(), randn(2, 6, 16)
    with Lists() as alone, Lists():
        model(x)
    with Lists() as below, AttentionMonitor() as monitor, Lists() as above:
        stack = torch.overrides._get_current_function_mode_stack()
        model(x)
        assert torch.overrides._get_current_function_mode_stack() == stack
        assert (stack[0], stack[2]) == (below, above)
    assert below.seen == above.seen == alone.seen
    assert monitor.calls == 2


def test_a_dispatch_mode_sees_nothing_new():
    """Selective checkpoints, for one, count the operations of a block."""

    class Operations(torch.utils._python_dispatch.TorchDispatchMode):
        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            seen.append(func)
            return func(*args, **(kwargs or {}))

    model, x = nn.Sequential(encoder(1), Net(1)), randn(2, 6, 16)
    lists = []
    for context in (Operations(), AttentionMonitor()):
        seen = []
        with context, Operations():
            model(x)
        lists.append(seen)
    assert len(lists[0]) == 2 * len(lists[1]) > 0  # the first time two of them listed each


def test_other_threads_are_neither_seen_nor_disturbed():
    net, x, results = nn.Sequential(Net(1), encoder(1)), randn(2, 6, 16), []
    plain = net(x)
    with AttentionMonitor() as monitor:
        thread = threading.Thread(target=lambda: results.append(net(x)))
        thread.start()
        thread.join()
        net(x)
    assert torch.equal(results[0], plain)
    assert [row.layer for row in monitor.rows if row.head == 0] == [
        "0.blocks.0", "1.layers.0.self_attn"
    ]  # fmt: skip
    assert monitor._modules.running == []


@pytest.mark.filterwarnings("ignore:`torch.jit.trace` is deprecated")
def test_what_cannot_be_recorded_is_said_and_breaks_nothing():
    x = randn(2, 2, 3, 4)
    attend = lambda a: F.scaled_dot_product_attention(a, a, a)  # noqa: E731
    with AttentionMonitor() as monitor:
        mapped = torch.vmap(attend)(x)
        attend(x.to("meta"))
        torch.jit.trace(attend, x, check_trace=False)
    assert torch.equal(mapped, torch.vmap(attend)(x))
    assert "torch.func" in monitor.unseen[0]
    assert "meta" in monitor.unseen[1]
    assert monitor.rows == []
    assert "Unseen" not in str(monitor)
    assert all(sentence in str(monitor) for sentence in monitor.unseen)


def test_a_tensor_that_is_two_is_not_recorded():
    from torch.testing._internal.two_tensor import TwoTensor

    x = TwoTensor(randn(1, 2, 3, 4), randn(1, 2, 3, 4))
    _, monitor = watched(lambda: F.scaled_dot_product_attention(x, x, x))
    assert monitor.unseen == ["call 1 was not recorded: its tensors are of class TwoTensor."]


def test_a_failing_monitor_lets_the_model_go_on(monkeypatch):
    def fail(*_):
        raise MemoryError("no room")

    monkeypatch.setattr(records, "statistics", fail)
    net, x = Net(1), randn(2, 6, 16)
    out, monitor = watched(lambda: net(x))
    assert torch.equal(out, net(x))
    assert monitor.unseen == ["blocks.0 was not recorded: MemoryError: no room."]


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
@pytest.mark.filterwarnings("ignore:Using `torch.compile")
def test_a_compiled_model_works_and_is_named(backend):
    torch._dynamo.reset()
    model, x = encoder(1).eval(), randn(2, 6, 16)
    compiled = torch.compile(model, backend=backend)
    with torch.no_grad():
        out, monitor = watched(lambda: compiled(x))
        torch.testing.assert_close(out, model(x))
    assert monitor.calls == 0
    said = "TransformerEncoder is compiled: the attention inside it is not seen."
    assert [words.startswith(said) for words in monitor.unseen] == [True]
    assert "0 attention calls" in str(monitor)


def test_a_part_compiled_in_place_works():
    """torch 2.13's compiler mixed values up under a mode that asked is_compiling() first."""
    torch._dynamo.reset()
    model, x = nn.Sequential(encoder(1).layers[0], Net(1)).eval(), randn(2, 6, 16)
    with torch.no_grad():
        plain = model(x)
        model[0].compile(backend="eager")
        out, monitor = watched(lambda: model(x))
    torch.testing.assert_close(out, plain)
    assert "1.blocks.0" in {row.layer for row in monitor.rows}


# ── in words ─────────────────────────────────────────────────────────────────────────────────────


def attend(scale=None, size=1.0, shrink=1.0, T=64, d=128, heads=2):
    q, k = size * shrink * randn(2, heads, T, d), size * randn(2, heads, T, d, seed=1)
    return watched(lambda: F.scaled_dot_product_attention(q, k, k, scale=scale))[1]


def test_a_healthy_attention_gives_no_warning():
    assert attend().warnings == []


def test_a_missing_scale_is_said():
    words = attend(scale=1.0).warnings[0]
    assert words.startswith("call 1: scale 1.0 at d_head 128: is 1/√d_head missing?")
    assert "cannot be seen" in words


@pytest.mark.parametrize(
    ("scale", "sentence"),
    [
        (1 / 128, "that is 1/d_head, as muP has it. Is the root missing?"),
        (math.sqrt(128), "that is √d_head. Multiplied where it should divide?"),
        (1 / 16, "Is it 1/√d_model, not 1/√d_head?"),
        (0.5, "the usual one is 1/√d_head = 0.08839"),
    ],
)
def test_other_scales_are_named(scale, sentence):
    assert sentence in attend(scale=scale).warnings[0]


def test_a_query_that_was_scaled_before_is_guessed():
    monitor = attend(scale=1.0, shrink=128**-0.5)
    (words,) = monitor.warnings
    assert "q was probably scaled before the call; that cannot be known from outside" in words
    assert monitor.rows[0].scale_estimate == pytest.approx(128**-0.5, rel=0.05)
    assert attend().rows[0].scale_estimate == pytest.approx(128**-0.5, rel=0.05)


def test_collapsed_heads_are_named_and_explained():
    q, k = randn(1, 3, 64, 8), randn(1, 3, 64, 8, seed=1)
    q[:, [0, 2]] *= 200
    _, monitor = watched(lambda: F.scaled_dot_product_attention(q, k, k))
    (words,) = monitor.warnings
    assert words.startswith("call 1: heads 0, 2 collapsed: normalised entropy 0.0")
    assert "64^0.1 = 1.5" in words
    assert "√(2 ln 64) = 2.9" in words


def test_heads_that_copy_one_position_are_not_called_saturated():
    # One score of 8 among 64 zeros: a deviation of 1, a weight of 0.98.
    q = 8 * torch.eye(64)[None, None]
    k = torch.eye(64)[None, None]
    _, monitor = watched(lambda: F.scaled_dot_product_attention(q, k, k, scale=1.0))
    assert "single keys stand out, as in a head that copies one position" in monitor.warnings[-1]


def test_uniform_heads_are_explained():
    (words,) = attend(size=0.3).warnings
    assert words.startswith("call 1: all 2 heads went uniform: normalised entropy 0.999")
    assert "applied twice" not in words
    (twice,) = attend(shrink=128**-0.5).warnings
    assert twice.endswith("is the scale applied twice?")


def test_long_rows_near_uniform_whose_scores_differ_give_no_warning():
    monitor = attend(size=0.6, T=4096, heads=1)
    assert monitor.rows[0].entropy > 0.99
    assert monitor.rows[0].score_std > 0.3
    assert monitor.warnings == []


def test_nan_is_said():
    q = randn(1, 2, 4, 8)
    q[0, 1, 2, 3] = torch.nan
    _, monitor = watched(lambda: F.scaled_dot_product_attention(q, q, q))
    (words,) = monitor.warnings
    assert words.startswith("call 1: head 1 met scores that are nan")
    assert math.isnan(monitor.rows[1].entropy)
    assert not math.isnan(monitor.rows[0].entropy)


def test_overflow_to_infinity_is_said():
    q = torch.full((1, 1, 4, 8), 3e20)
    _, monitor = watched(lambda: F.scaled_dot_product_attention(q, q, q))
    assert "did q or k overflow?" in monitor.warnings[0]


def test_many_layers_share_one_sentence():
    net = Net(5, scale=1.0)
    _, monitor = watched(lambda: net(randn(2, 6, 16)))
    (words,) = [w for w in monitor.warnings if "scale 1.0" in w]
    assert words.startswith("blocks.0, blocks.1, blocks.2 and 2 more: scale 1.0 at d_head 8")


def heads(*sizes):
    """A call whose heads have scores of these sizes."""
    size = torch.tensor(sizes)[:, None, None]
    return lambda: F.scaled_dot_product_attention(*[randn(1, len(sizes), 64, 8) * size] * 3)


def test_layers_with_the_same_warning_share_a_sentence():
    run = heads(1.0, 15.0)
    (words,) = watched(lambda: [run() for _ in range(5)])[1].warnings
    assert words.startswith("call 1, call 2, call 3 and 2 more: head 1 of each collapsed")
    runs = [heads(1.0, *[15.0 if i & 1 << bit else 1.0 for bit in range(4)]) for i in range(1, 7)]
    (words,) = watched(lambda: [run() for run in runs])[1].warnings
    assert words.startswith("call 1, call 2, call 3 and 3 more: 9 of their 30 heads collapsed")
    (words,) = watched(heads(1.0, *[15.0] * 9))[1].warnings
    assert words.startswith("call 1: 9 of 10 heads collapsed")


def test_nothing_that_is_printed_is_wider_than_a_page():
    few, many = heads(*[15.0] * 16), Net(5, d=64, heads=16, scale=1.0)
    for run in (few, lambda: many(randn(2, 6, 64))):
        monitor = watched(run)[1]
        assert max(map(len, str(monitor).splitlines())) <= 100
        assert all(words in " ".join(str(monitor).split()) for words in monitor.warnings)


def test_a_long_name_loses_its_beginning_in_print_only():
    net = nn.Sequential()
    net.add_module("a_name_of_more_than_thirty_characters", Net(2))
    _, monitor = watched(lambda: net(randn(2, 6, 16)))
    assert monitor.table().layer[3] == "a_name_of_more_than_thirty_characters.blocks.1"
    lines = str(monitor).splitlines()
    assert lines[5].startswith("…an_thirty_characters.blocks.1     1")
    assert len(lines[5]) <= 107


def test_a_large_model_prints_a_line_for_each_layer():
    net = Net(5, d=64, heads=16)
    _, monitor = watched(lambda: net(randn(2, 6, 64)))
    _, head, *lines = str(monitor).splitlines()
    assert head.split()[:3] == ["layer", "heads", "d_head"]
    assert [line.split()[:3] for line in lines[:5]] == [
        [f"blocks.{i}", "16", "4"] for i in range(5)
    ]
    values = [row.entropy for row in monitor.rows[:16]]
    assert f"{min(values):.3f} to {max(values):.3f}" in lines[0]
    assert lines[5].startswith("Ranges are over the heads of a layer")
    assert len(monitor.table()) == 80
    assert monitor._repr_html_().count("<tr>") == 6


def test_a_notebook_shows_the_same_as_html():
    monitor = attend(scale=1.0)
    page = ET.fromstring(monitor._repr_html_())
    shown = " ".join(page.itertext())
    assert "1 attention call seen, 1 recorded" in shown
    assert f"{monitor.rows[0].entropy:.3f}" in shown
    assert all(f"Warning. {words}" in " ".join(shown.split()) for words in monitor.warnings)
    assert watched(lambda: None)[1]._repr_html_() is None


def test_it_prints_a_table_the_same_way_every_time():
    texts = []
    for _ in range(2):
        torch.manual_seed(0)
        net = Net()
        _, monitor = watched(lambda: net(randn(2, 6, 16)))  # noqa: B023
        texts.append(str(monitor))
    assert texts[0] == texts[1] == repr(monitor)
    first, head, *lines = texts[0].splitlines()
    assert first == "2 attention calls seen, 2 recorded"
    assert head.split()[:4] == ["layer", "head", "calls", "T_q"]
    assert [line.split()[:2] for line in lines] == [
        ["blocks.0", "0"], ["blocks.0", "1"], ["blocks.1", "0"], ["blocks.1", "1"]
    ]  # fmt: skip
    assert f"{monitor.rows[3].entropy:.3f}" in lines[3]


def test_nothing_seen_says_what_to_do():
    _, monitor = watched(lambda: None)
    assert str(monitor).startswith("0 attention calls seen, none recorded. Run the model")
    for method in (monitor.table, monitor.picture):
        with pytest.raises(ValueError, match="in the same thread, not compiled"):
            method()


# ── the picture ──────────────────────────────────────────────────────────────────────────────────


def texts(svg):
    return ["".join(e.itertext()) for e in ET.fromstring(svg).findall(".//{*}text")]


def test_the_picture_shows_every_head():
    q, k = randn(1, 3, 64, 8), randn(1, 3, 64, 8, seed=1)
    with AttentionMonitor() as monitor:
        F.scaled_dot_product_attention(q * torch.tensor([1, 5, 200])[:, None, None], k, k)
        F.scaled_dot_product_attention(q[:, :1], k[:, :1], k[:, :1])
    figure = monitor.picture()
    shown = texts(figure.svg)
    for row in monitor.rows:
        assert f"{row.entropy:.2f}" in shown
    assert {"call 1", "call 4"} - set(shown) == {"call 4"}
    assert shown.count("–") == 2  # the second call has one head
    assert "below 0.1: collapsed" in shown
    cells = [f"{row.entropy:.2f}" for row in monitor.rows]
    assert figure.words.splitlines()[1] == "call 1: " + " ".join(cells[:3])
    assert figure.words.splitlines()[2] == f"call 2: {cells[3]} – –"
    assert ET.fromstring(figure.svg).find("{*}desc").text == figure.words


def test_without_collapsed_heads_the_picture_does_not_explain_the_mark():
    assert "below 0.1: collapsed" not in texts(attend().picture().svg)


def test_cividis_is_close_to_matplotlibs_and_grows_lighter():
    theirs = matplotlib.colormaps["cividis"]
    last = -1.0
    for amount in np.linspace(0, 1, 101):
        ours = np.array([int(cividis(amount)[i : i + 2], 16) for i in (1, 3, 5)])
        assert np.abs(ours - 255 * np.array(theirs(amount)[:3])).max() < 9
        lightness = ours @ [0.21, 0.72, 0.07]
        assert lightness > last
        last = lightness
        assert contrast(cividis(amount), ink_on(cividis(amount))) >= 4.5
    assert cividis(-1) == cividis(0)
    assert cividis(2) == cividis(1)


def test_a_wide_heatmap_keeps_its_numbers_apart():
    values = np.full((1, 40), 0.87)
    figure = heatmap(
        values, rows=["a." * 40], columns=[str(i) for i in range(40)], title="t", words="w"
    )
    root = ET.fromstring(figure.svg)
    cells = [e for e in root.findall(".//{*}rect") if e.get("height") == "28"]
    xs = sorted(float(e.get("x")) for e in cells)
    assert len(xs) == 40
    assert min(np.diff(xs)) >= 34
    assert xs[-1] + 34 <= float(root.get("viewBox").split()[2])
    assert any(text.startswith("…") and text.endswith("a.a.") for text in texts(figure.svg))


def test_a_wide_heatmap_has_larger_type_and_a_narrow_one_no_empty_half():
    def drawn(values):
        names = [str(i) for i in range(values.size)]
        figure = heatmap(values[None], rows=["a"], columns=names, title="t", words="w")
        root = ET.fromstring(figure.svg)
        sizes = {e.text: float(e.get("font-size")) for e in root.findall(".//{*}text")}
        return float(root.get("viewBox").split()[2]), sizes

    narrow, sizes = drawn(np.array([0.87, 1.0]))
    assert narrow < 500
    assert sizes["0.87"] == 12
    wide, sizes = drawn(np.r_[np.full(39, 0.87), 1.0])
    assert sizes[".87"] * 900 / wide > 9.5
    assert sizes["1.0"] == sizes[".87"]


@pytest.mark.parametrize(
    ("changes", "words"),
    [({"rows": ["a", "b"]}, "2 row"), ({"columns": []}, "0 column"), ({"high": 0.0}, "below high")],
)
def test_a_heatmap_that_does_not_fit_is_refused(changes, words):
    arguments = {"rows": ["a"], "columns": ["0", "1"], "title": "t", "words": "w", **changes}
    with pytest.raises(ValueError, match=words):
        heatmap([[0.1, 0.2]], **arguments)
