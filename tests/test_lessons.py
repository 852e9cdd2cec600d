"""What every lesson's text promises about its exercises is what the checkers hold."""

import json
import re
from pathlib import Path

import pytest

from helpers.practice.lessons import every

LESSONS = sorted((Path(__file__).parent.parent / "notebooks").glob("*.ipynb"))
EXERCISES = {exercise.id: exercise for exercise in every("EXERCISES")}


def sources(lesson: Path, kind: str) -> list[str]:
    cells = json.loads(lesson.read_text(encoding="utf-8"))["cells"]
    return ["".join(cell["source"]) for cell in cells if cell["cell_type"] == kind]


@pytest.mark.parametrize("lesson", LESSONS, ids=lambda path: path.stem)
def test_exercises_are_announced_as_they_are(lesson):
    said = re.findall(
        r"\*\*Exercise (\d\.\d)\*\* \((\d+) minutes, (\w+)\)", "".join(sources(lesson, "markdown"))
    )
    number = str(int(lesson.stem[:2]))
    mine = [(e.id, str(e.minutes), e.difficulty) for e in EXERCISES.values() if e.id[0] == number]
    assert sorted(said) == sorted(mine)
    assert [item[0] for item in said] == sorted(item[0] for item in said)


@pytest.mark.parametrize("lesson", LESSONS, ids=lambda path: path.stem)
def test_stubs_bear_the_names_of_their_solutions(lesson):
    code = "\n".join(sources(lesson, "code"))
    for exercise_id, name in re.findall(r'check\("(\d\.\d)", (\w+)\)', code):
        solution = EXERCISES[exercise_id].solution
        assert name == solution.__name__
        stub = re.search(rf"def {name}\(([^)]*)\)", code)[1]
        parameters = [p.split("=")[0].strip() for p in stub.split(",") if p.strip()]
        assert tuple(parameters) == EXERCISES[exercise_id].names
        assert f'hint("{exercise_id}")' in code
        assert f'solution("{exercise_id}")' in code


@pytest.mark.parametrize("lesson", LESSONS, ids=lambda path: path.stem)
def test_every_question_of_the_lesson_is_asked(lesson):
    code = "\n".join(sources(lesson, "code"))
    number = str(int(lesson.stem[:2]))
    asked = re.findall(r'predict\("(\d\.\d)"\)', code)
    known = [q.id for q in every("PREDICTIONS") if q.id[0] == number]
    assert sorted(asked) == sorted(known)
    assert f'quiz("{number}")' in code


@pytest.mark.parametrize("lesson", LESSONS, ids=lambda path: path.stem)
def test_no_formula_stands_outside_dollars(lesson):
    for text in sources(lesson, "markdown"):
        outside = re.sub(r"\$\$.*?\$\$|\$[^$]*\$|`[^`]*`", "", text, flags=re.DOTALL)
        assert "\\" not in outside, outside[outside.index("\\") :][:60]


def test_the_readme_knows_how_long_each_lesson_takes():
    readme = (Path(__file__).parent.parent / "README.md").read_text(encoding="utf-8")
    said = re.findall(
        r"^\| \d \| .*\(notebooks/(.+?)\).*\| (\d+) \| (\d+) \|$", readme, re.MULTILINE
    )
    assert [name for name, _, _ in said] == [lesson.name for lesson in LESSONS]
    for lesson, (_, reading, everything) in zip(LESSONS, said):
        text = "".join(sources(lesson, "markdown"))
        assert (
            f"**Time** {everything} minutes with all exercises, {reading} to read and play" in text
        )
    hours = [sum(int(minutes[i]) for minutes in said) / 60 for i in (1, 2)]
    assert "three and a half hours to read and play, eleven with all" in readme
    assert [round(2 * each) / 2 for each in hours] == [3.5, 11]
