"""Online softmax, merging, tiles and traffic: against plain attention, and byte for byte."""

import math
import tracemalloc
from collections import deque

import numpy as np
import pytest
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st

from helpers.attention import attention_steps, causal_mask, softmax
from helpers.flash import (
    LOOPS,
    TilePlan,
    block_sizes,
    memory_traffic,
    merge,
    online_attention,
    online_softmax,
    tiled_attention,
)

pytestmark = pytest.mark.filterwarnings("error::RuntimeWarning")

INF, NAN = math.inf, math.nan
repeatable = settings(derandomize=True, deadline=None, max_examples=100)
briefly = settings(derandomize=True, deadline=None, max_examples=50)
close = {"rtol": 1e-12, "atol": 1e-12}


def normal(*shape, seed=0):
    return np.random.default_rng(seed).standard_normal(shape)


def log_sum_exp(scores):
    m = scores.max(axis=-1, initial=-INF)
    if np.all(m == -INF):
        return m
    return m + np.log(np.exp(scores - m[..., None]).sum(axis=-1))


def cut(x, sizes, axis=-1):
    """x in blocks of these sizes, again and again until it is used up."""
    blocks, start, n = [], 0, 0
    while start < x.shape[axis]:
        end = start + sizes[n % len(sizes)]
        blocks.append(x[..., start:end] if axis == -1 else x[..., start:end, :])
        start, n = end, n + 1
    return blocks


def last(steps):
    """The last step, without keeping the others."""
    return deque(steps, maxlen=1).pop()


scores_of_a_row = st.lists(
    st.one_of(st.floats(-800, 800), st.just(-INF), st.floats(-1, 1)), min_size=1, max_size=20
).map(np.array)
sizes = st.lists(st.integers(1, 7), min_size=1, max_size=4)


# --- Online softmax ------------------------------------------------------------------------------


@repeatable
@given(scores_of_a_row, sizes)
@example(np.array([-INF, -INF]), [1])
@example(np.array([1000.0, -1000.0, 2000.0]), [1])
@example(np.array([-INF, 3.0]), [1])
def test_softmax_in_blocks_is_softmax(scores, sizes):
    steps = list(online_softmax(cut(scores, sizes)))
    np.testing.assert_allclose(steps[-1].weights_of(scores), softmax(scores), **close)
    np.testing.assert_allclose(steps[-1].lse, log_sum_exp(scores), **close)
    assert steps[-1].seen == len(scores)
    assert [step.number for step in steps] == list(range(1, len(steps) + 1))
    for before, step in zip([None, *steps], steps):
        assert step.m == scores[: step.seen].max()
        assert 0 <= step.rescale <= 1
        assert (step.powers <= 1).all()
        assert step.l <= step.seen
        assert step.m_before == (-INF if before is None else before.m)
        assert step.l_before == (0 if before is None else before.l)
        assert step.new_max == (step.m > step.m_before)
        assert step.acc is step.output is None


def test_one_score_at_a_time_may_be_a_number_and_rows_may_be_many():
    scores = normal(3, 5)
    one = last(online_softmax(iter(scores[1].tolist())))
    many = last(online_softmax(cut(scores, [2])))
    assert one.l == pytest.approx(many.l[1], rel=1e-14)
    np.testing.assert_allclose(many.weights_of(scores), softmax(scores), **close)
    assert many.m.shape == many.l.shape == many.rescale.shape == many.lse.shape == (3,)


def test_the_step_says_what_changed():
    first, second, third = online_softmax([[1.0, 2.0], [4.0], [3.0]])
    assert (first.m_before, first.m, first.rescale) == (-INF, 2, 0)
    assert (second.m_before, second.m, second.new_max) == (2, 4, True)
    assert second.rescale == pytest.approx(math.exp(-2))
    assert second.l == pytest.approx(first.l * math.exp(-2) + 1)
    assert (third.rescale, bool(third.new_max)) == (1, False)


@briefly
@given(scores_of_a_row, sizes, st.randoms(use_true_random=False))
def test_neither_order_nor_a_shift_matters(scores, sizes, random):
    order = list(range(len(scores)))
    random.shuffle(order)
    one = last(online_softmax(cut(scores, sizes)))
    other = last(online_softmax(cut(scores[order] + 50, sizes)))
    np.testing.assert_allclose(one.lse + 50, other.lse, **close)


