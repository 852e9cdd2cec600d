"""The deck for Anki, opened as Anki does: a zip with a database in it."""

import dataclasses
import io
import json
import re
import sqlite3
import sys
import zipfile

import pytest

from helpers.interview import __main__ as command
from helpers.interview import anki, atomic, markup, saving, sheet_data
from helpers.interview import bank as banks
from helpers.interview.bank import bank

FIELDS = {
    "Attention interview: question": [
        "Question", "Points", "Answer", "Weak answers", "Follow-ups", "Where",
    ],
    "Attention interview: number": ["Question", "Answer", "Where"],
}  # fmt: skip

# What Anki knows our models, notes and decks by.
MODEL_QUESTION = 1318330648
MODEL_NUMBER = 1516577200
GUID_QUESTION = "f|oD#nZ4Iu"
GUID_NUMBER = "u>%*;c_i&4"
DECK_DIVISORS = 1981475070


def opened(path, folder):
    """{guid: {"deck", "model", "tags", field: content}} of the notes, and the collection's row."""
    with zipfile.ZipFile(path) as package:
        package.extract("collection.anki2", folder)
    database = sqlite3.connect(folder / "collection.anki2")
    database.row_factory = sqlite3.Row
    (collection,) = database.execute("select * from col")
    models = {int(id): model for id, model in json.loads(collection["models"]).items()}
    decks = {int(id): deck["name"] for id, deck in json.loads(collection["decks"]).items()}
    notes = {}
    query = "select notes.*, cards.did, cards.due from notes join cards on cards.nid = notes.id"
    for row in database.execute(query):
        model = models[row["mid"]]
        names = [field["name"] for field in model["flds"]]
        notes[row["guid"]] = {
            "deck": decks[row["did"]],
            "place": row["due"],
            "model": model["name"],
            "tags": row["tags"].split(),
            **dict(zip(names, row["flds"].split("\x1f"), strict=True)),
        }
    database.close()
    return notes, models, decks


@pytest.fixture(scope="module")
def exported(tmp_path_factory):
    folder = tmp_path_factory.mktemp("anki")
    return opened(anki.export(folder / "deck.apkg"), folder)


def note_of(notes, question):
    return notes[anki._guid("question", question.id)]


def test_a_note_for_each_question_and_each_number(exported):
    notes, models, decks = exported
    questions, numbers = bank().questions, sheet_data.sheet().numbers
    assert len(notes) == len(questions) + len(numbers)
    assert {m["name"]: [f["name"] for f in m["flds"]] for m in models.values()} == FIELDS
    expected = {f"Attention interview::{markup.plain(topic.title)}" for topic in bank().topics}
    expected.add("Attention interview::Numbers to remember")
    assert set(decks.values()) - {"Default"} == expected


def test_the_fields_hold_the_texts(exported):
    notes, *_ = exported
    for topic in bank().topics:
        for question in topic.questions:
            note = note_of(notes, question)
            assert note["deck"] == f"Attention interview::{markup.plain(topic.title)}"
            assert note["place"] == topic.questions.index(question) + 1
            assert set(note["tags"]) == {f"level::{question.level}", f"topic::{topic.id}"}
            assert note["Question"] == markup.anki(question.prompt)
            assert note["Where"] == question.place
            assert note["Points"].count("<li>") == len(question.points)
            for text in question.points:
                assert f"<li>{markup.anki(text)}</li>" in note["Points"]
            assert markup.anki(question.answer.split("\n\n")[0]) in note["Answer"]
            for weak in question.weak:
                assert markup.anki(weak.says) in note["Weak answers"]
                assert markup.anki(weak.because) in note["Weak answers"]
            for each in question.follow_ups:
                asked = bank()[each.to].prompt if each.to else each.ask
                assert markup.anki(asked) in note["Follow-ups"]
    for number in sheet_data.sheet().numbers:
        note = notes[anki._guid("number", number.id)]
        assert note["Question"] == markup.anki(number.ask)
        assert note["Answer"] == markup.anki(number.say)
        assert note["Where"] == number.place
        assert note["deck"] == "Attention interview::Numbers to remember"


def fields(notes):
    for note in notes.values():
        for name in FIELDS[note["model"]]:
            yield note[name]


def test_formulas_are_in_anki_s_own_form(exported):
    notes, *_ = exported
    assert r"\(\sqrt{d_k}\)" in note_of(notes, bank()["why-not-d-k"])["Question"]
    for content in fields(notes):
        assert content
        assert "$" not in content
        assert "`" not in content
        assert content.count(r"\(") == content.count(r"\)")


OURS = "ul|li|p|dl|dt|dd|code|sub"


def test_texts_are_escaped(exported):
    notes, *_ = exported
    for content in fields(notes):
        assert "<" not in re.sub(rf"</?(?:{OURS})>", "", content)
    sharp = dataclasses.replace(bank()["why-not-d-k"], prompt="Is $a < b$ for `x<y>` & <b>?")
    note = anki._question_note(sharp, bank(), 1)
    assert note.fields[0] == (r"Is \(a &lt; b\) for <code>x&lt;y&gt;</code> &amp; &lt;b&gt;?")


def test_the_ids_of_anki_never_change(exported):
    """Learners' history hangs on these: whoever sees this test fail has broken their decks."""
    _, models, decks = exported
    by_name = {model["name"]: id for id, model in models.items()}
    assert by_name == {
        "Attention interview: question": MODEL_QUESTION,
        "Attention interview: number": MODEL_NUMBER,
    }
    assert anki._guid("question", "why-not-d-k") == GUID_QUESTION
    assert anki._guid("number", "std-unscaled") == GUID_NUMBER
    assert decks[DECK_DIVISORS] == "Attention interview::Divisors and muP"
    assert len(set(decks)) == len(bank().topics) + 2, "no two decks share an id"


