"""What the doctor is made of: references against each other, rounding, layouts, signatures."""

import functools
import inspect

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from helpers import attention
from helpers.doctor import naming
from helpers.doctor.cases import Maker
from helpers.doctor.catalogue import BY_GROUP, GRADIENTS
from helpers.doctor.conventions import LAYOUTS, Conventions, arrange, restore
from helpers.doctor.hands import NotNumbers, numbers_of
from helpers.doctor.interface import CannotCall, Manner, read
from helpers.doctor.patient import Answer, Seen, largest_error
from helpers.doctor.precision import coarser, name_of, rounded
from helpers.doctor.reference import Truth, backward, mask_gradient
from helpers.doctor.together import candidates
from helpers.watchdog import Fault

EVERYTHING = Manner(
    mask="attn_mask", causal="is_causal", scale="scale", gqa="enable_gqa", boolean_masks=True,
    float_masks=True,
)  # fmt: skip
GROUPS = {
    "plain": Maker.plain, "large": Maker.large, "causal": Maker.causal, "mask": Maker.masks,
    "bias": Maker.biases, "fill": Maker.fills, "empty": Maker.empty, "scale": Maker.scales,
    "gqa": Maker.gqa, "pair": Maker.pairs,
}  # fmt: skip
SETS = [{"divided-by-d_k", "scale-twice"}]
ALONE = [group for group in GROUPS if group != "pair"]


def maker(seed=0, precision="float32", **said):
    return Maker(Conventions(seed=seed, **said), EVERYTHING, precision)


@functools.cache
def truths(group, seed):
    return [Truth(case) for case in GROUPS[group](maker(seed))]


def seen_of(reference, group, seed):
    """What a function that makes exactly this mistake would show."""
    seen = []
    for truth in truths(group, seed):
        wrong = naming.result(reference, Seen(truth, Answer("array", truth.output)))
        raised = Answer("raised", fault=Fault("ValueError", "", None, ""))
        seen.append(Seen(truth, raised if wrong is None else Answer("array", wrong)))
    return seen


REFERENCES = [
    pytest.param(group, disease.id, reference, id=f"{group}-{disease.id}-{i}")
    for group in ALONE
    for disease in BY_GROUP[group]
    for i, reference in enumerate(disease.references)
    if disease.id != "scale-unasked"  # what is asked for by default
]


@pytest.mark.parametrize(("group", "id", "reference"), REFERENCES)
def test_every_reference_can_be_told_from_every_other(group, id, reference):
    """And from the right result. Two names only where no input can tell them apart."""
    seen = seen_of(reference, group, 0)
    assert not all(one.right for one in seen)
    names = {disease.id for disease in naming.agreeing(seen, BY_GROUP[group])}
    assert names == {id} or names in SETS


PAIR_REFERENCES = [
    pytest.param(disease, reference, id=f"{disease.id}-{i}")
    for disease in BY_GROUP["pair"]
    for i, reference in enumerate(disease.references)
]


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize(("disease", "reference"), PAIR_REFERENCES)
def test_every_mistake_about_two_arguments_has_its_name(disease, reference, seed):
    """On every pair that it concerns, by itself."""
    wrong = [
        one for one in seen_of(reference, "pair", seed)
        if one.answer.kind == "array" and not one.right and disease in candidates(one.case)
    ]  # fmt: skip
    assert wrong
    for one in wrong:
        assert naming.agreeing([one], candidates(one.case)) == [disease], one.case.label


def test_two_arguments_are_tried_where_each_is_right_alone():
    labels = [case.label for case in maker().pairs()]
    assert len(labels) == 9
    assert "`is_causal` together with `enable_gqa`" in labels
    assert maker().pairs({"scale"}) == []
    (case,) = maker().pairs({"scale", "bias"})
    assert case.label == "`attn_mask` together with `scale`"
    assert case.bias is not None


@pytest.mark.parametrize("group", GROUPS)
@pytest.mark.parametrize("seed", range(3))
def test_the_right_results_are_the_helpers(group, seed):
    for truth in truths(group, seed):
        case = truth.case
        mask = case.allowed
        if case.bias is not None:
            mask = case.bias if mask is None else np.where(mask, case.bias, -np.inf)
        right = attention.scaled_dot_product_attention(
            case.q, case.k, case.v, mask, scale=case.scale, enable_gqa=case.asks_gqa
        )
        assert np.allclose(truth.output, right, atol=1e-12)


