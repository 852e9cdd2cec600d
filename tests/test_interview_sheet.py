"""The cheat sheet: every number on it computed anew, every place found, the page on its own."""

import dataclasses
import html
import json
import math
import os
import re

import numpy as np
import pytest

from helpers import attention, experiments, flash
from helpers.interview import atomic, markup, saving, sheet, sheet_data, sheet_page
from helpers.interview.bank import LESSONS, bank
from helpers.interview.sheet_data import SheetError
from helpers.pictures.palette import PAPER, QUIET, ROLES, TEXT, contrast
from helpers.workshop import ROOT

SHEET = sheet_data.sheet()
NUMBERS = {number.id: number for number in SHEET.numbers}


def says(id):
    number = NUMBERS[id]
    return f"{markup.plain(number.ask)}: {markup.plain(number.say)}"


# --- Every number is computed ---


def std_unscaled():
    settings = experiments.DotProductSettings(d_k=128)
    return [f"√128 ≈ {experiments.predicted_spread(settings).std:.1f}"]


def std_divided_by_d_k():
    settings = experiments.DotProductSettings(d_k=128)
    spread = experiments.predicted_spread(settings).std / 128
    assert spread == pytest.approx(1 / math.sqrt(128))
    return [f"1/√128 ≈ {spread:.2f}"]


def variance_for_std_sigma():
    sigma, d_k = 2, 64
    variance = experiments.predicted_spread(experiments.DotProductSettings(d_k, std=sigma)).variance
    assert variance == pytest.approx(sigma**4 * d_k)
    return ["σ⁴ d_k, not σ² d_k"]


def std_of_a_fresh_model():
    std = experiments.initial_score_std(64, 768, 0.02)
    assert std == pytest.approx(math.sqrt(64) * 768 * 0.02**2)
    return ["√d_head · d_model σ_W²", "RMS 1"]


def three_tokens():
    Q, K = [[1, 0, 1, 0]], [[1, 0, 1, 0], [0, 1, 0, 1], [1, 1, 0, 0]]
    steps = attention.attention_steps(Q, K, np.eye(3))
    assert steps.scores.tolist() == [[2, 0, 1]]
    return ["2, 0, 1 at d_k = 4", ", ".join(f"{w:.3f}" for w in steps.weights[0])]


def softmax_times_eleven():
    scores = np.array([2, 1, 0.5])
    once, times = attention.softmax(scores), attention.softmax(11.3 * scores)
    return [f"{join(once, 2)}; {join(times, 1)}", f"{math.sqrt(128):.1f}"]


def join(numbers, decimals):
    return ", ".join(f"{x:.{decimals}f}" for x in numbers)


def softmax_jacobian():
    p = attention.softmax(np.random.default_rng(0).standard_normal((200, 5)) * 3)
    J = attention.softmax_jacobian(p)
    assert np.allclose(J, [np.diag(row) - np.outer(row, row) for row in p])
    tie = attention.softmax_jacobian([0.5, 0.5, 0.0, 0.0, 0.0])
    values = np.linalg.eigvalsh([*J, tie])
    assert values.min() > -1e-12
    assert values.max() == pytest.approx(0.5)
    return ["diag(p) − p pᵀ", "0 to ½"]


def softmax_backward():
    rng = np.random.default_rng(0)
    q, k, v, dO = rng.standard_normal((4, 6, 8))
    steps = attention.attention_steps(q, k, v)
    A, dA = steps.weights, dO @ v.T
    delta = (A * dA).sum(axis=-1, keepdims=True)
    assert np.allclose(delta, (dO * steps.output).sum(axis=-1, keepdims=True))
    dq, *_ = attention.attention_backward(q, k, v, dO)
    assert np.allclose(dq, steps.scale * (A * (dA - delta)) @ k)
    return ["dS_j = A_j (dA_j − Δ)", "Δ = Σ_j A_j dA_j = dO · O"]


def float16_largest():
    largest = {name: float(np.finfo(name).max) for name in ("float16", "float32")}
    ends = {name: math.log(x) for name, x in largest.items()}
    return [
        f"{largest['float16']:,.0f}; z = {ends['float16']:.2f}",
        f"float32: {ends['float32']:.2f}",
    ]


def bfloat16_digits():
    torch = pytest.importorskip("torch")
    names = ("bfloat16", "float16", "float32")
    bits = [1 - round(math.log2(torch.finfo(getattr(torch, name)).eps)) for name in names]
    digits = [math.floor(n * math.log10(2)) for n in bits]
    return [", ".join(names), f"{join(bits, 0)} bits: {join(digits, 0)} digits"]


