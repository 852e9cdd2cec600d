"""The Triton kernels compute attention and its gradients, whatever the shape.

Without a GPU they run in Triton's interpreter: the arithmetic and the addresses are tested, not the
compiler (`test_flash_triton_compiled.py`) nor the chip (`gpu_flash.py`).

How near is near enough? The rule of the reference library's own tests: with `ref` computed in
float64 from the same inputs and `plain` by ordinary attention in the inputs' dtype, the error may
be twice that of `plain` (gradients: three times), and a floor where `plain` is exact by luck.
Source: github.com/Dao-AILab/flash-attention, tests/test_flash_attn.py.
"""

import math
import os
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path

import pytest
import torch
import torch.nn.functional as F
from hypothesis import given, settings
from hypothesis import strategies as st

from helpers import flash_triton
from helpers.doctor import examine
from helpers.flash_triton import available, block_sizes, checks, config, flash_attention, runtime

ROOT = Path(__file__).resolve().parent.parent
HERE = available()
needs_triton = pytest.mark.skipif(not HERE, reason=HERE.reason)
DEVICE = "cuda" if HERE and torch.cuda.is_available() and not runtime.interpreted() else "cpu"

HALF, BRAIN, SINGLE = torch.float16, torch.bfloat16, torch.float32


@contextmanager
def small_blocks(own=32, walk=16):
    """In the interpreter: so small that short inputs have several, cheap in its time."""
    before, config.INTERPRETER = config.INTERPRETER, config.Blocks(own, walk, 1, 1)
    try:
        yield
    finally:
        config.INTERPRETER = before


@contextmanager
def poisoned_memory():
    """New memory is full of NaN, so that what a kernel does not write shows. Yields its shapes."""
    empty, shapes = torch.empty, []

    def poisoned(*size, **options):
        made = empty(*size, **options)
        shapes.append(tuple(made.shape))
        return made.fill_(math.nan) if made.is_floating_point() else made

    torch.empty = poisoned
    try:
        yield shapes
    finally:
        torch.empty = empty


# --- Near enough ---------------------------------------------------------------------------------


def ordinary(q, k, v, is_causal=False, scale=None):
    """Attention with all its matrices, in the dtype of its inputs. Heads of k and v are shared."""
    group = q.shape[1] // k.shape[1]
    k, v = (x.repeat_interleave(group, 1) for x in (k, v))
    scores = (q @ k.mT) * (1 / math.sqrt(q.shape[-1]) if scale is None else scale)
    if is_causal:
        allowed = torch.ones(scores.shape[-2:], dtype=torch.bool, device=q.device).tril()
        scores = scores.masked_fill(~allowed, -math.inf)
    return torch.softmax(scores, -1) @ v


def with_gradients(function, inputs, do, dtype):
    """[O, dQ, dK, dV] of one function, computed from the same inputs in another dtype."""
    leaves = [x.detach().to(dtype).requires_grad_() for x in inputs]
    o = function(*leaves)
    return [o.detach(), *torch.autograd.grad(o, leaves, do.to(dtype))]


def errors(inputs, do, **options):
    """(name, error, plain attention's error, bound) for our output and each of our gradients."""
    with poisoned_memory():
        leaves = [x.detach().requires_grad_() for x in inputs]  # keeps the strides
        o = flash_attention(*leaves, enable_gqa=True, **options)
        ours = [o.detach(), *torch.autograd.grad(o, leaves, do)]
    dtype = inputs[0].dtype
    ref = with_gradients(lambda *x: ordinary(*x, **options), inputs, do, torch.float64)
    plain = with_gradients(lambda *x: ordinary(*x, **options), inputs, do, dtype)
    for name, a, r, p in zip(("O", "dQ", "dK", "dV"), ours, ref, plain):
        assert (a.dtype, a.shape) == (dtype, r.shape)
        error, plain_error = ((x.double() - r).abs().max().item() for x in (a, p))
        floor = 32 * torch.finfo(dtype).eps * max(1, r.abs().max().item())
        yield name, error, plain_error, (2 if name == "O" else 3) * plain_error + floor


