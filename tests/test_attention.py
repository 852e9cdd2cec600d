"""The mathematics as taught: against numbers done by hand, against PyTorch, and at its edges."""

import fractions
import math
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
import torch
from hypothesis import example, given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.nn.attention.bias import causal_lower_right, causal_upper_left

from helpers.attention import (
    AttentionSteps,
    attention_steps,
    causal_mask,
    entropy,
    normalized_entropy,
    scaled_dot_product_attention,
    softmax,
)

pytestmark = pytest.mark.filterwarnings("error::RuntimeWarning")

INF, NAN = math.inf, math.nan
repeatable = settings(derandomize=True, deadline=None, max_examples=100)
briefly = settings(derandomize=True, deadline=None, max_examples=50)


# --- The reference and the inputs --------------------------------------------------------------


def torch_attention(query, key, value, attn_mask=None, **options):
    """PyTorch's own answer, by the backend that follows the formula (others differ on nan)."""
    tensors = [torch.from_numpy(np.array(x)) for x in (query, key, value)]
    if attn_mask is not None:
        options["attn_mask"] = torch.from_numpy(np.array(attn_mask))
    with sdpa_kernel(SDPBackend.MATH):
        return torch.nn.functional.scaled_dot_product_attention(*tensors, **options).numpy()


def assert_agrees(query, key, value, atol=1e-12, **options):
    ours = scaled_dot_product_attention(query, key, value, **options)
    theirs = torch_attention(query, key, value, **options)
    assert ours.shape == theirs.shape
    assert ours.dtype == theirs.dtype
    np.testing.assert_allclose(ours, theirs, rtol=atol, atol=atol, equal_nan=True)
    return ours


def normal(*shape, seed=0):
    return np.random.default_rng(seed).standard_normal(shape)


@st.composite
def inputs(draw, grouped=False):
    """query, key, value whose leading axes broadcast, and the shape of their scores."""
    fit_together = hnp.mutually_broadcastable_shapes(num_shapes=3, max_dims=3, max_side=3)
    lead_q, lead_k, lead_v = draw(fit_together).input_shapes
    lead = np.broadcast_shapes(lead_q, lead_k)
    if grouped:
        H, H_k, H_v = draw(st.sampled_from([(6, 2, 2), (6, 3, 3), (4, 1, 1), (4, 2, 4), (2, 2, 1)]))
        lead_q, lead_k, lead_v, lead = (*lead_q, H), (*lead_k, H_k), (*lead_v, H_v), (*lead, H)
    T_q, T_k, d_k, d_v = draw(st.tuples(*[st.integers(1, 6)] * 4))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    q = rng.standard_normal((*lead_q, T_q, d_k))
    k = rng.standard_normal((*lead_k, T_k, d_k))
    v = rng.standard_normal((*lead_v, T_k, d_v))
    return q, k, v, (*lead, T_q, T_k)


def mask_shapes(scores_shape):
    """Any shape that broadcasts to scores_shape: axes set to 1, leading ones left out."""
    keep = st.lists(st.booleans(), min_size=len(scores_shape), max_size=len(scores_shape))
    drop = st.integers(0, len(scores_shape))
    return st.builds(
        lambda keep, drop: tuple(
            n if kept else 1 for n, kept in zip(scores_shape, keep, strict=True)
        )[drop:],
        keep,
        drop,
    )


@st.composite
def masks(draw, scores_shape):
    """None, a boolean mask, or an additive one with some -inf; whole rows masked now and then."""
    kind = draw(st.sampled_from(["none", "boolean", "additive"]))
    if kind == "none":
        return None
    shape = draw(mask_shapes(scores_shape))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1), label="mask seed"))
    allowed = rng.random(shape) < draw(st.sampled_from([0.2, 0.7, 1.0]))
    return allowed if kind == "boolean" else np.where(allowed, 5 * rng.standard_normal(shape), -INF)


scales = st.none() | st.sampled_from([0, 1, -1, 0.0, 0.125, -0.3]) | st.floats(-4, 4)


# --- By hand -----------------------------------------------------------------------------------

Q = [[1, 0, 1, 0], [0, 1, 0, 1], [1, 1, 1, 0]]
K = [[1, 0, 1, 0], [0, 1, 0, 1], [1, 1, 0, 0]]
V = [[1, 0], [0, 1], [1, 1]]


def test_every_step_is_the_one_done_by_hand():
    steps = attention_steps(Q, K, V)
    np.testing.assert_array_equal(steps.scores, [[2, 0, 1], [0, 2, 1], [2, 1, 2]])
    np.testing.assert_array_equal(steps.scaled, [[1, 0, 0.5], [0, 1, 0.5], [1, 0.5, 1]])
    np.testing.assert_array_equal(
        steps.weights.round(3),
        [[0.506, 0.186, 0.307], [0.186, 0.506, 0.307], [0.384, 0.233, 0.384]],
    )
    np.testing.assert_array_equal(
        steps.output.round(3), [[0.814, 0.494], [0.494, 0.814], [0.767, 0.616]]
    )
    assert steps.scale == 0.5
    np.testing.assert_array_equal(steps.masked, steps.scaled)
    assert all(x.dtype == np.float64 for x in steps if isinstance(x, np.ndarray))