@pytest.mark.parametrize("case", maker().gradients(), ids=lambda case: case.label)
def test_the_right_gradients_are_those_of_autograd(case):
    above = np.random.default_rng(0).normal(size=case.output_shape)
    q, k, v = (torch.from_numpy(x.copy()).requires_grad_() for x in (case.q, case.k, case.v))
    mask = case.bias if case.bias is not None else case.allowed
    mask = None if mask is None else torch.from_numpy(np.array(mask))
    if case.bias is not None:
        mask.requires_grad_()
    out = F.scaled_dot_product_attention(q, k, v, mask, scale=case.scale, enable_gqa=case.asks_gqa)
    out.backward(torch.from_numpy(above))
    for ours, theirs in zip(backward(case, above), (q.grad, k.grad, v.grad), strict=True):
        assert np.allclose(ours, theirs.numpy(), atol=1e-9)
    if case.bias is not None:
        assert np.allclose(mask_gradient(case, above), mask.grad.numpy(), atol=1e-9)


def test_the_gradient_of_a_mask_is_summed_where_the_mask_is_broadcast():
    shapes = [case.bias.shape for case in maker().biases()]
    assert (5, 11) in shapes
    assert (2, 3, 5, 11) in shapes
    for case in maker().biases():
        assert mask_gradient(case, np.ones(case.output_shape)).shape == case.bias.shape


@pytest.mark.parametrize("disease", [d for d in GRADIENTS if d.references], ids=lambda d: d.id)
def test_a_wrong_gradient_is_wrong_somewhere(disease):
    for reference in disease.references:
        off = 0.0
        for case in maker().gradients():
            above = np.random.default_rng(1).normal(size=case.output_shape)
            truth = Truth(case, above, of_mask=case.bias is not None)
            try:
                wrong = reference(case, truth.grad_output)
            except ValueError:  # shapes do not fit
                continue
            pairs = zip(wrong, truth.gradients, truth.gradient_bounds("float32"))
            off = max(off, *(np.abs(w - right).max() / bound for w, right, bound in pairs))
        assert off > 100


# --- Inputs ---