def bytes_of_scores():
    traffic = flash.memory_traffic(8192, 64, 64 * 1024, bytes_per_number=2)
    return ["float16, T = 8192", f"{traffic.score_matrix / 2**20:g} MiB"]


def bytes_of_kv_cache():
    layers, kv_heads, d_head, size = 32, 8, 128, 2
    a_token = 2 * layers * kv_heads * d_head * size
    return [
        "2 · layers · H_kv · d_head · T numbers",
        f"{layers} layers, {kv_heads} KV heads of {d_head}, {size} bytes",
        f"{a_token / 2**10:g} KiB a token",
    ]


def bytes_moved():
    traffic = flash.memory_traffic(4096, 64, 64 * 2**10, bytes_per_number=2)
    double = flash.memory_traffic(4096, 64, 128 * 2**10, bytes_per_number=2)
    assert traffic.tiled / double.tiled == pytest.approx(2, rel=0.05)
    assert traffic.bound == pytest.approx(4096**2 * 64**2 / (64 * 2**10 / 2) * 2)
    return [
        "T = 4096, d = 64, 64 KiB",
        f"plain {traffic.plain / 2**20:.0f} MiB, tiled {traffic.tiled / 2**20:.0f} MiB",
        "T² d² / M",
    ]


def online_softmax():
    scores, v = np.array([[1.0, 0.5], [3.0, 2.0]]), np.arange(4.0).reshape(2, 2, 1)
    first, second = flash.online_attention(scores, v)
    factor = math.exp(first.m - second.m)
    powers = np.exp(scores[1] - second.m)
    assert second.l == pytest.approx(first.l * factor + powers.sum())
    assert second.acc == pytest.approx(first.acc * factor + powers @ v[1])
    assert second.output == pytest.approx(second.acc / second.l)
    return ["e^(m_1 − m_2)", "o / ℓ"]


def log_sum_exp():
    s = np.array([1000.0, 999.0, 998.5])
    lse = s.max() + math.log(np.exp(s - s.max()).sum())
    assert np.exp(s - lse) == pytest.approx(attention.softmax(s))
    return ["lse = m + ln Σ_j e^(s_j − m)", "A_j = e^(s_j − lse)"]


def merge_of_two_parts():
    (o_a, lse_a), (o_b, lse_b) = (np.array([1.0, 2.0]), 0.3), (np.array([5.0, -1.0]), 1.4)
    out, lse = flash.merge(o_a, lse_a, o_b, lse_b)
    assert lse == pytest.approx(math.log(math.exp(lse_a) + math.exp(lse_b)))
    w = math.exp(lse_a - lse)
    assert out == pytest.approx(w * o_a + (1 - w) * o_b)
    return ["lse = ln(e^(lse_a) + e^(lse_b))", "o = w o_a + (1 − w) o_b, w = e^(lse_a − lse)"]


def tolerance_of_a_test():
    points = " ".join(bank()["how-close-is-close-enough"].points)
    assert "2 × the error of plain attention in the same dtype, 3 × for gradients" in points
    assert "at most twice as large plus a small floor" in "".join(lesson_markdown("5"))
    return [
        "float64",
        "twice plain attention's in the same dtype (gradients: three times), plus a small floor",
    ]


def missing_scale_measured():
    pytest.importorskip("torch")
    from helpers import training

    record, story = training.Record(), training.sweep.STORY
    config = story.but(scale="1/√d")
    assert (config.d_head, config.init, config.steps) == (128, "unit", 600)
    assert config.learning_rate == 1e-3
    scaled, unscaled = record.losses(config), record.losses(config.but(scale="none"))
    assert len(scaled) == len(unscaled) == 3
    return [
        "heads of 128, unit init, rate 0.001, 600 steps",
        f"{scaled.mean():.3f} and {unscaled.mean():.3f} nats a byte",
        "three seeds",
    ]


COMPUTED = {
    "std-unscaled": std_unscaled,
    "std-divided-by-d-k": std_divided_by_d_k,
    "variance-for-std-sigma": variance_for_std_sigma,
    "std-of-a-fresh-model": std_of_a_fresh_model,
    "three-tokens": three_tokens,
    "softmax-times-eleven": softmax_times_eleven,
    "softmax-jacobian": softmax_jacobian,
    "softmax-backward": softmax_backward,
    "float16-largest": float16_largest,
    "bfloat16-digits": bfloat16_digits,
    "bytes-of-scores": bytes_of_scores,
    "bytes-of-kv-cache": bytes_of_kv_cache,
    "bytes-moved": bytes_moved,
    "online-softmax": online_softmax,
    "log-sum-exp": log_sum_exp,
    "merge-of-two-parts": merge_of_two_parts,
    "test-tolerance": tolerance_of_a_test,
    "missing-scale-measured": missing_scale_measured,
}