@repeatable
@given(st.integers(1, 12), sizes, st.integers(0, 2**32 - 1), st.sampled_from([1, 30, 1000]))
def test_the_running_output_is_attention_over_the_keys_seen(T, sizes, seed, spread):
    scores, v = spread * normal(2, T, seed=seed), normal(2, T, 3, seed=seed + 1)
    for step in online_attention(cut(scores, sizes), cut(v, sizes, axis=-2)):
        seen = softmax(scores[:, : step.seen])[:, None, :] @ v[:, : step.seen]
        np.testing.assert_allclose(step.output, seen[:, 0], **close)


@repeatable
@given(st.lists(st.floats(-20, 20), min_size=2, max_size=9, unique=True), sizes)
def test_without_rescaling_it_is_wrong_exactly_when_a_later_block_holds_the_largest(scores, sizes):
    scores, v = np.array(scores), np.eye(len(scores))  # the output is then the weights
    blocks = cut(scores, sizes), cut(v, sizes, axis=-2)
    right, left_out = (last(online_attention(*blocks, rescale=r)) for r in (True, False))
    assert not left_out.rescaled
    assert left_out.rescale == right.rescale  # it says what is missing
    in_first = scores.max() == blocks[0][0].max()
    if in_first:
        np.testing.assert_array_equal(left_out.output, right.output)
    else:
        assume(right.output[: sizes[0]].sum() > 1e-6)
        assert left_out.output[: sizes[0]].sum() > right.output[: sizes[0]].sum()


def test_nan_and_infinity_spoil_the_row_as_in_softmax():
    for bad in (NAN, INF):
        assert np.isnan(last(online_softmax([[1.0], [bad], [2.0]])).l)
        assert np.isnan(softmax([1.0, bad, 2.0])).all()


def test_float16_is_computed_in_float32_and_inputs_stay():
    scores, v = normal(6).astype(np.float16), normal(6, 2).astype(np.float16)
    kept = scores.copy(), v.copy()
    step = last(online_attention([scores], [v]))
    assert step.m.dtype == step.l.dtype == step.output.dtype == np.float32
    assert step.output.shape == (2,)
    np.testing.assert_array_equal(scores, kept[0])
    np.testing.assert_array_equal(v, kept[1])


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: online_softmax([["a"]]), TypeError, "real numbers"),
        (lambda: online_softmax([np.ones((2, 3)), np.ones(3)]), ValueError, "same rows"),
        (lambda: online_attention([[1.0, 2.0]], [np.ones((3, 2))]), ValueError, "2 scores"),
        (lambda: online_attention([[1.0], [2.0]], [np.ones((1, 2))]), ValueError, "shorter"),
        (lambda: online_attention([[1.0]], [np.ones((1, 2))], rescale=2), TypeError, "rescale"),
    ],
)
def test_blocks_that_do_not_fit_are_refused(call, error, message):
    with pytest.raises(error, match=message):
        list(call())


# --- Merge ---------------------------------------------------------------------------------------


def part(scores, v):
    step = last(online_attention([scores], [v]))
    return step.output, step.lse


@repeatable
@given(
    st.integers(0, 6), st.integers(0, 6), st.integers(0, 2**32 - 1), st.sampled_from([1, 30, 1000])
)
def test_merging_two_parts_is_attention_over_all_keys(n_a, n_b, seed, spread):
    scores, v = spread * normal(4, n_a + n_b, seed=seed), normal(4, n_a + n_b, 3, seed=seed + 1)
    a = part(scores[:, :n_a], v[:, :n_a])
    b = part(scores[:, n_a:], v[:, n_a:])
    out, lse = merge(*a, *b)
    np.testing.assert_allclose(out, (softmax(scores)[:, None, :] @ v)[:, 0], **close)
    np.testing.assert_allclose(lse, log_sum_exp(scores), **close)
    for one, other in zip(merge(*b, *a), (out, lse)):
        np.testing.assert_allclose(one, other, **close)