def test_the_first_fields_unpack_in_the_order_of_the_formula():
    assert AttentionSteps._fields[:5] == ("scores", "scaled", "weights", "output", "scale")
    assert isinstance(attention_steps(Q, K, V).scale, float)


def test_a_causal_example_by_hand():
    steps = attention_steps(Q, K, V, is_causal=True)
    np.testing.assert_array_equal(steps.masked, [[1, -INF, -INF], [0, 1, -INF], [1, 0.5, 1]])
    np.testing.assert_array_equal(steps.scaled, [[1, 0, 0.5], [0, 1, 0.5], [1, 0.5, 1]])
    e = math.e
    np.testing.assert_allclose(
        steps.weights[:2], [[1, 0, 0], [1 / (1 + e), e / (1 + e), 0]], atol=1e-15
    )
    np.testing.assert_allclose(steps.output[:2], [[1, 0], [1 / (1 + e), e / (1 + e)]], atol=1e-15)


def test_a_boolean_mask_says_who_may_attend():
    only_last = scaled_dot_product_attention(Q, K, V, attn_mask=[False, False, True])
    np.testing.assert_array_equal(only_last, [[1, 1]] * 3)


def test_an_additive_mask_is_not_scaled():
    mask = np.array([[0.0, 8, -INF]] * 3)
    steps = attention_steps(Q, K, V, attn_mask=mask)
    np.testing.assert_array_equal(steps.masked, [[1, 8, -INF], [0, 9, -INF], [1, 8.5, -INF]])
    np.testing.assert_array_equal(steps.weights, softmax(steps.masked))


def test_the_default_scale_is_one_over_the_root_of_d_k():
    steps = attention_steps(normal(2, 3, 5, 64), normal(2, 3, 7, 64), normal(2, 3, 7, 11))
    assert steps.scale == 0.125
    np.testing.assert_array_equal(steps.scaled, steps.scores / 8)
    assert steps.output.shape == (2, 3, 5, 11)


def test_grouped_heads_are_neighbours():
    # Keys that all look alike: each head returns the mean of its values, its key head's number.
    q, k = normal(4, 3, 8), np.zeros((2, 5, 8))
    v = np.broadcast_to(np.array([10.0, 20.0])[:, None, None], (2, 5, 1))
    out = scaled_dot_product_attention(q, k, v, enable_gqa=True)
    np.testing.assert_allclose(out[:, 0, 0], [10, 10, 20, 20])


# --- Against torch -----------------------------------------------------------------------------


@repeatable
@given(st.data())
def test_agrees_with_torch_on_shapes_masks_and_scales(data):
    q, k, v, scores_shape = data.draw(inputs())
    mask, scale = data.draw(masks(scores_shape)), data.draw(scales)
    assert_agrees(q, k, v, attn_mask=mask, scale=scale)


@repeatable
@given(inputs(), scales)
def test_agrees_with_torch_when_causal(qkv, scale):
    assert_agrees(*qkv[:3], is_causal=True, scale=scale)


@repeatable
@given(st.data())
def test_agrees_with_torch_on_grouped_heads(data):
    q, k, v, scores_shape = data.draw(inputs(grouped=True))
    options = {"attn_mask": data.draw(masks(scores_shape))}
    if options["attn_mask"] is None:
        options["is_causal"] = data.draw(st.booleans())
    assert_agrees(q, k, v, enable_gqa=True, scale=data.draw(scales), **options)


@briefly
@given(inputs(), st.sampled_from([1e4, -1e4]))
def test_agrees_with_torch_on_enormous_scores(qkv, size):
    q, k, v, _ = qkv
    assert_agrees(q * size, k, v, atol=1e-9, scale=1.0)


@pytest.mark.parametrize("sign", [1, -1])
def test_scores_of_ten_thousand_neither_overflow_nor_vanish(sign):
    q, k = np.full((2, 1), 100.0), sign * np.array([[100.0], [99.99], [50.0]])
    out = assert_agrees(q, k, np.eye(3), atol=1e-9, scale=1.0)
    first, second = (1 / (1 + math.exp(-1)), 1 / (1 + math.e)) if sign == 1 else (0, 0)
    np.testing.assert_allclose(out[0], [first, second, 0 if sign == 1 else 1], atol=1e-9)


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize(("T_q", "T_k"), [(65, 130), (130, 65), (128, 128)])
def test_agrees_with_torch_at_a_usual_size(T_q, T_k, causal):
    q, k, v = normal(2, 4, T_q, 64), normal(2, 4, T_k, 64, seed=1), normal(2, 4, T_k, 48, seed=2)
    assert_agrees(q, k, v, is_causal=causal)


