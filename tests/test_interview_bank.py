"""The question bank: its files are as they must be, and whoever breaks one is told how."""

import json
import re
from pathlib import Path

import pytest

from helpers.interview import bank as bank_module
from helpers.interview import markup
from helpers.interview.bank import LESSONS, LEVELS, BankError, bank, load, texts_of

ROOT = Path(__file__).resolve().parent.parent
QUESTIONS = bank().questions
TOPICS = [
    "by_hand", "shapes_and_masks", "variance", "divisors", "softmax_and_gradient", "numerics",
    "initialisation", "training_failures", "other_scales", "heads", "kv_cache", "complexity",
    "flash", "online_softmax", "split_and_ring", "pytorch", "testing",
]  # fmt: skip
MUST_HAVES = ["why-not-d-k", "is-the-scale-ever-different", "what-does-flashattention-change"]


def headings(lesson: str) -> set[str]:
    cells = json.loads((ROOT / "notebooks" / LESSONS[lesson]).read_text(encoding="utf-8"))["cells"]
    text = "\n".join("".join(cell["source"]) for cell in cells if cell["cell_type"] == "markdown")
    return set(re.findall(r"^#+ (.+)$", text, re.MULTILINE))


# What a point must not hold, since nobody outside can know it: the signs of a figure of ours.
MEASURED_HERE = re.compile(r"\bnats?\b|\b[Mm]easured\b|\b[Oo]ur\b|\d\.\d{3,}|\de-\d+")
MAY_STAY = {
    # Worked out from the question's own numbers:
    "one-row-by-hand": (
        "2.718",
        "1.649",
        "5.367",
        "0.506",
        "0.186",
        "0.307",
        "0.814",
        "0.494",
    ),
    "what-is-the-intensity-of-attention": ("1.555",),  # from the data sheet
    "how-to-time-a-gpu-kernel": ("measured",),  # what the question asks
    "how-close-is-close-enough": ("measured", "1e-5"),  # how to do it; a usual tolerance
}

HEADINGS = {lesson: headings(lesson) for lesson in LESSONS}


# --- What is in the bank ---


def test_the_bank_is_as_large_and_as_broad_as_promised():
    assert len(QUESTIONS) >= 80
    assert [topic.id for topic in bank().topics] == TOPICS
    for topic in bank().topics:
        assert len(topic.questions) >= 4, topic.id
    for level in LEVELS:
        assert len(bank().select([level])) >= 20, level
    for id in MUST_HAVES:
        assert bank()[id].follow_ups


@pytest.mark.parametrize("question", QUESTIONS, ids=lambda question: question.id)
def test_a_question_leads_to_the_section_that_teaches_it(question):
    assert question.section in HEADINGS[question.lesson]


@pytest.mark.parametrize("question", QUESTIONS, ids=lambda question: question.id)
def test_a_question_is_written_with_care(question):
    for text in texts_of(question):
        shown = markup.plain(text)
        assert "\\" not in shown
        assert shown.count("(") == shown.count(")"), shown
    assert question.prompt[-1] in ".?”"
    assert question.answer[-1] in ".?”"
    for point in question.points:
        assert not point.endswith("."), point
    for each in question.weak:
        assert each.because[-1] in ".?”"
    for each in question.follow_ups:
        assert each.to or (each.ask[-1] in ".?”" and each.answer[-1] in ".”")


@pytest.mark.parametrize("question", QUESTIONS, ids=lambda question: question.id)
def test_a_point_can_be_known_without_having_measured_it_here(question):
    for point in question.points:
        assert set(MEASURED_HERE.findall(point)) <= set(MAY_STAY.get(question.id, ())), point


def test_every_exception_is_still_needed():
    for id, signs in MAY_STAY.items():
        points = " ".join(bank()[id].points)
        assert set(signs) <= set(MEASURED_HERE.findall(points)), id


@pytest.mark.parametrize(
    "point",
    ["1.931 against 1.935", "a loss of 2.4 nats", "0.78 measured", "in our runs", "off by 1.9e-4"],
)
def test_a_figure_of_ours_is_found(point):
    assert MEASURED_HERE.search(point)


def test_no_two_questions_ask_the_same():
    prompts = [markup.plain(question.prompt).lower() for question in QUESTIONS]
    assert len(set(prompts)) == len(prompts)


def test_the_lessons_are_those_that_there_are():
    lessons = {path.name for path in (ROOT / "notebooks").glob("*.ipynb")}
    assert set(LESSONS.values()) | {"06_interview_room.ipynb"} == lessons


# --- Whoever breaks a file is told how to mend it ---

GOOD = '''
title = "A topic"

[[question]]
id = "what"
level = "screen"
prompt = "What?"
answer = """
{answer}
"""
points = ["one thing", "another thing", "and a third"]
weak = [{{ says = "x", because = "y" }}]
follow_ups = [{{ point = 1, ask = "And?", answer = "{follow_up}" }}]
lesson = "2"
section = "1. The experiment"
'''
TEXT = GOOD.format(answer="word " * 100, follow_up="word " * 20)


def file(tmp_path, text, name="01_topic.toml"):
    (tmp_path / name).write_text(text, encoding="utf-8")
    return tmp_path


def test_a_good_file_is_read(tmp_path):
    (question,) = load(file(tmp_path, TEXT)).questions
    assert question.topic == "topic"
    assert question.points == ("one thing", "another thing", "and a third")
    assert question.follow_ups[0].point == 0
    assert question.place == "Lesson 2, section 1: The experiment"
    assert question.link == "02_why_sqrt_dk.ipynb#1.-The-experiment"


