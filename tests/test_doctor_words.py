"""What the doctor says and shows, what it survives, and the arguments that it takes."""

import linecache
import re
import subprocess
import sys
import threading
import time

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from doctor_cases import DISEASED
from doctor_cases.patients import additive, diagnose, safe, scores, soft

import helpers.doctor.patient
from helpers.attention import scaled_dot_product_attention
from helpers.doctor import examine
from helpers.pictures.difference import difference

# A NumPy function with k.T, tried on tensors.
pytestmark = pytest.mark.filterwarnings("ignore:The use of `x.T`")

# --- What a diagnosis tells ---


def no_scale(q, k, v):
    return soft(q @ k.mT) @ v


def test_the_evidence_compares_with_candidates():
    diagnosis = examine(no_scale)
    assert diagnosis.errors["no-scale"] < 1e-5
    assert diagnosis.errors["right"] > 0.1
    assert diagnosis.errors["divided-by-d_k"] > 0.1
    assert len(diagnosis.errors) > 50
    assert re.search(r"no-scale +agrees", diagnosis.evidence)
    assert re.search(r"the right result +\d", diagnosis.evidence)
    assert "Effective scale for d_k = 12: 1, where 0.289 is right." in diagnosis.evidence


def test_the_input_that_shows_it_can_be_used():
    diagnosis = examine(no_scale)
    right = scaled_dot_product_attention(**rename(diagnosis.inputs))
    off = np.abs(no_scale(**diagnosis.inputs) - right)
    assert np.isclose(off.max(), diagnosis.errors["right"], rtol=1e-3)
    assert np.isclose(diagnosis.difference.max(), off.max(), rtol=1e-3)
    assert any(
        np.allclose(x, diagnosis.difference, atol=1e-4) for x in off.reshape(-1, *off.shape[2:])
    )


def rename(inputs):
    return {{"q": "query", "k": "key", "v": "value"}.get(n, n): x for n, x in inputs.items()}


def test_other_arguments_are_among_the_inputs():
    def inverted(q, k, v, attn_mask=None):
        boolean = attn_mask is not None and attn_mask.dtype == bool
        return safe(scores(q, k) + additive(~attn_mask if boolean else attn_mask)) @ v

    given = examine(inverted).inputs
    assert given["attn_mask"].dtype == bool
    right = scaled_dot_product_attention(**rename(given))
    assert np.abs(right - inverted(**given)).max() > 0.1


@pytest.mark.parametrize("patient", DISEASED[::12], ids=str)
def test_a_diagnosis_reads_the_same_every_time(patient):
    assert str(diagnose(patient)) == str(diagnose(patient))


def test_several_diseases_are_all_told():
    def sick(q, k, v, mask=None, is_causal=False):
        q *= 1
        s = scores(q, k)
        if mask is not None:
            s = np.where(mask, -np.inf, s)
        k += 1
        return soft(s) @ v

    diagnosis = examine(sick)
    assert diagnosis.name == "causal-ignored"
    told = " ".join(diagnosis.remarks)
    assert "mask-inverted" in told
    assert "changes-its-input" in told
    assert "mask-inverted" in str(diagnosis)


def test_sets_are_told_as_sets():
    def by_d_k(q, k, v):
        return soft(q @ k.mT / q.shape[-1]) @ v

    diagnosis = examine(by_d_k)
    assert diagnosis.name == "divided-by-d_k|scale-twice"
    assert "One of these; no input can tell them apart" in str(diagnosis)
    assert len(diagnosis.links) == 2
    assert examine(by_d_k, scale="1/d_k").sound


def test_a_sound_function_is_told_what_was_not_looked_at():
    text = str(examine(lambda q, k, v: soft(scores(q, k)) @ v))
    assert "Not looked at" in text
    assert "grouped heads" in text
    assert "boolean masks" in text
    assert "Not looked at" not in str(examine(F.scaled_dot_product_attention))


def test_refusals_are_remarks():
    def careful(q, k, v, attn_mask=None, is_causal=False):
        if is_causal and q.shape[-2] != k.shape[-2]:
            raise ValueError("which corner?")
        if attn_mask is not None and attn_mask.dtype != bool:
            raise TypeError("booleans, please")
        return scaled_dot_product_attention(q, k, v, attn_mask, is_causal)

    diagnosis = examine(careful)
    assert diagnosis.sound
    assert "refuses queries and keys that differ in number" in diagnosis.remarks[0]
    assert "booleans, please" in diagnosis.remarks[1]