@settings(repeatable, max_examples=200)
@given(st.data())
def test_accepts_exactly_the_shapes_that_torch_accepts(data):
    """Shapes that nearly fit, with and without a mask: both answer alike, or both refuse."""
    q, k, v, scores_shape = data.draw(inputs(grouped=data.draw(st.booleans())))
    shapes = [list(x) for x in (q.shape, k.shape, v.shape, data.draw(mask_shapes(scores_shape)))]
    side = st.integers(
        1, 4
    )  # torch looks hardly at empty shapes, so those have a test of their own
    for shape in data.draw(st.lists(st.sampled_from(shapes), max_size=2), label="changed"):
        change = data.draw(st.sampled_from(["replace", "replace", "insert", "delete"]))
        at = data.draw(st.integers(0, max(len(shape) - 1, 0)))
        if change == "insert" or not shape:
            shape.insert(at, data.draw(side))
        elif change == "delete":
            del shape[at]
        else:
            shape[at] = data.draw(side)
    q, k, v, mask = (normal(*shape, seed=i) for i, shape in enumerate(shapes))
    options = {
        "enable_gqa": data.draw(st.booleans(), label="enable_gqa"),
        "attn_mask": data.draw(st.sampled_from([None, mask, mask > 0])),
    }
    try:
        expected = torch_attention(q, k, v, **options)
    except (RuntimeError, IndexError):
        with pytest.raises(ValueError, match=r"shape|must agree|heads"):
            scaled_dot_product_attention(q, k, v, **options)
    else:
        ours = scaled_dot_product_attention(q, k, v, **options)
        assert ours.shape == expected.shape
        np.testing.assert_allclose(ours, expected, rtol=1e-12, atol=1e-12)


def test_the_output_of_the_steps_is_the_output_of_the_function():
    q, k, v, mask = normal(2, 3, 4), normal(2, 5, 4, seed=1), normal(2, 5, 3, seed=2), normal(3, 5)
    steps = attention_steps(q, k, v, 0.7, mask)
    np.testing.assert_array_equal(
        steps.output, scaled_dot_product_attention(q, k, v, attn_mask=mask, scale=0.7)
    )
    np.testing.assert_allclose(steps.scores, np.einsum("bqd,bkd->bqk", q, k), atol=1e-14)
    np.testing.assert_allclose(steps.masked, 0.7 * steps.scores + mask, atol=1e-14)
    np.testing.assert_allclose(
        steps.output, np.einsum("bqk,bkd->bqd", steps.weights, v), atol=1e-14
    )


# --- Nothing to attend to, nothing to attend with ----------------------------------------------


@pytest.mark.parametrize("additive", [False, True])
def test_a_fully_masked_row_gives_zeros(additive):
    mask = np.array([[True] * 5, [False] * 5, [True] * 5])
    mask = np.where(mask, 0.0, -INF) if additive else mask
    out = assert_agrees(normal(3, 4), normal(5, 4), normal(5, 2), attn_mask=mask)
    np.testing.assert_array_equal(out[1], [0, 0])
    assert (out[[0, 2]] != 0).all()


def test_queries_before_the_first_key_give_zeros():
    mask = causal_mask(4, 2, alignment="lower_right")
    out = assert_agrees(normal(4, 3), normal(2, 3), normal(2, 2), attn_mask=mask)
    np.testing.assert_array_equal(out[:2], np.zeros((2, 2)))


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize(
    ("q", "k", "v", "result"),
    [
        ((0, 4), (5, 4), (5, 2), (0, 2)),
        ((3, 4), (0, 4), (0, 2), (3, 2)),
        ((2, 3, 4), (2, 0, 4), (2, 0, 2), (2, 3, 2)),
        ((3, 4), (5, 4), (5, 0), (3, 0)),
        ((0, 3, 4), (0, 5, 4), (0, 5, 2), (0, 3, 2)),
        ((0, 3, 4), (1, 5, 4), (5, 2), (0, 3, 2)),
        ((2, 0, 3, 4), (2, 0, 5, 4), (2, 0, 5, 2), (2, 0, 3, 2)),
    ],
)
def test_zero_lengths_do_as_torch_does(q, k, v, result, causal):
    out = assert_agrees(normal(*q), normal(*k), normal(*v), is_causal=causal)
    np.testing.assert_array_equal(out, np.zeros(result))


def test_zero_heads_with_grouped_heads():
    assert_agrees(normal(0, 3, 4), normal(0, 5, 4), normal(0, 5, 2), enable_gqa=True)
    assert_agrees(normal(0, 3, 4), normal(2, 5, 4), normal(2, 5, 2), enable_gqa=True)
    with pytest.raises(ValueError, match=r"has 2 heads and key .* has 0"):
        scaled_dot_product_attention(
            normal(2, 3, 4), normal(0, 5, 4), normal(0, 5, 2), enable_gqa=True
        )