@pytest.mark.parametrize(
    ("before", "after", "said"),
    [
        ('level = "screen"', 'level = "senior"', "its level is 'senior'; write screen, onsite"),
        ('level = "screen"', "level = 3", "level is 3; write it in quotes"),
        ('level = "screen"', "", "it lacks level"),
        ('id = "what"', 'id = "What now"', "small letters, digits and hyphens"),
        ('id = "what"', 'id = "what"\nhint = "x"', r"nobody reads \['hint'\]"),
        ('lesson = "2"', 'lesson = "9"', "its lesson is '9'; write 1, 2, 3, 4, 5"),
        ('"one thing", ', "", "it has 2 points; 3 to 6"),
        ('"one thing"', f'"{"word " * 36}"', "a point has 36 words; 2 to 35"),
        ('"one thing"', "7", "points holds 7"),
        ("point = 1", "point = 4", "from point 4; write a number from 1 to 3"),
        ("point = 1, ", "", "each entry of follow_ups has answer, ask, point"),
        ('says = "x", ', "", "each entry of weak has because, says"),
        ("word " * 100, "word " * 79, "answer has 79 words; 80 to 150"),
        ("word " * 100, "word " * 151, "answer has 151 words; 80 to 150"),
        ('prompt = "What?"', 'prompt = "What is $x?"', "a dollar stands alone"),
        ('prompt = "What?"', "prompt = 'Is $\\foo$ it?'", r"holds '\\\\foo'"),
        ('title = "A topic"', 'title = "A topic"\nlevel = "x"', r"nobody reads \['level'\]"),
        ('title = "A topic"', "", "it needs a `title`"),
        ('title = "A topic"', "title = A topic", "cannot be read as TOML"),
    ],
)
def test_a_mistake_is_named(tmp_path, before, after, said):
    assert before in TEXT
    text = TEXT.replace(before, after)
    with pytest.raises(BankError, match=said) as error:
        load(file(tmp_path, text))
    assert "01_topic.toml" in str(error.value)


def test_ids_and_follow_ups_fit_together(tmp_path):
    file(tmp_path, TEXT)
    with pytest.raises(BankError, match="the topic topic has this id too"):
        load(file(tmp_path, TEXT, "02_other.toml"))
    leads = re.sub(r"ask = .*?\" }", 'to = "nowhere" }', TEXT)
    with pytest.raises(BankError, match="leads to 'nowhere', which is no other question"):
        load(file(tmp_path, leads.replace('id = "what"', 'id = "that"'), "02_other.toml"))
    with pytest.raises(BankError, match=r"something like 03_variance\.toml"):
        load(file(tmp_path, TEXT, "other.toml"))


def test_an_empty_folder_is_no_bank(tmp_path):
    with pytest.raises(BankError, match="no file of questions"):
        load(tmp_path)


def test_what_is_not_there_is_said_to_be_missing():
    with pytest.raises(ValueError, match="no question 'nonsense'"):
        bank()["nonsense"]
    with pytest.raises(ValueError, match="no topic 'nonsense'; there are: by_hand"):
        bank().select(topics=["nonsense"])
    with pytest.raises(ValueError, match="no level"):
        bank().select(["senior"])
    assert {q.topic for q in bank().select(["screen"], ["variance"])} == {"variance"}


# --- The signs that texts may hold ---


@pytest.mark.parametrize(
    ("tex", "words"),
    [
        (r"\sqrt{d_k}", "√d_k"),
        (r"\frac{1}{\sqrt{d_k}}", "1/√d_k"),
        (r"\frac{a + b}{c}", "(a + b)/c"),
        (r"\sqrt{2 + \frac{6}{d_k}}", "√(2 + 6/d_k)"),
        (r"e^{m - m_{new}}", "e^(m − m_new)"),
        (r"QK^\top", "QKᵀ"),
        (r"2^{-24}", "2⁻²⁴"),
        (r"\mathrm{lse} = m + \ln \ell", "lse = m + ln ℓ"),
        (r"\|q\|^2", "‖q‖²"),
        (r"\left(p - g\right)", "(p − g)"),
    ],
)
def test_a_formula_is_written_in_words(tex, words):
    assert markup.in_words(tex) == words
    assert markup.plain(f"so ${tex}$, in `code`") == f"so {words}, in code"


def test_each_form_escapes_what_is_no_sign():
    text = r"if $a < b$ & `x < y` then"
    assert markup.html(text) == "if $a &lt; b$ &amp; <code>x &lt; y</code> then"
    assert markup.html("by d_k, not `d_k`") == "by d<sub>k</sub>, not <code>d_k</code>"
    assert markup.anki(text) == r"if \(a &lt; b\) &amp; <code>x &lt; y</code> then"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("a $ alone", "a dollar stands alone"),
        ("a ` alone", "a backtick stands alone"),
        (r"$\unknown{x}$", "does not write"),
    ],
)
def test_what_cannot_be_shown_everywhere_is_refused(text, said):
    with pytest.raises(ValueError, match=said):
        markup.plain(text)


def test_the_page_for_contributors_shows_a_question_that_can_be_read(tmp_path):
    page = (bank_module.FOLDER / "CONTRIBUTING.md").read_text(encoding="utf-8")
    block = "\n".join(line[4:] for line in page.splitlines() if line.startswith("    "))
    block = block.replace("What one says aloud in a minute:", "What one says: " + "word " * 80)
    block = block.replace('"15 to 90 words"', f'"{"word " * 20}"')
    block = block.replace("the-id-of-another-question", "another")
    other = TEXT.replace('id = "what"', 'id = "another"').replace('title = "A topic"', "")
    (question, _) = load(file(tmp_path, f'title = "x"\n{block}\n{other}')).questions
    assert question.id == "why-not-d-k"