@briefly
@given(st.integers(0, 2**32 - 1))
def test_it_does_not_matter_which_two_are_merged_first(seed):
    parts = [
        part(30 * normal(2, 3, seed=seed + i), normal(2, 3, 4, seed=seed + 2 + i)) for i in (0, 1)
    ]
    parts.append((np.full((2, 4), NAN), np.full(2, -INF)))
    left = merge(*merge(*parts[0], *parts[1]), *parts[2])
    right = merge(*parts[0], *merge(*parts[1], *parts[2]))
    for one, other in zip(left, right):
        np.testing.assert_allclose(one, other, **close)


def test_an_empty_part_changes_nothing_even_if_it_holds_nan():
    out, lse = merge(np.array([1.0, 2.0]), np.array(3.0), np.array([NAN, INF]), np.array(-INF))
    assert out.tolist() == [1, 2]
    assert lse == 3
    out, lse = merge([NAN], -INF, [NAN], -INF)
    assert out.tolist() == [0]
    assert lse == -INF


def test_an_lse_of_another_shape_is_refused():
    with pytest.raises(ValueError, match="one number for each row"):
        merge(np.ones((2, 3)), np.ones(3), np.ones((2, 3)), np.ones(2))


# --- Tiled attention -----------------------------------------------------------------------------


@st.composite
def tiled_inputs(draw, square=False):
    T_q, T_k = (draw(st.integers(1, 14)) for _ in range(2))
    T_k = T_q if square else T_k
    d_k, d_v = (draw(st.integers(1, 4)) for _ in range(2))
    lead = draw(st.sampled_from([(), (2,), (2, 3)])) if not square else ()
    seed = draw(st.integers(0, 2**32 - 1))
    q, k = normal(*lead, T_q, d_k, seed=seed), normal(*lead[1:], T_k, d_k, seed=seed + 1)
    v = normal(*lead, T_k, d_v, seed=seed + 2)
    blocks = draw(st.integers(1, 16)), draw(st.integers(1, 16))
    return q, k, v, *blocks


@repeatable
@given(
    tiled_inputs(), st.booleans(), st.sampled_from(LOOPS), st.sampled_from([None, 1.0, -3.0, 200.0])
)
def test_tiles_give_plain_attention(inputs, is_causal, outer, scale):
    q, k, v, block_q, block_k = inputs
    kept = [x.copy() for x in (q, k, v)]
    plain = attention_steps(q, k, v, scale, is_causal=is_causal)
    step = last(tiled_attention(q, k, v, block_q, block_k, is_causal, scale, outer))
    np.testing.assert_allclose(step.output, plain.output, **close)
    np.testing.assert_allclose(step.lse, log_sum_exp(plain.masked), **close)
    for x, before in zip((q, k, v), kept):
        np.testing.assert_array_equal(x, before)


@repeatable
@given(tiled_inputs(), st.booleans(), st.sampled_from(LOOPS))
def test_every_tile_comes_once_and_only_empty_ones_are_skipped(inputs, is_causal, outer):
    q, k, v, block_q, block_k = inputs
    allowed = causal_mask(q.shape[-2], k.shape[-2]) | (not is_causal)
    reached = np.zeros_like(allowed)
    moved, order = 0, []
    for step in tiled_attention(q, k, v, block_q, block_k, is_causal, outer=outer):
        tile = (step.queries, step.keys)
        assert not reached[tile].any()
        reached[tile] = True
        assert step.skipped == (not allowed[tile].any())
        assert (step.bytes_moved > moved) == (not step.skipped)
        moved = step.bytes_moved
        order.append((step.i, step.j) if outer == "queries" else (step.j, step.i))
        assert step.number == len(order)
    assert reached.all()
    assert order == sorted(order)


@pytest.mark.parametrize("outer", LOOPS)
def test_the_state_of_a_tile_is_that_of_the_online_softmax(outer):
    q, k, v = normal(5, 3), normal(7, 3, seed=1), normal(7, 2, seed=2)
    scores = attention_steps(q, k, v).scaled
    for step in tiled_attention(q, k, v, 2, 3, outer=outer):
        seen = step.keys.stop
        online = last(online_attention([scores[step.queries, :seen]], [v[None, :seen]]))
        np.testing.assert_allclose(step.m, online.m, **close)
        np.testing.assert_allclose(step.l, online.l, **close)
        np.testing.assert_allclose(step.acc, online.acc, **close)