def test_empty_inputs_keep_the_rules_of_others():
    # torch 2.13 answers all of these with query's leading axes, whatever the rest looks like.
    some_keys = scaled_dot_product_attention(normal(3, 4), normal(2, 0, 4), normal(2, 0, 2))
    np.testing.assert_array_equal(some_keys, np.zeros((2, 3, 2)))
    no_batch = scaled_dot_product_attention(normal(3, 4), normal(0, 5, 4), normal(0, 5, 2))
    assert no_batch.shape == (0, 3, 2)
    for q, k, v in [
        ((0, 4), (7, 3), (7, 1)),
        ((3, 4), (7, 4), (0, 1)),
        ((2, 3, 4), (3, 0, 4), (3, 0, 1)),
    ]:
        with pytest.raises(ValueError, match=r"must be equal|one value|must agree"):
            scaled_dot_product_attention(normal(*q), normal(*k), normal(*v))


def test_no_features_is_refused_where_torch_gives_an_average():
    with pytest.raises(ValueError, match=r"d_k = 0.*Give query and key a last axis of 1"):
        scaled_dot_product_attention(np.zeros((3, 0)), np.zeros((5, 0)), np.zeros((5, 2)))


# --- nan and inf -------------------------------------------------------------------------------

spoiled = st.sampled_from([0.0, 1.0, -1.0, 0.5, -2.0, 0.25, 3.0, NAN, INF, -INF])
mostly_sound = st.sampled_from([0.0, 1.0, -1.0, 0.5, -2.0, 0.25, 3.0]) | spoiled


@repeatable
@given(st.data())
def test_nan_and_inf_spread_as_in_torch(data):
    T_q, T_k, d_k, d_v = (data.draw(st.integers(1, 4)) for _ in range(4))
    q, k, v = (
        data.draw(hnp.arrays(np.float64, shape, elements=mostly_sound))
        for shape in ((T_q, d_k), (T_k, d_k), (T_k, d_v))
    )
    mask = data.draw(
        st.none()
        | hnp.arrays(np.bool_, (T_q, T_k))
        | hnp.arrays(np.float64, (T_q, T_k), elements=mostly_sound)
    )
    with np.errstate(all="raise"):  # what the caller has set must not matter
        ours = scaled_dot_product_attention(q, k, v, attn_mask=mask)
    np.testing.assert_allclose(
        ours, torch_attention(q, k, v, attn_mask=mask), rtol=1e-12, atol=1e-12
    )


@pytest.mark.parametrize(
    ("where", "value", "row_0", "row_1"),
    [
        ("q", NAN, [NAN, NAN], [1.5, 1.5]),  # spoils its own row
        ("k", NAN, [NAN, NAN], [NAN, NAN]),  # spoils every query, masked or not
        ("v", NAN, [NAN, 1.5], [NAN, 1.5]),  # spoils its column
        ("v", INF, [NAN, 1.5], [NAN, 1.5]),  # 0 · inf
        ("mask", INF, [NAN, NAN], [1.5, 1.5]),
    ],
)
def test_what_a_mask_does_not_hide(where, value, row_0, row_1):
    q, k, v = np.ones((2, 3)), np.ones((3, 3)), np.array([[9.0, 9.0], [1.0, 1.0], [2.0, 2.0]])
    mask = np.array([[-INF, 0.0, 0.0], [-INF, 0.0, 0.0]])  # nobody may attend key 0
    {"q": q, "k": k, "v": v, "mask": mask}[where][0, 0] = value
    out = assert_agrees(q, k, v, attn_mask=mask)
    np.testing.assert_allclose(out, [row_0, row_1])


def test_dot_products_of_minus_infinity_only_give_zeros():
    out = assert_agrees(np.full((1, 2), -INF), np.ones((3, 2)), np.ones((3, 2)))
    np.testing.assert_array_equal(out, [[0, 0]])


# --- dtypes ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("dtype", "atol"), [(np.float16, 2e-3), (np.float32, 1e-5), (np.float64, 1e-12)]
)
def test_a_dtype_is_kept(dtype, atol):
    q, k, v = (normal(2, 9, 16, seed=i).astype(dtype) for i in range(3))
    mask = normal(9, 9) < 1
    assert assert_agrees(q, k, v, atol=atol, attn_mask=mask).dtype == dtype
    steps = attention_steps(q, k, v, attn_mask=mask, is_causal=False)
    assert steps.output.dtype == dtype
    better = np.result_type(dtype, np.float32)
    assert {steps.scores.dtype, steps.masked.dtype, steps.weights.dtype} == {better}
    assert softmax(q).dtype == dtype