@pytest.mark.parametrize("name", ["is_causal", "attn_mask", "scale"])
def test_the_argument_that_is_dropped_is_named(name):
    def sick(q, k, v, attn_mask=None, is_causal=False, scale=None, enable_gqa=False):
        given = {"attn_mask": attn_mask, "is_causal": is_causal, "scale": scale}
        if enable_gqa:
            given[name] = {"is_causal": False}.get(name)
        return scaled_dot_product_attention(q, k, v, **given, enable_gqa=enable_gqa)

    diagnosis = examine(sick)
    assert diagnosis.name == "argument-dropped"
    assert f"Of `{name}` together with `enable_gqa`, `{name}` has no effect." in diagnosis.evidence
    assert diagnosis.evidence.count("has no effect") == 1


def test_a_mask_together_with_causality_may_be_refused():
    refusal = "It refuses `is_causal` together with `attn_mask`."
    assert examine(scaled_dot_product_attention).remarks == (refusal,)
    assert examine(F.scaled_dot_product_attention).remarks == (refusal,)


@pytest.mark.parametrize(
    ("error", "sound"), [("raise ValueError('not both')", True), ("0/0", False)]
)
def test_other_pairs_may_be_refused_in_so_many_words(error, sound):
    space = {"right": scaled_dot_product_attention}
    code = f"""
def fn(q, k, v, is_causal=False, enable_gqa=False):
    if is_causal and enable_gqa:
        {error}
    return right(q, k, v, is_causal=is_causal, enable_gqa=enable_gqa)
"""
    linecache.cache["pairs.py"] = (len(code), None, code.splitlines(True), "pairs.py")
    exec(compile(code, "pairs.py", "exec"), space)
    diagnosis = examine(space["fn"])
    assert diagnosis.sound == sound, diagnosis
    if sound:
        assert diagnosis.remarks == ("It refuses `is_causal` together with `enable_gqa`.",)
    else:
        assert diagnosis.name == "raises"


def test_the_dtype_that_shows_it_is_told():
    def sick(q, k, v, is_causal=False):
        causal = is_causal and q.dtype == torch.float32
        return F.scaled_dot_product_attention(q, k, v, is_causal=causal)

    diagnosis = examine(sick)
    assert diagnosis.name == "causal-ignored"
    assert "; torch, bfloat16." in diagnosis.evidence
    assert "In float32 all is right" in diagnosis.evidence


def test_html_is_escaped():
    def raises(q, k, v):
        raise ValueError("<script>alert(1)</script> & more")

    page = examine(raises)._repr_html_()
    assert "<script>" not in page
    assert "&lt;script&gt;" in page


# --- Pictures ---


def test_a_picture_shows_where_the_output_differs():
    def last_row(q, k, v):
        out = soft(scores(q, k)) @ v
        out[..., -1, :] += 0.5
        return out

    figure = examine(last_row).picture()
    assert figure.svg.startswith("<svg")
    assert "Largest error 0.5, at query" in figure.words
    assert set(figure._repr_mimebundle_()[0]) == {"image/png", "text/plain"}


def test_a_picture_of_nan():
    figure = examine(lambda q, k, v: np.full((*q.shape[:-1], v.shape[-1]), np.nan)).picture()
    assert "nan or inf for 9 of the queries, first for query 0" in figure.words
    assert "nan or inf" in figure.svg


def test_a_large_picture_is_drawn_in_groups():
    errors = np.zeros((150, 30))
    errors[37, 4], errors[140] = 3e-4, np.nan
    figure = difference(errors)
    assert "query 30–39" in figure.svg
    assert "3–5" in figure.svg
    assert "units of 10⁻⁴" in figure.words
    assert "Largest error 0.0003, at query 37, feature 4" in figure.words
    assert "nan or inf for 1 of the queries, first for query 140" in figure.words
    assert difference(errors).svg == figure.svg


@pytest.mark.parametrize("shape", [(3,), (0, 4), (2, 2, 2)])
def test_a_picture_needs_a_table(shape):
    with pytest.raises(ValueError, match="queries, features"):
        difference(np.zeros(shape))


def test_without_numbers_there_is_no_picture():
    with pytest.raises(ValueError, match="returns-nothing"):
        examine(lambda q, k, v: None).picture()


# --- Whatever the function does ---


def test_the_random_numbers_of_others_stay_as_they_are():
    before = np.random.get_state()[1].copy(), torch.get_rng_state()  # noqa: NPY002
    examine(F.scaled_dot_product_attention)
    examine(no_scale)
    assert np.array_equal(before[0], np.random.get_state()[1])  # noqa: NPY002
    assert torch.equal(before[1], torch.get_rng_state())


def test_it_works_in_another_thread():
    box = []
    thread = threading.Thread(target=lambda: box.append(examine(no_scale)))
    thread.start()
    thread.join()
    assert box[0].name == "no-scale"


def test_what_cannot_be_stopped_is_left_behind():
    diagnosis = examine(lambda q, k, v: time.sleep(1.5), seconds=0.02)
    assert diagnosis.name == "did-not-finish"
    assert "could not be stopped" in diagnosis.evidence