def assert_near(inputs, do, **options):
    """Our output and gradients against float64, as near as plain attention is."""
    for name, error, plain, bound in errors(inputs, do, **options):
        assert error <= bound, f"{name}: off by {error:.3g}, plain attention by {plain:.3g}"


def draw(sizes, dtype, seed=0):
    """Normal q, k, v and dO for (B, H, H_kv, T_q, T_k, D)."""
    B, H, H_kv, T_q, T_k, D = sizes
    generator = torch.Generator().manual_seed(seed)
    shapes = (B, H, T_q, D), (B, H_kv, T_k, D), (B, H_kv, T_k, D), (B, H, T_q, D)
    drawn = [torch.randn(shape, generator=generator).to(dtype).to(DEVICE) for shape in shapes]
    return drawn[:3], drawn[3]


SIZES = [  # B, H, H_kv, T_q, T_k, D
    (1, 1, 1, 1, 1, 16),
    (2, 3, 3, 15, 17, 40),
    (2, 1, 1, 17, 33, 72),
    (1, 2, 1, 33, 15, 80),
    (1, 1, 1, 32, 32, 96),
    (1, 1, 1, 20, 33, 128),
    (1, 1, 1, 17, 17, 256),
    (1, 4, 2, 1, 65, 64),
    (1, 6, 2, 34, 1, 24),
    (1, 1, 1, 65, 65, 16),
]
if DEVICE == "cuda":
    SIZES += [(2, 8, 2, 1023, 1025, D) for D in (16, 40, 64, 80, 96, 128, 192, 256)]


@needs_triton
@pytest.mark.parametrize("is_causal", [False, True], ids=["full", "causal"])
@pytest.mark.parametrize("sizes", SIZES, ids=str)
def test_output_and_gradients(sizes, is_causal):
    for dtype in (HALF, BRAIN, SINGLE) if DEVICE == "cuda" else (SINGLE,):
        with small_blocks():
            assert_near(*draw(sizes, dtype), is_causal=is_causal)


@needs_triton
@pytest.mark.parametrize("dtype", [HALF, BRAIN], ids=str)
@pytest.mark.parametrize("blocks", [(32, 16), (16, 32)], ids=str)
def test_half_precision_and_other_blocks(dtype, blocks):
    with small_blocks(*blocks):
        assert_near(*draw((1, 2, 1, 35, 37, 24), dtype), is_causal=True)


def contiguous(x):
    return x


def heads_inside(x):
    """(B, T, H, D) in memory, as a projection leaves it."""
    return x.transpose(1, 2).contiguous().transpose(1, 2)


def every_second(x):
    """The last axis has a stride of 2."""
    return x.repeat_interleave(2, -1)[..., ::2]


def cut_out(x):
    """Part of a larger tensor: starts late, and rows are further apart than D."""
    return F.pad(x, (3, 5, 2, 1))[..., 2:-1, 3:-5]


def one_for_all(x):
    """Every batch entry and head is the same memory: strides of 0."""
    return x[:1, :1].expand(x.shape)


def upside_down_in_memory(x):
    """(D, T, H, B) in memory."""
    return x.permute(3, 2, 1, 0).contiguous().permute(3, 2, 1, 0)


LAYOUTS = [contiguous, heads_inside, every_second, cut_out, one_for_all, upside_down_in_memory]


@needs_triton
@pytest.mark.parametrize("layout", LAYOUTS, ids=lambda f: f.__name__)
def test_any_strides(layout):
    inputs, do = draw((2, 2, 2, 18, 20, 16), SINGLE)
    inputs = [layout(x) for x in inputs]
    with small_blocks():
        assert_near(inputs, layout(do), is_causal=True)