def test_float16_sums_are_not_taken_in_float16():
    # In float16 a running sum of ones stops at 2048, and 640,000 is inf.
    T_k = 8192
    q, k, v = np.zeros((1, 2)), np.zeros((T_k, 2)), np.ones((T_k, 1))
    out = scaled_dot_product_attention(*(x.astype(np.float16) for x in (q, k, v)))
    np.testing.assert_array_equal(out, [[1]])

    q = np.full((1, 64), 100, np.float16)
    k = np.stack([np.full(64, 100), np.full(64, 99)]).astype(np.float16)
    steps = attention_steps(q, k, np.eye(2, dtype=np.float16))
    np.testing.assert_array_equal(steps.scores, [[640_000, 633_600]])
    np.testing.assert_array_equal(steps.output, [[1, 0]])

    ones = np.ones((1, 4096), np.float16)
    np.testing.assert_array_equal(attention_steps(ones, ones, ones).scores, [[4096]])
    column = softmax(np.zeros((8192, 2), np.float16), axis=0)
    np.testing.assert_array_equal(column.astype(np.float64), np.full((8192, 2), 1 / 8192))


def test_float16_output_is_the_rounded_float64_output():
    q, k, v = (normal(33, 128, seed=i).astype(np.float16) for i in range(3))
    exact = scaled_dot_product_attention(*(x.astype(np.float64) for x in (q, k, v)))
    ours = scaled_dot_product_attention(q, k, v).astype(np.float64)
    assert (np.abs(ours - exact) <= 1.001 * np.abs(exact) * 2.0**-11 + 2e-6).all()


def test_mixed_floats_are_promoted():
    q, k, v = normal(3, 4), normal(5, 4, seed=1), normal(5, 2, seed=2)
    out = scaled_dot_product_attention(
        q.astype(np.float16), k.astype(np.float32), v.astype(np.float16)
    )
    assert out.dtype == np.float32
    assert scaled_dot_product_attention(q.astype(np.float32), k, v).dtype == np.float64
    half = np.float16
    with_mask = scaled_dot_product_attention(
        q.astype(half), k.astype(half), v.astype(half), attn_mask=np.zeros((3, 5))
    )
    assert with_mask.dtype == half


@pytest.mark.parametrize("dtype", [np.int8, np.uint8, np.int64, np.uint64])
def test_integers_are_taken_as_float64(dtype):
    steps = attention_steps(*(np.array(x, dtype) for x in (Q, K, V)))
    assert steps.output.dtype == np.float64
    np.testing.assert_array_equal(steps.output, attention_steps(Q, K, V).output)
    np.testing.assert_array_equal(softmax(np.array([1, 0], dtype)), softmax([1.0, 0.0]))


def test_int8_does_not_wrap_around():
    big = np.full((1, 4), 127, np.int8)
    np.testing.assert_array_equal(attention_steps(big, big, big).scores, [[4 * 127**2]])


def test_torch_tensors_are_read():
    out = scaled_dot_product_attention(*(torch.tensor(x, dtype=torch.float32) for x in (Q, K, V)))
    assert isinstance(out, np.ndarray)
    assert out.dtype == np.float32


# --- Inputs stay as they were ------------------------------------------------------------------


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
@pytest.mark.parametrize(
    "options",
    [{}, {"mask": "boolean"}, {"mask": "additive"}, {"is_causal": True}, {"enable_gqa": True}],
    ids=str,
)
def test_inputs_are_not_modified(dtype, options):
    options = dict(options)
    given = [normal(2, 4, 4, seed=i).astype(dtype) for i in range(3)]
    if kind := options.pop("mask", None):
        mask = normal(4, 4)
        options["attn_mask"] = mask > 0 if kind == "boolean" else mask.astype(dtype)
        given.append(options["attn_mask"])
    before = [x.copy() for x in given]
    out = scaled_dot_product_attention(*given[:3], **options)
    assert not any(np.shares_memory(out, x) for x in given)
    for x, was in zip(given, before, strict=True):
        np.testing.assert_array_equal(x, was)
        x.setflags(write=False)
    np.testing.assert_array_equal(scaled_dot_product_attention(*given[:3], **options), out)
    weights = softmax(given[0])
    weights.setflags(write=False)
    normalized_entropy(weights)


def test_steps_share_no_memory():
    steps = attention_steps(normal(3, 4), normal(3, 4), normal(3, 4))
    arrays = [x for x in steps if isinstance(x, np.ndarray)]
    for i, x in enumerate(arrays):
        assert not any(np.shares_memory(x, y) for y in arrays[:i])


def test_threads_do_not_disturb_each_other():
    q = normal(4, 16, 8)
    with ThreadPoolExecutor(4) as pool:
        outs = list(pool.map(lambda _: scaled_dot_product_attention(q, q, q), range(16)))
    assert all((out == outs[0]).all() for out in outs)


# --- softmax -----------------------------------------------------------------------------------


@repeatable
@given(
    hnp.arrays(
        np.float64,
        hnp.array_shapes(max_dims=4, min_side=0, max_side=5),
        elements=st.floats(-1e3, 1e3) | st.sampled_from([NAN, INF, -INF]),
    ),
    st.integers(0, 7),
)
def test_softmax_is_torchs_but_for_rows_of_minus_infinity(x, n):
    axis = n % (2 * x.ndim) - x.ndim
    with np.errstate(all="raise"):
        ours = softmax(x, axis=axis)
    theirs = torch.softmax(torch.from_numpy(x), dim=axis).numpy().copy()
    theirs[np.broadcast_to((x == -INF).all(axis=axis, keepdims=True), x.shape)] = 0
    np.testing.assert_allclose(ours, theirs, rtol=1e-12, atol=1e-12)