def reworded(old):
    """The bank with another text, level and lesson in every question, topics in another order."""
    topics = [
        dataclasses.replace(
            topic,
            title=f"{topic.title}, anew",
            questions=tuple(
                dataclasses.replace(q, prompt=f"{q.prompt} Why?", level="expert", answer="Anew.")
                for q in topic.questions[::-1]
            ),
        )
        for topic in old.topics[::-1]
    ]
    return banks.Bank(tuple(topics))


def test_a_changed_text_is_the_same_note(exported, tmp_path):
    notes, models, decks = exported
    later, later_models, later_decks = opened(
        anki.export(tmp_path / "later.apkg", reworded(bank())), tmp_path
    )
    assert set(later) == set(notes)
    assert set(later_models) == set(models)
    assert set(later_decks) == set(decks)
    why = anki._guid("question", "why-not-d-k")
    assert later[why]["Question"] == f"{notes[why]['Question']} Why?"
    assert later[why]["Answer"] == "<p>Anew.</p>"


def test_the_same_texts_give_the_same_notes(exported, tmp_path):
    again, *_ = opened(anki.export(tmp_path / "again.apkg"), tmp_path)
    assert again == exported[0]


def test_a_night_mode_reads_well(exported):
    _, models, _ = exported
    for model in models.values():
        assert ".nightMode" in model["css"]
        (template,) = model["tmpls"]
        for name in FIELDS[model["name"]]:
            assert f"{{{{{name}}}}}" in template["afmt"]
        assert "{{Question}}" in template["qfmt"]


# --- Writing it ---


def test_it_replaces_an_older_file_at_once(tmp_path, monkeypatch):
    target = tmp_path / "deck.apkg"
    target.write_bytes(b"old")
    replaced = []
    replace = atomic.os.replace

    def watched(draft, path):
        replaced.append(target.read_bytes())
        assert zipfile.is_zipfile(draft), "whole before it takes the place of the old one"
        replace(draft, path)

    monkeypatch.setattr(atomic.os, "replace", watched)
    assert anki.export(target) == target
    assert replaced == [b"old"]
    assert zipfile.is_zipfile(target)
    assert [path.name for path in tmp_path.iterdir()] == ["deck.apkg"]


def test_a_failing_write_leaves_the_older_file(tmp_path, monkeypatch):
    target = tmp_path / "deck.apkg"
    target.write_bytes(b"old")

    def fails(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(atomic.os, "fsync", fails)
    with pytest.raises(saving.SaveError, match="No space left on device"):
        anki.export(target)
    assert target.read_bytes() == b"old"
    assert [path.name for path in tmp_path.iterdir()] == ["deck.apkg"]


# --- In a notebook ---


def test_the_button_exports_and_says_how_to_import(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    shown = anki.AnkiExport()
    shown.controls["export"].click()
    target = tmp_path / "attention-interview.apkg"
    assert zipfile.is_zipfile(target)
    assert shown.state == {"saved": str(target)}
    assert f"Saved as {target}." in shown.words
    assert "File → Import" in shown.words
    data, _ = shown._repr_mimebundle_()
    assert f"All {len(bank().questions)} questions" in data["text/plain"]
    assert "attention-interview.apkg" in data["text/html"]
    assert str(tmp_path) not in data["text/html"] + data["text/plain"]


def test_a_button_that_fails_says_why(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / anki.NAME).mkdir()
    shown = anki.AnkiExport()
    shown.controls["export"].click()
    assert "is a folder" in shown.words
    assert shown.state == {"saved": ""}


# --- In a terminal ---


def test_the_command_writes_both_files_here(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert command.main(["anki"]) == 0
    assert command.main(["sheet", "other.html"]) == 0
    said = capsys.readouterr().out
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        "attention-interview.apkg",
        "other.html",
    ]
    assert str(tmp_path / "attention-interview.apkg") in said
    assert str(tmp_path / "other.html") in said


@pytest.mark.parametrize("encoding", ["ascii", "cp1252", "utf-8"])
@pytest.mark.parametrize("what", ["anki", "sheet"])
def test_the_command_speaks_to_every_terminal(tmp_path, monkeypatch, encoding, what):
    heard = io.BytesIO()
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(heard, encoding=encoding))
    target = tmp_path / "√d_k.file"
    assert command.main([what, str(target)]) == 0
    sys.stdout.flush()
    said = heard.getvalue().decode(encoding)
    assert str(target).replace("√", "√" if encoding == "utf-8" else "\\u221a") in said
    assert "Import it in Anki" in said or "print it" in said
    assert target.exists()


def test_the_command_says_what_it_cannot_do(tmp_path, monkeypatch, capsys):
    assert command.main(["sheet", str(tmp_path / "nowhere" / "a.html")]) == 1
    assert "There is no folder" in capsys.readouterr().err
    with pytest.raises(SystemExit) as ended:
        command.main(["cards"])
    assert ended.value.code == 2
    assert "choose from" in capsys.readouterr().err

    def broken():
        raise banks.BankError("03_variance.toml: it needs a `title`.")

    monkeypatch.setattr(anki, "bank", broken)
    assert command.main(["anki", str(tmp_path / "a.apkg")]) == 2
    assert capsys.readouterr().err == "03_variance.toml: it needs a `title`.\n"
    assert list(tmp_path.iterdir()) == []