@pytest.mark.parametrize("id", NUMBERS)
def test_every_number_is_what_is_computed(id):
    for expected in COMPUTED[id]():
        assert expected in says(id)


def test_every_number_that_is_computed_is_on_the_sheet():
    assert set(COMPUTED) == set(NUMBERS)


def test_what_is_said_of_the_gradient_is_measured():
    table = experiments.gradient_table(T=64, d=128, draws=400, seeds=(0, 1, 2, 3, 4))
    rows = {(s, g): i for i, (s, g) in enumerate(zip(table.scale, table.gradient))}
    without, usual = rows["1", "q"], rows["1/sqrt(d)", "q"]
    said = markup.plain(SHEET.half_true[1])
    assert f"from {table.mean[usual]:.1f} to {table.mean[without]:.1f}" in said
    assert "a quarter of the rows" in said
    assert 0.2 < table.almost_none[without] < 0.3
    assert "64 random keys of width 128" in said


def test_the_five_lines_are_attention():
    assert len(SHEET.code.splitlines()) == 5
    q, k, v = np.random.default_rng(0).standard_normal((3, 2, 4, 6, 8))
    allowed = np.tril(np.ones((6, 6), bool))
    names = {"np": np, "q": q, "k": k, "v": v, "allowed": allowed}
    exec(SHEET.code, names)
    expected = attention.scaled_dot_product_attention(q, k, v, is_causal=True)
    assert np.allclose(names["output"], expected)
    names["allowed"] = allowed & (np.arange(6) > 0)
    with np.errstate(invalid="ignore"):
        exec(SHEET.code, names)
    assert np.isnan(names["output"][..., 0, :]).all(), (
        "a row that may see nothing, as the note says"
    )


def test_the_shapes_are_those_of_attention():
    sizes = {"B": 2, "H": 3, "T_q": 4, "T_k": 5, "d_k": 6, "d_v": 7}
    shape = {each.role: eval(markup.plain(each.shape), sizes) for each in SHEET.shapes}
    q, k, v = (np.ones(shape[role]) for role in "QKV")
    steps = attention.attention_steps(q, k, v)
    found = {"scores": steps.scaled, "weights": steps.weights, "output": steps.output}
    assert {role: array.shape for role, array in found.items()} == {
        role: shape[role] for role in found
    }


def test_the_two_kinds_of_boolean_masks_are_opposite():
    torch = pytest.importorskip("torch")
    assert "True = may attend; in nn.MultiheadAttention True = masked" in markup.plain(
        SHEET.traps[0]
    )
    x = torch.randn(1, 3, 4, generator=torch.Generator().manual_seed(0))
    mask = torch.tensor([[False, True, True]] * 3)
    _, weights = torch.nn.MultiheadAttention(4, 1, batch_first=True)(x, x, x, attn_mask=mask)
    assert weights[0, :, 0].allclose(torch.ones(3))
    out = torch.nn.functional.scaled_dot_product_attention(x, x, x, attn_mask=~mask)
    assert out[0].allclose(x[0, 0].expand(3, 4))


# --- Every place is found ---


def lesson_markdown(lesson):
    path = ROOT / "notebooks" / LESSONS[lesson]
    cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
    return ["".join(cell["source"]) for cell in cells if cell["cell_type"] == "markdown"]


def headings(lesson):
    return re.findall(r"^#+ (.+)$", "\n".join(lesson_markdown(lesson)), re.MULTILINE)


@pytest.mark.parametrize("of", [*SHEET.numbers, SHEET], ids=lambda of: getattr(of, "id", "sheet"))
def test_the_section_that_teaches_it_exists(of):
    assert of.section in headings(of.lesson)


def test_the_places_are_short_and_long():
    number = NUMBERS["std-divided-by-d-k"]
    assert number.short_place == "2.4"
    assert number.place == "Lesson 2, section 4: Three divisors side by side"
    assert number.link.startswith("02_why_sqrt_dk.ipynb#4.-Three")
    assert NUMBERS["bytes-of-kv-cache"].short_place == "1"


@pytest.mark.parametrize("number", SHEET.numbers, ids=lambda number: number.id)
def test_the_question_of_each_number_is_in_the_bank(number):
    assert bank()[number.question]


def test_the_sixty_seconds_are_the_bank_s_own_points():
    assert SHEET.minutes == (
        "why-not-d-k",
        "is-the-scale-ever-different",
        "what-does-flashattention-change",
    )
    for id in SHEET.minutes:
        question = bank()[id]
        for text in (question.prompt, *question.points):
            assert sheet_page._text(text) in sheet.page()
            assert markup.plain(text) in sheet.in_words()