def test_softmax_by_hand_along_both_axes():
    x = np.log([[1.0, 3.0], [1.0, 1.0]])
    np.testing.assert_allclose(softmax(x), [[0.25, 0.75], [0.5, 0.5]])
    np.testing.assert_allclose(softmax(x, axis=0), [[0.5, 0.75], [0.5, 0.25]])
    np.testing.assert_array_equal(softmax([1e308, -1e308, 1e308]), [0.5, 0, 0.5])
    np.testing.assert_array_equal(softmax([[-INF, -INF], [-INF, 0]]), [[0, 0], [0, 1]])


# --- Masks and entropy -------------------------------------------------------------------------


@briefly
@given(st.integers(0, 8), st.integers(0, 8))
@example(3, 5)
@example(5, 3)
def test_causal_masks_are_triangles(T_q, T_k):
    upper, lower = causal_mask(T_q, T_k), causal_mask(T_q, T_k, "lower_right")
    assert upper.dtype == lower.dtype == bool
    np.testing.assert_array_equal(upper, np.tri(T_q, T_k, dtype=bool))
    np.testing.assert_array_equal(lower, np.tri(T_q, T_k, T_k - T_q, dtype=bool))


@pytest.mark.filterwarnings("ignore:Lower right causal bias")
@pytest.mark.parametrize(("T_q", "T_k"), [(3, 5), (5, 3), (4, 4)])
@pytest.mark.parametrize("bias", [causal_upper_left, causal_lower_right])
def test_each_alignment_is_torchs_of_that_name(bias, T_q, T_k):
    zeros, identity = torch.zeros(1, 1, max(T_q, T_k), 8), torch.eye(T_k)[None, None]
    weights = torch.nn.functional.scaled_dot_product_attention(
        zeros[..., :T_q, :], zeros[..., :T_k, :], identity, attn_mask=bias(T_q, T_k)
    )
    alignment = bias.__name__.removeprefix("causal_")
    np.testing.assert_array_equal(causal_mask(T_q, T_k, alignment), weights[0, 0].numpy() > 0)


def test_causal_masks_by_hand():
    assert causal_mask(2, 3).astype(int).tolist() == [[1, 0, 0], [1, 1, 0]]
    assert causal_mask(2, 3, alignment="lower_right").astype(int).tolist() == [[1, 1, 0], [1, 1, 1]]
    assert causal_mask(1, 4, alignment="lower_right").all()  # one new query against a cache
    assert causal_mask(1, 4).sum() == 1  # the trap: it sees key 0 only


@pytest.mark.parametrize(("T_q", "T_k"), [(3, 5), (5, 3), (4, 4)])
def test_is_causal_is_the_upper_left_mask(T_q, T_k):
    q, k, v = normal(T_q, 4), normal(T_k, 4, seed=1), normal(T_k, 2, seed=2)
    np.testing.assert_array_equal(
        scaled_dot_product_attention(q, k, v, is_causal=True),
        scaled_dot_product_attention(q, k, v, attn_mask=causal_mask(T_q, T_k)),
    )


def test_entropy_by_hand():
    h = entropy([[1, 0, 0, 0], [0.25] * 4, [0.5, 0.5, 0, 0], [0, 0, 0, 0], [NAN, 0, 0, 1]])
    np.testing.assert_allclose(h, [0, math.log(4), math.log(2), 0, NAN], atol=1e-15)
    assert not np.signbit(h[0])
    assert entropy([0.5, 0.5]) == pytest.approx(math.log(2))
    assert entropy(np.ones((3, 1), np.float16)).dtype == np.float32
    assert entropy(np.zeros((3, 0))).tolist() == [0, 0, 0]
    assert entropy([1, 5e-324]) >= 0  # the smallest float there is


def test_entropy_of_a_long_float16_row():
    weights = softmax(np.zeros((2, 8192), np.float16))
    np.testing.assert_allclose(entropy(weights), math.log(8192), rtol=1e-3)


@briefly
@given(hnp.arrays(np.float64, (3, 5), elements=st.floats(-30, 30)))
def test_entropy_is_torchs_and_never_above_uniform(x):
    w = softmax(x)
    theirs = torch.distributions.Categorical(probs=torch.from_numpy(w)).entropy().numpy()
    np.testing.assert_allclose(entropy(w), theirs, atol=1e-8)  # torch clamps at its eps
    np.testing.assert_array_less(entropy(w), math.log(5) + 1e-12)
    np.testing.assert_allclose(normalized_entropy(w), entropy(w) / math.log(5))