@pytest.mark.parametrize("precision", ["float32", "float16", "bfloat16"])
@pytest.mark.parametrize("layout", ["BHTD", "TD"])
def test_inputs_hold_what_their_dtype_can_hold(precision, layout):
    make = maker(precision=precision, layout=layout)
    for group in GROUPS.values():
        for case in group(make):
            for x in (case.q, case.k, case.v):
                assert np.isfinite(x).all()
                assert np.array_equal(x, rounded(x, precision))
            assert np.abs(case.q @ np.repeat(case.k, case.q.shape[1] // case.k.shape[1], 1).mT
                          ).max() < 65504  # fmt: skip


def test_inputs_are_sensitive():
    shapes = [(*case.q.shape, case.T_k, case.v.shape[-1]) for case in maker().plain()]
    B, H, T_q, T_k, d_k, d_v = map(
        list, zip(*[(s[0], s[1], s[2], s[4], s[3], s[5]) for s in shapes])
    )
    assert all(math_is_no_square(d) and d != 64 for d in d_k)
    assert sum(a != b for a, b in zip(d_k, d_v)) > 8
    assert sum(a != b for a, b in zip(T_q, T_k)) > 8
    assert max(B) > 1
    assert max(H) > 1
    for block in (16, 32, 64, 128):
        assert any(block > T for T in T_k)
        assert any(block < T and T % block for T in T_k)
        assert any(block < T and T % block for T in T_q)
    assert any(np.unique(t.output).size < t.output.size for t in truths("plain", 0))  # ties
    assert truths("large", 0)[0].largest_score > 750


def math_is_no_square(d):
    return round(d**0.5) ** 2 != d


@pytest.mark.parametrize("scale", [None, 1, "1/d_k", 0.05, -0.3])
def test_large_scores_are_large_under_any_scale(scale):
    (case,) = maker(scale=scale).large()
    largest = np.abs(case.q @ case.k.mT * case.scale).max()
    assert largest > 750


def test_a_scale_of_zero_has_no_large_scores():
    assert maker(scale=0).large() == []


def test_no_seed_shares_its_numbers_with_another():
    first = [maker(seed).first().q.ravel()[0] for seed in range(50)]
    assert len(set(first)) == 50


# --- Rounding, layouts ---


@given(arrays(np.float32, 8, elements=st.floats(width=32, allow_nan=False)))
def test_rounding_to_bfloat16_is_that_of_torch(x):
    theirs = torch.from_numpy(x).to(torch.bfloat16).float().numpy()
    assert np.array_equal(rounded(x, "bfloat16"), theirs)


@pytest.mark.parametrize("precision", ["float16", "bfloat16"])
def test_rounding_twice_changes_nothing(precision):
    x = np.random.default_rng(0).normal(size=100) * 100
    once = rounded(x, precision)
    assert once.dtype == x.dtype
    assert not np.array_equal(once, x)
    assert np.array_equal(once, rounded(once, precision))
    assert np.array_equal(rounded(x, "float64"), x)


def test_dtypes_have_one_name():
    assert name_of(np.float32) == "" or name_of(np.dtype("float32")) == "float32"
    assert name_of(torch.bfloat16) == "bfloat16"
    assert name_of(np.dtype("int64")) == ""
    assert coarser("float32", "float16", "float64") == "float16"
    assert coarser("float16", "bfloat16") == "bfloat16"


@pytest.mark.parametrize("layout", LAYOUTS)
def test_layouts_there_and_back(layout):
    shape = [n if axis in layout else 1 for n, axis in zip((2, 3, 4, 5), "BHTD")]
    x = np.arange(np.prod(shape)).reshape(shape)
    there = arrange(x, layout)
    assert there.shape == tuple(dict(zip("BHTD", shape))[axis] for axis in layout)
    assert there.flags.c_contiguous
    assert np.array_equal(restore(there, layout), x)


def test_errors_count_nan_beside_nan_as_equal():
    rows = np.ones((1, 1, 2), dtype=bool)
    a = np.array([[[[np.nan, 1.0], [np.inf, 2.0]]]])
    assert largest_error(a, a, rows) == 0
    assert largest_error(a, np.nan_to_num(a), rows) == np.inf
    assert largest_error(a, a + np.array([0, 0.5]), rows) == 0.5
    assert largest_error(a, a[..., :1], rows) == np.inf
    assert largest_error(a, np.nan_to_num(a), np.zeros_like(rows)) == 0


# --- Signatures ---


@pytest.mark.parametrize(
    ("fn", "expected"),
    [
        (lambda q, k, v: 0, {}),
        (lambda *args: 0, {}),
        (lambda q, k, v, mask=None: 0, {"mask": "mask", "boolean_masks": True,
                                        "strict_masks": False}),
        (lambda q, k, v, attn_mask=None: 0, {"mask": "attn_mask", "float_masks": True}),
        (lambda q, k, v, attn_bias=None: 0, {"mask": "attn_bias", "boolean_masks": False}),
        (lambda q, k, v, causal=True: 0, {"causal": "causal", "causal_default": True}),
        (lambda q, k, v, sm_scale=None: 0, {"scale": "sm_scale"}),
        (lambda q, k, v, mask, dropout: 0, {"needed": {"mask": None, "dropout": 0.0}}),
        (lambda query, value, key: 0, {"qkv": ("query", "key", "value")}),
        (lambda K, Q, V: 0, {"qkv": ("Q", "K", "V")}),
        (lambda a, b, c: 0, {"qkv": None}),
        (lambda q, k, v, temperature=1: 0, {"scale": None}),
        (F.scaled_dot_product_attention, {"mask": "attn_mask", "causal": "is_causal",
                                          "scale": "scale", "gqa": "enable_gqa", "needed": {}}),
    ],
)  # fmt: skip
def test_how_a_function_is_called(fn, expected):
    manner = read(fn)
    assert {name: getattr(manner, name) for name in expected} == expected


@pytest.mark.parametrize("fn", [lambda q, k: 0, lambda: 0, lambda q, k, v, bandwidth: 0, abs])
def test_what_takes_no_queries_keys_and_values(fn):
    if fn is abs:
        assert len(inspect.signature(fn).parameters) == 1
    with pytest.raises(CannotCall):
        read(fn)


@pytest.mark.parametrize(
    "x", [None, "text", np.array([1j]), [[1], [1, 2]], object(), np.array(["a"])], ids=type
)
def test_what_is_no_numbers(x):
    with pytest.raises(NotNumbers):
        numbers_of(x)