def test_a_slow_function_gets_more_time_on_request(monkeypatch):
    def slow(q, k, v):
        time.sleep(0.1)
        return soft(scores(q, k)) @ v

    with monkeypatch.context() as patched:
        patched.setattr(helpers.doctor.patient, "_CALLS", 1)
        diagnosis = examine(slow, seconds=1)
    assert diagnosis.name == "too-slow"
    assert "seconds=" in diagnosis.fix
    assert examine(slow, seconds=2).sound


@pytest.mark.parametrize(
    "fn", [F.scaled_dot_product_attention, scaled_dot_product_attention], ids=["torch", "numpy"]
)
def test_a_whole_examination_takes_less_than_three_seconds(fn):
    examine(fn)  # lazy imports are not what is measured
    start = time.process_time()
    assert examine(fn).sound
    assert time.process_time() - start < 3


def run_python(code):
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)


def test_numpy_functions_need_no_torch():
    code = (
        "import sys, numpy as np\n"
        "from helpers.doctor import examine\n"
        "from helpers.attention import scaled_dot_product_attention as right\n"
        "assert examine(right).sound\n"
        "assert examine(lambda q, k, v: q @ k).name == 'raises'\n"
        "print([m for m in ('torch', 'matplotlib', 'ipywidgets') if m in sys.modules])"
    )
    assert run_python(code).stdout.strip() == "[]"


def test_torch_functions_are_recognised_when_torch_came_later():
    code = (
        "from helpers.doctor import examine\n"
        "def lazy(q, k, v):\n"
        "    import torch\n"
        "    return torch.nn.functional.scaled_dot_product_attention(q, k, v)\n"
        "print(examine(lazy).sound)"
    )
    assert run_python(code).stdout.strip() == "True"


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
def test_on_the_gpu():
    assert examine(F.scaled_dot_product_attention, device="cuda").sound
    assert (
        examine(lambda q, k, v: torch.softmax(q @ k.mT, -1) @ v, device="cuda").name == "no-scale"
    )


def test_a_device_can_be_named():
    diagnosis = examine(F.scaled_dot_product_attention, device="cpu")
    assert diagnosis.sound
    assert "torch" in diagnosis.evidence


# --- Arguments ---


@pytest.mark.parametrize(
    ("said", "error", "sentence"),
    [
        ({"scale": "1/d"}, ValueError, "1/d_k"),
        ({"scale": float("nan")}, ValueError, "finite"),
        ({"scale": True}, TypeError, "scale"),
        ({"scale": lambda d: "x"}, TypeError, "scale"),
        ({"causal": 1}, TypeError, "causal"),
        ({"causal_alignment": "bottom_right"}, ValueError, "lower_right"),
        ({"mask_true_means": "ignore"}, ValueError, "masked"),
        ({"layout": "BDHT"}, ValueError, "BTHD"),
        ({"framework": "jax"}, ValueError, "torch"),
        ({"dtype": "int8"}, ValueError, "bfloat16"),
        ({"framework": "numpy", "dtype": "bfloat16"}, ValueError, "NumPy has no bfloat16"),
        ({"framework": "numpy", "device": "cuda"}, ValueError, "device"),
        ({"device": "toaster"}, ValueError, "toaster"),
        ({"d_k": 0}, ValueError, "d_k"),
        ({"d_v": "7"}, TypeError, "d_v"),
        ({"seconds": -1}, ValueError, "seconds"),
        ({"empty_rows": "nan"}, ValueError, "any"),
        ({"gradients": None}, TypeError, "gradients"),
    ],
)
def test_a_wrong_argument_is_told(said, error, sentence):
    with pytest.raises(error, match=re.escape(sentence)):
        examine(no_scale, **said)


def test_only_functions_can_be_examined():
    with pytest.raises(TypeError, match="ndarray"):
        examine(np.zeros(3))


def test_framework_and_sizes_can_be_named():
    def both(q, k, v):
        assert q.shape[-1] == 8 == k.shape[-1]
        assert v.shape[-1] == 16
        if isinstance(q, np.ndarray):
            return soft(scores(q, k)) @ v
        return F.scaled_dot_product_attention(q, k, v)

    assert "numpy" in str(examine(both, d_k=8, d_v=16))
    assert "torch" in str(examine(both, d_k=8, d_v=16, framework="torch"))
    assert examine(both).name == "raises"


@pytest.mark.parametrize("seed", range(5))
def test_another_seed_gives_other_inputs(seed):
    one, other = (examine(no_scale, _seed=s).inputs["q"] for s in (seed, seed + 1))
    assert one.shape == other.shape
    assert not np.array_equal(one, other)