def test_normalized_entropy_counts_the_keys_that_a_row_may_attend():
    allowed = causal_mask(4, 4)
    weights = attention_steps(np.zeros((4, 2)), normal(4, 2), normal(4, 2), is_causal=True).weights
    with np.errstate(all="raise"):
        found = normalized_entropy(weights, allowed)
    np.testing.assert_allclose(found, [NAN, 1, 1, 1])  # row 0 has one key: nothing to decide
    np.testing.assert_allclose(
        normalized_entropy(weights), [0, 0.5, math.log(3) / math.log(4), 1], atol=1e-15
    )
    # One mask for a batch of two; a row with no key left.
    batch = np.stack([weights, weights])
    np.testing.assert_allclose(normalized_entropy(batch, allowed), [[NAN, 1, 1, 1]] * 2)
    nobody = np.zeros((2, 3), bool)
    assert np.isnan(normalized_entropy(np.zeros((2, 3)), nobody)).all()
    # Masked with a huge finite number: uniform over keys nobody may attend. Still nothing to say.
    assert np.isnan(normalized_entropy(np.full((2, 3), 1 / 3), nobody)).all()
    assert normalized_entropy([0.5, 0.5, 0], [True, True, False]) == pytest.approx(1)
    assert np.isnan(normalized_entropy(np.ones((2, 1)))).all()
    assert np.isnan(normalized_entropy([0.999, 0], [True, False]))  # rounded, so entropy is not 0


# --- What is refused, and in which words -------------------------------------------------------

ok = {"query": normal(2, 4, 3, 8), "key": normal(2, 4, 5, 8), "value": normal(2, 4, 5, 6)}


@pytest.mark.parametrize("name", ["query", "key", "value"])
@pytest.mark.parametrize(
    ("bad", "error", "words"),
    [
        ("attention", TypeError, "dtype <U9.*real numbers.*Convert"),
        ([["a", "b"]], TypeError, "dtype <U1"),
        ([[1, None]], TypeError, "dtype object"),
        (None, TypeError, "dtype object"),
        ({1, 2}, TypeError, "dtype object"),
        ([[10**30]], TypeError, "dtype object"),
        (np.ones((3, 8), bool), TypeError, "True and False.*attn_mask"),
        (np.ones((3, 8), complex), TypeError, "complex128"),
        (np.zeros((3, 8), "M8[s]"), TypeError, "datetime64"),
        (torch.ones(3, 8, requires_grad=True), TypeError, "detach"),
        (torch.ones(3, 8, dtype=torch.bfloat16), TypeError, "cannot be read as a NumPy array"),
        ([[1, 2], [3]], ValueError, "not a rectangular array.*same length"),
        (np.ones(8), ValueError, r"shape \(8,\).*at least 2 dimension.*x\[None\]"),
        (1.0, ValueError, r"shape \(\)"),
        ([], ValueError, r"shape \(0,\)"),
    ],
    ids=lambda x: type(x).__name__,
)
def test_refuses_what_is_no_array_of_numbers(name, bad, error, words):
    with pytest.raises(error, match=f"^{name} .*{words}"):
        scaled_dot_product_attention(**{**ok, name: bad})
    with pytest.raises(error, match=f"^{name} "):
        attention_steps(*{**ok, name: bad}.values())


@pytest.mark.parametrize(
    ("options", "error", "words"),
    [
        (
            {"key": normal(2, 4, 8, 5)},
            ValueError,
            r"\(2, 4, 3, 8\).*\(2, 4, 8, 5\).*8 is not 5.*not tr",
        ),
        (
            {"value": normal(2, 4, 6, 5)},
            ValueError,
            r"\(2, 4, 5, 8\).*\(2, 4, 6, 5\).*5 is not 6.*T_k",
        ),
        ({"value": normal(2, 4, 1, 6)}, ValueError, "one value, but 5 is not 1"),
        ({"key": normal(2, 2, 5, 8)}, ValueError, r"\(2, 2, 5, 8\).*pass enable_gqa=True"),
        ({"value": normal(3, 4, 5, 6)}, ValueError, r"\(3, 4, 5, 6\) must agree"),
        (
            {"key": normal(2, 3, 5, 8), "enable_gqa": True},
            ValueError,
            "4 heads and key .*has 3.*divide",
        ),
        ({"value": normal(2, 3, 5, 6), "enable_gqa": True}, ValueError, "and value .*has 3"),
        ({"key": normal(2, 8, 5, 8), "enable_gqa": True}, ValueError, "has 8"),
        (
            {"query": normal(3, 8), "enable_gqa": True},
            ValueError,
            r"query has shape \(3, 8\).* 3 dim",
        ),
        ({"enable_gqa": 1}, TypeError, "enable_gqa is 1,.*True or False"),
        (
            {"attn_mask": np.ones((3, 5), int)},
            TypeError,
            r"int64.*may attend.*mask\.astype\(bool\)",
        ),
        ({"attn_mask": "causal"}, TypeError, "attn_mask has dtype <U6"),
        ({"attn_mask": np.ones((3, 5), complex)}, TypeError, "complex128"),
        ({"attn_mask": np.ones((3, 5), object)}, TypeError, "object"),
        ({"attn_mask": [[True], [True, False]]}, ValueError, "attn_mask is not a rectangular"),
        (
            {"attn_mask": np.ones((5, 3), bool)},
            ValueError,
            r"\(5, 3\).*\(2, 4, 3, 5\).*from the right",
        ),
        ({"attn_mask": np.zeros((4, 4, 3, 5))}, ValueError, r"shape \(4, 4, 3, 5\)"),
        ({"attn_mask": np.zeros((7, 2, 4, 3, 5))}, ValueError, r"shape \(7, 2, 4, 3, 5\)"),
        (
            {"attn_mask": np.ones((3, 5), bool), "is_causal": True},
            ValueError,
            "both given.*causal_mask",
        ),
        ({"is_causal": 0.0}, TypeError, "is_causal is 0.0,.*no dropout_p"),
        ({"is_causal": None}, TypeError, "is_causal is None"),
        ({"scale": "0.5"}, TypeError, "scale is '0.5'.*one real number.*None for 1/√d_k"),
        ({"scale": True}, TypeError, "scale is True"),
        ({"scale": 1j}, TypeError, "scale is 1j"),
        ({"scale": np.ones(1)}, TypeError, "scale is array"),
        ({"scale": INF}, ValueError, "scale is inf.*finite"),
        ({"scale": NAN}, ValueError, "scale is nan"),
        ({"scale": 10**400}, ValueError, "scale is inf"),
    ],
    ids=lambda x: "" if isinstance(x, type) else str(x)[:20],
)
def test_refuses_what_does_not_fit_together(options, error, words):
    with pytest.raises(error, match=words):
        scaled_dot_product_attention(**{**ok, **options})