@repeatable
@given(tiled_inputs(square=True), st.booleans(), st.sampled_from(LOOPS))
def test_the_plan_counts_the_bytes_that_the_loops_move_after_each_tile(inputs, is_causal, outer):
    q, k, _, block_q, block_k = inputs
    v = normal(*k.shape)
    plan = TilePlan(len(q), q.shape[1], block_q, block_k, 8, is_causal, outer)
    done = skipped = 0
    for step in tiled_attention(q, k, v, block_q, block_k, is_causal, outer=outer):
        if step.skipped:
            skipped += 1
            continue
        done += 1
        assert plan.tile(done) == (step.i, step.j)
        assert plan.queries(step.i) == (step.queries.start, step.queries.stop)
        assert plan.keys(step.j) == (step.keys.start, step.keys.stop)
        assert plan.moved(done) == (step.bytes_read, step.bytes_written)
    assert (done, skipped) == (plan.tiles, plan.skipped)
    assert plan.moved(0) == (0, 0)


def test_the_matrix_of_scores_is_never_made():
    T = 1536
    q = k = v = normal(T, 8)
    tracemalloc.start()
    last(tiled_attention(q, k, v, 64, 64))
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < T * T * 8 / 8


def test_float32_moves_half_of_what_float64_moves():
    q, k, v = (normal(9, 4, seed=seed) for seed in range(3))
    double = last(tiled_attention(q, k, v, 4, 4))
    single = last(tiled_attention(*(x.astype(np.float32) for x in (q, k, v)), 4, 4))
    assert double.bytes_moved == 2 * single.bytes_moved
    assert single.output.dtype == np.float32
    np.testing.assert_allclose(single.output, double.output, atol=1e-6)


@pytest.mark.parametrize(
    ("changes", "error", "message"),
    [
        ({"block_q": 0}, ValueError, "block_q is 0"),
        ({"block_k": 2.5}, TypeError, "block_k is 2.5"),
        ({"outer": "rows"}, ValueError, "outer is 'rows'"),
        ({"q": np.ones((0, 3))}, ValueError, "without both there is no tile"),
        ({"k": np.ones((4, 2))}, ValueError, "d_k"),
        ({"is_causal": 1}, TypeError, "is_causal"),
        ({"scale": INF}, ValueError, "finite"),
    ],
)
def test_what_cannot_be_tiled_is_refused(changes, error, message):
    arguments = {"q": normal(4, 3), "k": normal(4, 3), "v": normal(4, 2)}
    arguments |= {"block_q": 2, "block_k": 2, **changes}
    with pytest.raises(error, match=message):
        next(tiled_attention(**arguments))


# --- Traffic -------------------------------------------------------------------------------------


@briefly
@given(
    st.integers(1, 40),
    st.integers(1, 6),
    st.integers(1, 300),
    st.booleans(),
    st.sampled_from(LOOPS),
)
def test_the_traffic_is_what_tiled_attention_counts(T, d, room, is_causal, outer):
    fast_memory = 8 * max(room, 4 * d)
    traffic = memory_traffic(T, d, fast_memory, 8, is_causal, outer)
    q, k, v = (normal(T, d, seed=seed) for seed in range(3))
    blocks = traffic.block_q, traffic.block_k
    step = last(tiled_attention(q, k, v, *blocks, is_causal, outer=outer))
    assert (step.bytes_read, step.bytes_written) == (traffic.tiled_read, traffic.tiled_written)
    assert step.bytes_moved == traffic.tiled


def test_the_blocks_are_the_papers():
    # 192 KB of SRAM, an A100's, in float16: M = 98,304.
    assert block_sizes(192 * 1024, 64, 2, outer="keys") == (64, 384)
    assert block_sizes(192 * 1024, 64, 2, outer="queries") == (384, 64)
    assert block_sizes(1000, 7, 1, outer="keys") == (7, 36)  # ⌈1000 / 28⌉ = 36


