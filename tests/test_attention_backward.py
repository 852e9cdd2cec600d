"""The analytic gradient against torch's autograd, finite differences, and its own definitions."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.nn.attention import SDPBackend, sdpa_kernel

from helpers.attention import attention_backward, attention_steps, softmax, softmax_jacobian

sizes = st.integers(1, 6)


def by_autograd(q, k, v, grad_output, **kwargs):
    tensors = [torch.tensor(x, requires_grad=True) for x in (q, k, v)]
    if isinstance(kwargs.get("attn_mask"), np.ndarray):
        kwargs["attn_mask"] = torch.tensor(kwargs["attn_mask"])
    with sdpa_kernel(SDPBackend.MATH):
        output = torch.nn.functional.scaled_dot_product_attention(*tensors, **kwargs)
    output.backward(torch.tensor(grad_output))
    return [t.grad.numpy() for t in tensors]


def assert_same(got, expected):
    for name, a, b in zip("qkv", got, expected):
        assert a.shape == b.shape
        np.testing.assert_allclose(a, b, rtol=0, atol=1e-10, err_msg=f"d{name}")


@settings(max_examples=60, deadline=None, derandomize=True)
@given(
    seed=st.integers(0, 2**32 - 1), T_q=sizes, T_k=sizes, d_k=sizes, d_v=sizes,
    lead=st.sampled_from(
        [((), (), ()), ((2,), (2,), (2,)), ((2, 3), (1, 3), (3,)), ((), (2,), (2,))]
    ),
    kind=st.sampled_from(["none", "causal", "boolean", "additive"]),
    scale=st.sampled_from([None, 1.0, 0.1, -0.7]),
)  # fmt: skip
def test_agrees_with_autograd(seed, T_q, T_k, d_k, d_v, lead, kind, scale):
    rng = np.random.default_rng(seed)
    shapes = [(*a, *b) for a, b in zip(lead, [(T_q, d_k), (T_k, d_k), (T_k, d_v)])]
    q, k, v = (rng.standard_normal(shape) for shape in shapes)
    mask = None
    if kind == "boolean":
        mask = rng.random((T_q, T_k)) < 0.7
        mask[:, 0] = True  # autograd gives nan where nothing may be attended
    elif kind == "additive":
        mask = rng.standard_normal((T_q, T_k))
    kwargs = {"attn_mask": mask, "is_causal": kind == "causal", "scale": scale}
    output = attention_steps(q, k, v, **kwargs).output
    grad_output = rng.standard_normal(output.shape)
    got = attention_backward(q, k, v, grad_output, **kwargs)
    assert_same(got, by_autograd(q, k, v, grad_output, **kwargs))


@pytest.mark.parametrize("which", [0, 1, 2])
def test_agrees_with_finite_differences(which):
    rng = np.random.default_rng(5)
    inputs = [rng.standard_normal(shape) for shape in ((3, 4), (5, 4), (5, 2))]
    grad_output = rng.standard_normal((3, 2))

    def loss(x):
        changed = [*inputs[:which], x, *inputs[which + 1 :]]
        return (attention_steps(*changed, is_causal=True).output * grad_output).sum()

    x, step = inputs[which], 1e-6
    expected = np.zeros_like(x)
    for i in np.ndindex(x.shape):
        nudge = np.zeros_like(x)
        nudge[i] = step
        expected[i] = (loss(x + nudge) - loss(x - nudge)) / (2 * step)
    got = attention_backward(*inputs, grad_output, is_causal=True)[which]
    np.testing.assert_allclose(got, expected, rtol=0, atol=1e-8)


def test_a_fully_masked_row_passes_no_gradient():
    rng = np.random.default_rng(6)
    q, k, v = (rng.standard_normal((3, 4)) for _ in range(3))
    mask = np.array([[True] * 3, [False] * 3, [True] * 3])
    dq, dk, dv = attention_backward(q, k, v, np.ones((3, 4)), attn_mask=mask)
    assert (dq[1] == 0).all()
    assert np.isfinite([dk, dv]).all()


def test_inputs_keep_dtype_and_content():
    q, k, v = (np.ones((2, 3), np.float16) * x for x in (1, 2, 3))
    before = [x.copy() for x in (q, k, v)]
    gradients = attention_backward(q, k, v, np.ones((2, 3), np.float16))
    assert [g.dtype for g in gradients] == [np.float16] * 3
    assert all((a == b).all() for a, b in zip(before, (q, k, v)))


def test_a_gradient_of_another_shape_is_refused():
    with pytest.raises(ValueError, match=r"grad_output has shape \(2, 3\).*\(2, 2\)"):
        attention_backward(np.eye(2), np.eye(2), np.eye(2), np.ones((2, 3)))


# ── the Jacobian ─────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("gain", [0, 1, 5, 50])
def test_jacobian_against_finite_differences(gain):
    z = gain * np.random.default_rng(7).standard_normal((4, 6))
    jacobian, step = softmax_jacobian(softmax(z)), 1e-6
    for j in range(6):
        nudge = step * np.eye(6)[j]
        expected = (softmax(z + nudge) - softmax(z - nudge)) / (2 * step)
        np.testing.assert_allclose(jacobian[..., j], expected, rtol=0, atol=1e-9)


@settings(max_examples=100, deadline=None, derandomize=True)
@given(z=st.lists(st.floats(-30, 30), min_size=2, max_size=8))
def test_jacobian_is_symmetric_sums_to_zero_and_stays_below_a_half(z):
    jacobian = softmax_jacobian(softmax(np.array(z)))
    np.testing.assert_allclose(jacobian, jacobian.T)
    np.testing.assert_allclose(jacobian.sum(axis=1), 0, atol=1e-12)
    eigenvalues = np.linalg.eigvalsh(jacobian)
    assert eigenvalues[-1] <= 0.5 + 1e-12
    assert eigenvalues[0] >= -1e-12


def test_jacobian_at_the_ends():
    assert np.linalg.eigvalsh(softmax_jacobian([0.5, 0.5, 0]))[-1] == pytest.approx(0.5)
    assert (softmax_jacobian([0, 1, 0]) == 0).all()
    uniform = softmax_jacobian(np.full(8, 1 / 8))
    assert np.linalg.eigvalsh(uniform)[-1] == pytest.approx(1 / 8)
    with pytest.raises(ValueError, match="softmax"):
        softmax_jacobian([2.0, 1.0, 0.5])