@needs_triton
def test_gradient_of_a_sum():
    """Its dO is one number, expanded: every stride is 0."""
    inputs, do = draw((1, 1, 1, 5, 7, 16), SINGLE)
    with small_blocks():
        assert_near(inputs, do.new_ones(()).expand(do.shape))


@needs_triton
def test_only_what_must_be_is_copied():
    from helpers.flash_triton import launch

    x = torch.zeros(2, 3, 4, 16)
    for layout in LAYOUTS:
        laid_out = layout(x)
        kept = launch.readable(laid_out) is laid_out
        assert kept == (layout not in (every_second, upside_down_in_memory)), layout.__name__
    far_apart = torch.empty_strided((1, 1, 2, 16), (2**26, 2**26, 2**25, 1), device="meta")
    assert launch.readable(far_apart).stride(2) == 16


@needs_triton
@settings(max_examples=12 if DEVICE == "cpu" else 60, deadline=None, derandomize=True)
@given(data=st.data())
def test_random_shapes(data):
    B, group, H_kv = (data.draw(st.integers(1, 2)) for _ in range(3))
    T_q, T_k, D = (data.draw(st.integers(1, most)) for most in (40, 40, 70))
    dtype = data.draw(st.sampled_from([SINGLE, HALF, BRAIN]))
    inputs, do = draw((B, group * H_kv, H_kv, T_q, T_k, D), dtype, data.draw(st.integers(0, 99)))
    inputs = [data.draw(st.sampled_from(LAYOUTS))(x) for x in inputs]
    scale = data.draw(st.sampled_from([None, 0.3, -1.0, 0.0]))
    with small_blocks(*data.draw(st.sampled_from([(32, 16), (16, 32)]))):
        assert_near(inputs, do, is_causal=data.draw(st.booleans()), scale=scale)


# --- Numbers -------------------------------------------------------------------------------------


@needs_triton
@pytest.mark.parametrize("dtype", [SINGLE, HALF], ids=str)
def test_large_scores_do_not_overflow(dtype):
    """Scores of some 10,000: no format holds their exponentials, nor float16 them unscaled."""
    (q, k, v), _ = draw((1, 1, 1, 18, 40, 64), dtype)
    q, k = 60 * q, 60 * k
    with small_blocks(), poisoned_memory():
        out = flash_attention(q, k, v)
    ref, plain = (ordinary(*(x.to(d) for x in (q, k, v))) for d in (torch.float64, SINGLE))
    floor = 32 * torch.finfo(dtype).eps * ref.abs().max()
    assert (q.float() @ k.float().mT).abs().max() > 65504
    assert (out.double() - ref).abs().max() <= 2 * (plain.double() - ref).abs().max() + floor


@needs_triton
def test_keys_outside_do_not_count():
    """Scores so negative that a missing key, scored 0, would take all the weight."""
    (q, k, v), do = draw((1, 1, 1, 5, 5, 16), SINGLE)
    with small_blocks():
        assert_near([q.abs() * 20, -k.abs() * 20, v], do)


@needs_triton
def test_the_first_query_sees_key_0_alone():
    """Upper left, as torch: with one new query against many keys that is key 0 too."""
    (q, k, v), _ = draw((1, 1, 1, 1, 40, 16), SINGLE)
    with small_blocks():
        torch.testing.assert_close(flash_attention(q, k, v, is_causal=True), v[:, :, :1])


@needs_triton
def test_as_torch_itself():
    (q, k, v), _ = draw((2, 4, 2, 19, 23, 32), SINGLE)
    options = {"is_causal": True, "scale": 0.2, "enable_gqa": True}
    with small_blocks():
        ours = flash_attention(q, k, v, **options)
    torch.testing.assert_close(ours, F.scaled_dot_product_attention(q, k, v, **options))


@needs_triton
def test_same_bits_every_time():
    inputs, do = draw((1, 2, 1, 35, 33, 16), HALF)
    with small_blocks():
        runs = [
            with_gradients(lambda *x: flash_attention(*x, True, None, True), inputs, do, HALF)
            for _ in range(10 if DEVICE == "cuda" else 3)
        ]
    for run in runs[1:]:
        assert all(torch.equal(a, b) for a, b in zip(run, runs[0]))