# --- The page ---


def test_the_page_needs_nothing_but_itself():
    page = sheet.page()
    addresses = set(re.findall(r"""https?://[^\s"')<]*""", page))
    assert addresses == {"http://www.w3.org/2000/svg"}, "the name of SVG, which nobody asks for"
    assert set(re.findall(r"url\((.{16})", page)) == {"data:font/woff;b"}
    for forbidden in ("<script", "<link", "<img", "src=", "@import", "file:"):
        assert forbidden not in page.replace("src: url(data:", "")


def test_the_page_holds_drawn_formulas_and_no_signs_of_ours():
    text = re.sub(r"<style>.*?</style>", "", sheet.page(), flags=re.DOTALL)
    shown = html.unescape(re.sub(r"<[^>]+>", "", text))
    for sign in ("$", "`", "\\", "None"):
        assert sign not in shown
    svgs = re.findall(r"<svg [^>]*>", text)
    assert len(svgs) > 60
    assert all('role="img" aria-label="' in svg for svg in svgs)
    for number in SHEET.numbers:
        assert f'title="{html.escape(number.place)}"' in text


def test_a_formula_does_not_leave_its_comma_alone():
    assert sheet_page._text("$x$, 2 KiB").startswith('<span class="sheet-keep"><svg')
    assert sheet_page._text("$x$, 2 KiB").endswith("</svg>,</span> 2\u00a0KiB")


def test_the_same_data_give_the_same_page():
    first = sheet.page()
    sheet_page.sheet_fonts.faces.cache_clear()
    assert sheet.page() == first


def test_all_text_reads_well_in_colour_and_in_grey():
    for colour in (TEXT, QUIET, *(ROLES[each.role].text for each in SHEET.shapes)):
        assert contrast(colour, PAPER) >= 4.5
    assert [each.role for each in SHEET.shapes] == ["Q", "K", "V", "scores", "weights", "output"]


# --- Saving it ---


def test_it_is_saved_whole_over_an_older_one(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / sheet.NAME).write_text("old")
    assert sheet.save() == tmp_path / sheet.NAME
    assert (tmp_path / sheet.NAME).read_text(encoding="utf-8") == sheet.page()
    assert [path.name for path in tmp_path.iterdir()] == [sheet.NAME]


def test_a_failing_write_leaves_the_older_one(tmp_path, monkeypatch):
    target = tmp_path / "page.html"
    target.write_text("old")

    def fails(*_):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(atomic.os, "replace", fails)
    with pytest.raises(
        saving.SaveError, match=r"page\.html could not be written: Permission denied"
    ):
        saving.write(target, b"new")
    assert target.read_text() == "old"
    assert [path.name for path in tmp_path.iterdir()] == ["page.html"]


def test_a_link_stays_and_leads_to_what_is_written(tmp_path):
    (tmp_path / "shelf").mkdir()
    link, target = tmp_path / "page.html", tmp_path / "shelf" / "sheet.html"
    try:
        link.symlink_to(target)
    except OSError:
        pytest.skip("no links may be made here")
    for content in (b"first", b"second"):
        assert saving.write(link, content) == link
        assert link.is_symlink()
        assert target.read_bytes() == content
    assert [path.name for path in target.parent.iterdir()] == ["sheet.html"]


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="there are no pipes here")
def test_what_is_no_ordinary_file_is_not_replaced(tmp_path):
    pipe, link = tmp_path / "pipe", tmp_path / "page.html"
    os.mkfifo(pipe)
    link.symlink_to(pipe)
    for target in (pipe, link):
        with pytest.raises(saving.SaveError, match="is no ordinary file"):
            saving.write(target, b"new")
    assert pipe.is_fifo()
    assert link.is_symlink()


def test_names_that_cannot_be(tmp_path):
    for name in ("a" * 5000, "a\0b"):
        with pytest.raises(saving.SaveError):
            saving.write(tmp_path / name / "a.html", b"")
        with pytest.raises(saving.SaveError, match="could not be written"):
            saving.write(tmp_path / name, b"")


@pytest.mark.skipif(os.name != "posix", reason="users have no names like this here")
def test_a_user_who_is_not_known():
    with pytest.raises(saving.SaveError, match=r"~nosuchuser/a\.html could not be written"):
        saving.write("~nosuchuser/a.html", b"")


def test_a_wrong_place_is_named(tmp_path):
    with pytest.raises(saving.SaveError, match="is a folder: name a file"):
        saving.write(tmp_path, b"")
    with pytest.raises(saving.SaveError, match=r"There is no folder .*nowhere"):
        saving.write(tmp_path / "nowhere" / "a.html", b"")