@repeatable
@given(st.integers(1, 200), st.integers(1, 2**18), st.sampled_from([1, 2, 4]))
def test_the_four_blocks_fit_up_to_rounding(d, fast_memory, size):
    assume(fast_memory // size >= 4 * d)
    for outer in LOOPS:
        traffic = memory_traffic(10**6, d, fast_memory, size, outer=outer)
        assert traffic.blocks_held <= fast_memory + 4 * d * size
        assert traffic.block_q * traffic.block_k <= fast_memory / size / 4 + d


def test_plain_attention_by_hand():
    # T = 2, d = 1. Read: Q 2, K 2, S 4, P 4, V 2. Written: S 4, P 4, O 2.
    traffic = memory_traffic(2, 1, 4, bytes_per_number=1)
    assert (traffic.plain_read, traffic.plain_written) == (14, 10)
    assert traffic.score_matrix == 4
    # Blocks of one row. Read: Q 2, K and V 2 · 4. Written: O 2, lse 2.
    assert (traffic.block_q, traffic.block_k) == (1, 1)
    assert (traffic.tiled_read, traffic.tiled_written) == (10, 4)
    # Keys outside. First O, l, m: 2 · 3 written. Then K, V: 4 read; Q, O, l, m for each of 4 tiles.
    traffic = memory_traffic(2, 1, 4, bytes_per_number=1, outer="keys")
    assert (traffic.tiled_read, traffic.tiled_written) == (4 + 4 * 4, 6 + 4 * 3)


@repeatable
@given(st.integers(0, 4), st.sampled_from([16, 32, 64, 128]), st.integers(0, 6))
def test_the_traffic_grows_like_the_papers_bound(log_T, d, log_M):
    T, M = 1024 * 2**log_T, 4 * d * 2**log_M
    assume(d <= M <= T * d)
    for outer, low, high in (("queries", 8, 8.5), ("keys", 12, 13)):
        traffic = memory_traffic(T, d, 2 * M, outer=outer)
        beside = 2 * 6 * T * d + 8 * T  # each of Q, K, V, O once, and what belongs to rows
        assert low * traffic.bound <= traffic.tiled <= high * traffic.bound + beside
        causal = memory_traffic(T, d, 2 * M, is_causal=True, outer=outer)
        assert causal.tiled < traffic.tiled
        assert causal.plain == traffic.plain


def test_more_fast_memory_never_costs_and_too_little_makes_tiling_lose():
    tiled = [memory_traffic(4096, 128, 1024 * kb).tiled for kb in (16, 32, 64, 96, 128, 192, 256)]
    assert tiled == sorted(tiled, reverse=True)
    assert memory_traffic(4096, 128, 16 * 1024).ratio < 0.3
    assert memory_traffic(4096, 64, 192 * 1024).ratio > 10


@pytest.mark.parametrize("outer", LOOPS)
@pytest.mark.parametrize("is_causal", [False, True])
def test_coarse_fields_count_every_tile(is_causal, outer):
    plan = TilePlan(100, 4, 7, 9, 2, is_causal, outer)
    rows, columns = np.arange(0, plan.rows, 4), np.arange(0, plan.columns, 5)
    for number in (0, 1, 17, 60, plan.tiles):
        computed, done = (np.zeros((len(rows), len(columns)), int) for _ in range(2))
        for n in range(1, plan.tiles + 1):
            i, j = plan.tile(n)
            computed[i // 4, j // 5] += 1
            done[i // 4, j // 5] += n <= number
        for got, expected in zip(plan.counts(rows, columns, number), (computed, done)):
            np.testing.assert_array_equal(got, expected)


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ((0, 4, 100), ValueError, "T is 0"),
        ((8, 2.0, 100), TypeError, "d is 2.0"),
        ((8, 4, 30), ValueError, "holds 15 numbers, but one row each"),
        ((8, 4, 100, 0), ValueError, "bytes_per_number is 0"),
        ((8, 4, 100, 2, False, "both"), ValueError, "outer is 'both'"),
    ],
)
def test_traffic_that_makes_no_sense_is_refused(arguments, error, message):
    with pytest.raises(error, match=message):
        memory_traffic(*arguments)


@pytest.mark.parametrize("number", [0, 5])
def test_a_tile_that_is_not_there_is_refused(number):
    with pytest.raises(ValueError, match="count from 1 to 4"):
        TilePlan(4, 1, 2, 2).tile(number)