@needs_triton
def test_no_matrix_of_queries_and_keys():
    """Neither allocated in a pass nor kept between the two."""
    T_q, T_k, D = 48, 64, 16
    inputs, do = draw((1, 1, 1, T_q, T_k, D), SINGLE)
    leaves = [x.requires_grad_() for x in inputs]
    with small_blocks(), poisoned_memory() as shapes:
        out = flash_attention(*leaves)
        kept = [tuple(x.shape) for x in out.grad_fn.saved_tensors]
        out.backward(do)
    assert kept == [(1, 1, T_q, D), *[(1, 1, T_k, D)] * 2, (1, 1, T_q, D), (1, 1, T_q)]
    assert shapes
    assert max(math.prod(shape) for shape in shapes) < T_q * T_k


@needs_triton
def test_lse_is_what_it_says():
    from helpers.flash_triton import launch

    (q, k, v), _ = draw((1, 2, 2, 20, 40, 16), SINGLE)
    with small_blocks():
        _, lse = launch.forward(q, k, v, False, 0.3)
    torch.testing.assert_close(lse, torch.logsumexp(0.3 * q @ k.mT, -1))


@needs_triton
def test_the_doctor_finds_nothing():
    diagnosis = examine(
        flash_attention, framework="torch", d_k=12, d_v=12, seconds=300,
        device=None if DEVICE == "cpu" else DEVICE,
    )  # fmt: skip
    assert diagnosis.sound, str(diagnosis)


# --- What is refused -----------------------------------------------------------------------------


def zeros(*shape, **options):
    return torch.zeros(shape, **options)


GOOD = zeros(1, 2, 5, 16)
REFUSED = [
    (([1], GOOD, GOOD), {}, TypeError, "query is of type list"),
    ((GOOD.to_sparse(), GOOD, GOOD), {}, TypeError, "to_dense"),
    ((GOOD, GOOD, GOOD.double()), {}, TypeError, "value has dtype torch.float64"),
    (
        (GOOD, GOOD.half(), GOOD),
        {},
        TypeError,
        "differ in dtype: query torch.float32",
    ),
    ((GOOD, GOOD.to("meta"), GOOD), {}, ValueError, "differ in device: query cpu, key meta"),
    ((GOOD[0], GOOD, GOOD), {}, ValueError, "(2, 5, 16), but must have the four axes"),
    ((zeros(1, 2, 0, 16), GOOD, GOOD), {}, ValueError, "query has shape (1, 2, 0, 16)"),
    ((GOOD, zeros(1, 2, 0, 16), zeros(1, 2, 0, 16)), {}, ValueError, "key has shape (1, 2, 0, 16)"),
    ((GOOD, GOOD, zeros(1, 2, 6, 16)), {}, ValueError, "value (1, 2, 6, 16)"),
    ((GOOD, GOOD, zeros(1, 2, 5, 8)), {}, ValueError, "the head size too"),
    ((zeros(3, 2, 5, 16), GOOD, GOOD), {}, ValueError, "query has batch size 3"),
    ((zeros(1, 2, 5, 32), GOOD, GOOD), {}, ValueError, "query has head size 32"),
    ((zeros(1, 1, 1, 257),) * 3, {}, ValueError, "257, but at most 256"),
    ((zeros(1, 4, 5, 16), GOOD, GOOD), {}, ValueError, "4 heads, key and value have 2"),
    ((zeros(1, 3, 5, 16), GOOD, GOOD), {"enable_gqa": True}, ValueError, "multiple"),
    ((GOOD,) * 3, {"enable_gqa": 1}, TypeError, "enable_gqa is 1"),
    ((GOOD,) * 3, {"is_causal": None}, TypeError, "is_causal is None"),
    ((GOOD,) * 3, {"scale": "1"}, TypeError, "scale is '1'"),
    ((GOOD,) * 3, {"scale": math.inf}, ValueError, "scale is inf"),
]