# --- In a notebook ---


def test_the_button_saves_it_and_says_where(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    shown = sheet.CheatSheet()
    assert shown.state == {"saved": ""}
    shown.controls["save"].click()
    assert shown.state == {"saved": str(tmp_path / sheet.NAME)}
    assert f"Saved as {tmp_path / sheet.NAME}. Open it in a browser" in shown.words
    assert (tmp_path / sheet.NAME).exists()


def test_a_button_that_fails_says_why(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / sheet.NAME).mkdir()
    shown = sheet.CheatSheet()
    shown.controls["save"].click()
    assert "is a folder: name a file in it" in shown.words
    assert shown.state == {"saved": ""}


def test_an_error_nobody_thought_of_is_said_too(monkeypatch):
    def breaks():
        raise RuntimeError("out of ink <b>")

    shown = sheet.CheatSheet()
    monkeypatch.setattr(sheet, "page", breaks)
    shown.controls["save"].click()
    assert "RuntimeError: out of ink <b>" in shown.words
    assert "out of ink &lt;b&gt;" in shown._saver._status.value


def test_its_static_forms_are_of_the_same_data(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    shown = sheet.CheatSheet()
    before, _ = shown._repr_mimebundle_()
    shown.controls["save"].click()
    data, _ = shown._repr_mimebundle_()
    assert data["text/plain"] == before["text/plain"], "the same after a click"
    assert "application/vnd.jupyter.widget-view+json" in data
    assert "$" not in data["text/plain"]
    assert str(tmp_path) not in data["text/html"] + data["text/plain"]
    for number in SHEET.numbers:
        assert markup.html(number.say) in data["text/html"]
        assert f'href="{number.link}"' in data["text/html"]
        assert markup.plain(number.say) in data["text/plain"]
    assert data["text/html"].count("$") % 2 == 0
    assert "<style" not in data["text/html"], "viewers strip it"


# --- The file ---

TEXT_OF_FILE = sheet_data.FILE.read_text(encoding="utf-8")


def changed(tmp_path, old, new):
    assert old in TEXT_OF_FILE
    path = tmp_path / "sheet.toml"
    path.write_text(TEXT_OF_FILE.replace(old, new, 1), encoding="utf-8")
    return path


@pytest.mark.parametrize(
    ("old", "new", "sentence"),
    [
        ("[formula]", "[formula", "cannot be read as TOML"),
        ("tagline = ", "tag = ", "lacks tagline"),
        ('id = "three-tokens"', 'id = "three-tokens"\nidea = "x"', "nobody reads ['idea']"),
        ('id = "three-tokens"', 'id = "std-unscaled"', "another number has this id too"),
        ('id = "three-tokens"', 'id = "Three tokens"', "small letters, digits and hyphens"),
        ('say = "128 MiB"', "say = 128", "say is 128, but must be words in quotes"),
        ('say = "128 MiB"', f'say = "{"word " * 40}"', "say has 40 words"),
        ('say = "128 MiB"', 'say = "128 $MiB"', "a dollar stands alone"),
        ('say = "128 MiB"', 'say = "$\\\\lim$"', "does not write"),
        ('lesson = "5"', 'lesson = "7"', "its lesson is '7'; write 1, 2"),
        ('role = "Q"', 'role = "X2"', "the role 'X2'; there are: Q, K"),
        ('[[number]]\nid = "std-unscaled"', '[[numbers]]\nid = "std-unscaled"', "TOML"),
        ("items = [", "items = [ 7,", "holds 7; write words in quotes"),
        ("questions = [", 'questions = "x"\nmore = [', "nobody reads ['more']"),
    ],
)
def test_a_mistake_in_the_file_is_named(tmp_path, old, new, sentence):
    with pytest.raises(SheetError, match=re.escape(sentence)):
        sheet_data.load(changed(tmp_path, old, new))


def test_too_many_numbers_are_refused(tmp_path):
    path = tmp_path / "sheet.toml"
    more = TEXT_OF_FILE[TEXT_OF_FILE.index("[[number]]") :]
    path.write_text(TEXT_OF_FILE + more, encoding="utf-8")
    with pytest.raises(SheetError, match=f"there are {2 * len(NUMBERS)} numbers; 14 to 18"):
        sheet_data.load(path)


def test_a_question_that_the_bank_lacks_is_named():
    wrong = dataclasses.replace(SHEET, minutes=("no-such-question",))
    with pytest.raises(SheetError, match="no question 'no-such-question'"):
        sheet.page(wrong)