def test_dropout_in_torchs_place_is_not_taken_for_something_else():
    with pytest.raises(TypeError, match="no dropout_p"):
        scaled_dot_product_attention(*ok.values(), None, 0.0, True)


@pytest.mark.parametrize("scale", [2, np.float32(0.5), np.int64(-1), fractions.Fraction(1, 3)])
def test_any_real_number_is_a_scale(scale):
    assert attention_steps(Q, K, V, scale).scale == float(scale)
    assert_agrees(ok["query"], ok["key"], ok["value"], scale=float(scale))


@pytest.mark.parametrize(
    ("call", "error", "words"),
    [
        (lambda: softmax(["a"]), TypeError, "^x has dtype <U1"),
        (lambda: softmax([True, False]), TypeError, "^x holds True"),
        (lambda: softmax([[1], [2, 3]]), ValueError, "^x is not a rectangular"),
        (lambda: softmax(3.0), ValueError, r"shape \(\).*at least 1"),
        (lambda: softmax([1.0], axis=1), ValueError, "axis is 1.*axes -1 to 0.*Use -1"),
        (lambda: softmax([1.0], axis=-2), ValueError, "axis is -2"),
        (lambda: softmax([[1.0]], axis=None), TypeError, "axis is None"),
        (lambda: softmax([[1.0]], axis=(0, 1)), TypeError, "one integer"),
        (lambda: softmax([[1.0], [1.0]], axis=True), TypeError, "axis is True"),
        (lambda: entropy([[2.0, 0.0, 1.0]]), ValueError, r"sum 3.*softmax\(scores\)"),
        (lambda: entropy([[1.5, -0.5]]), ValueError, "holds -0.5"),
        (lambda: entropy([[NAN, -0.5]]), ValueError, "holds -0.5"),
        (lambda: entropy([INF, 0]), ValueError, "sum inf"),
        (lambda: entropy([[INF, -INF]]), ValueError, "holds -inf"),
        (lambda: normalized_entropy([[INF, -INF]]), ValueError, "holds -inf"),
        (lambda: entropy(["a"]), TypeError, "^weights has dtype"),
        (lambda: entropy(1.0), ValueError, "at least 1"),
        (lambda: normalized_entropy([2.0, 0.0]), ValueError, "sum 2"),
        (lambda: normalized_entropy([0.5, 0.5], [1, 1]), TypeError, "allowed has dtype int64"),
        (lambda: normalized_entropy([0.5, 0.5], [True] * 3), ValueError, r"\(3,\).*weights"),
        (lambda: normalized_entropy([0.5, 0.5], np.ones((2, 2), bool)), ValueError, r"\(2, 2\)"),
        (lambda: normalized_entropy([0.9, 0.1], [True, False]), ValueError, "gives 0.1.*~mask"),
        (lambda: causal_mask(-1, 2), ValueError, "T_q is -1"),
        (lambda: causal_mask(2, 1.5), TypeError, "T_k is 1.5"),
        (lambda: causal_mask(True, 2), TypeError, "T_q is True"),
        (lambda: causal_mask(2, 2, "bottom"), ValueError, "'bottom'.*'upper_left', 'lower_right'"),
    ],
)
def test_the_smaller_functions_refuse_too(call, error, words):
    with np.errstate(all="raise"), pytest.raises(error, match=words):
        call()