@pytest.mark.parametrize(
    ("inputs", "options", "error", "words"), REFUSED, ids=[case[3][:20] for case in REFUSED]
)
def test_refused(inputs, options, error, words):
    with pytest.raises(error) as caught:
        flash_attention(*inputs, **options)
    assert words in str(caught.value)
    assert str(caught.value).endswith(".")


@needs_triton
def test_differentiable_once():
    q, do = (torch.ones(1, 1, 3, 16, device=DEVICE, requires_grad=True) for _ in range(2))
    with small_blocks():
        (dq,) = torch.autograd.grad(flash_attention(q, q, q), q, do, create_graph=True)
    with pytest.raises(RuntimeError, match="once_differentiable"):
        dq.sum().backward()


def test_the_scale_is_one_over_root_d():
    assert checks.arguments(GOOD, GOOD, GOOD, False, None, False) == 1 / 4


# --- Where it runs -------------------------------------------------------------------------------


def run_python(code):
    env = {name: value for name, value in os.environ.items() if name != "TRITON_INTERPRET"}
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=ROOT,
        env=env,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_import_without_triton():
    """Windows, macOS: importing works, calling says why not."""
    said = run_python(
        "import sys; sys.modules['triton'] = None\n"
        "import torch\n"
        "from helpers.flash_triton import available, block_sizes, flash_attention\n"
        "assert not available()\n"
        "block_sizes((9, 0), 64, torch.float16)\n"
        "x = torch.zeros(1, 1, 4, 16)\n"
        "try: flash_attention(x, x, x)\n"
        "except RuntimeError as error: print(error)\n"
    )
    assert "Triton cannot be imported" in said


@needs_triton
@pytest.mark.skipif(torch.cuda.is_available(), reason="is about machines without a GPU")
def test_triton_imported_too_early():
    said = run_python(
        "import triton\nfrom helpers.flash_triton import available\nprint(bool(available()))\n"
        "print(available().reason)"
    )
    assert said.startswith("False\n")
    assert "before anything that imports Triton" in said


@needs_triton
@pytest.mark.skipif(torch.cuda.is_available(), reason="is about machines without a GPU")
def test_interpreter_without_being_asked():
    assert "interpreter" in HERE.reason
    assert runtime.interpreted()
    assert os.environ["TRITON_INTERPRET"] == "1"


# --- Block sizes ---------------------------------------------------------------------------------


@pytest.mark.parametrize("backward", [False, True])
@pytest.mark.parametrize("dtype", [HALF, BRAIN, SINGLE], ids=str)
def test_block_sizes_are_valid(dtype, backward):
    for capability in [*config.SHARED_MEMORY, (13, 0)]:
        if dtype == BRAIN and capability == (7, 5):
            continue
        for d_head in range(1, 257):
            blocks = block_sizes(capability, d_head, dtype, backward)
            assert blocks.own in (8, 16, 32, 64, 128)
            assert blocks.walk in (16, 32, 64, 128)  # tl.dot sums over at least 16
            assert blocks.num_warps in (1, 2, 4, 8)
            assert 1 <= blocks.num_stages <= 4


def test_a_tile_is_a_power_of_two():
    sides = {1: 16, 16: 16, 17: 32, 40: 64, 72: 128, 128: 128, 129: 256, 256: 256}
    assert {d: config.tile_side(d) for d in sides} == sides


def test_no_block_sizes():
    with pytest.raises(ValueError, match=r"capability 7\.0"):
        block_sizes((7, 0), 64, HALF)
    with pytest.raises(TypeError, match=r"bfloat16.*7\.5"):
        block_sizes((7, 5), 64, BRAIN)
    with pytest.raises(ValueError, match="257"):
        block_sizes((9, 0), 257, HALF)


def test_what_the_package_offers():
    assert all(hasattr(flash_triton, name) for name in flash_triton.__all__)
