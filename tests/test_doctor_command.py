"""python -m helpers.doctor: its exit codes and what it says."""

import subprocess
import sys

import pytest

from helpers.doctor import CATALOGUE
from helpers.doctor.__main__ import NOT_SOUND, SOUND, UNUSABLE, main

MODULE = """
import numpy as np

def right(q, k, v):
    return _soft(q @ k.mT / np.sqrt(q.shape[-1])) @ v

def unscaled(q, k, v):
    return _soft(q @ k.mT) @ v

def always_causal(x, y, z):
    s = x @ y.mT / np.sqrt(x.shape[-1])
    return _soft(np.where(np.tri(*s.shape[-2:]) == 1, s, -np.inf)) @ z

def says(q, k, v):
    print("chatter")
    return right(q, k, v)

class Model:
    @staticmethod
    def attend(q, k, v):
        return right(q, k, v)

def _soft(s):
    e = np.exp(s - s.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)

number = 3
"""


@pytest.fixture(autouse=True)
def modules(tmp_path, monkeypatch):
    (tmp_path / "attentions.py").write_text(MODULE)
    (tmp_path / "broken.py").write_text("import nothing_of_that_name")
    (tmp_path / "leaves.py").write_text("raise SystemExit(0)")
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    for name in ("attentions", "broken", "leaves"):
        monkeypatch.delitem(sys.modules, name, raising=False)


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (["attentions:right"], SOUND, "✓ sound"),
        (["attentions.py:right"], SOUND, "✓ sound"),
        (["attentions:Model.attend"], SOUND, "✓ sound"),
        (["attentions:says"], SOUND, "✓ sound"),
        (["attentions:unscaled"], NOT_SOUND, "✗ no-scale"),
        (["attentions:unscaled", "--scale", "1"], SOUND, "scale 1"),
        (["attentions:unscaled", "--scale", "1.0"], SOUND, "scale 1.0"),
        (["attentions:right", "--scale", "1/d_k"], NOT_SOUND, "✗ scale-unasked"),
        (["attentions:always_causal"], NOT_SOUND, "✗ causal-unasked"),
        (["attentions:always_causal", "--causal"], SOUND, "always causal"),
        (
            ["attentions:always_causal", "--causal", "--causal-alignment", "lower_right"],
            NOT_SOUND,
            "✗ causal-wrong-alignment",
        ),
        (["attentions:right", "--layout", "BTHD"], NOT_SOUND, "✗ heads-and-tokens-swapped"),
        (["attentions:right", "--layout", "TD", "--framework", "numpy"], SOUND, "layout TD"),
        (["attentions:right", "--dtype", "float64", "--d-k", "64", "--d-v", "8"], SOUND, "float64"),
    ],
)
def test_what_it_prints_and_how_it_ends(arguments, code, said, capsys):
    assert main(arguments) == code
    printed = capsys.readouterr()
    assert said in printed.out
    assert "chatter" not in printed.out
    assert printed.err == ""


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ([], "Name a function"),
        (["attentions"], "names no function"),
        (["attentions:"], "names no function"),
        (["attentions:rihgt"], "Is one of these meant: right"),
        (["attentions:number"], "attentions:number is no function, but an object of type int"),
        (["nowhere:f"], "nowhere cannot be imported"),
        (["nowhere.py:f"], "nowhere.py cannot be imported"),
        (["broken:f"], "nothing_of_that_name"),
        (["leaves:f"], "leaves cannot be imported: SystemExit"),
        (["attentions:right", "--framework", "numpy", "--dtype", "bfloat16"], "NumPy has no"),
        (["attentions:right", "--d-k", "0"], "d_k"),
    ],
)
def test_what_it_cannot_use(arguments, said, capsys):
    assert main(arguments) == UNUSABLE
    printed = capsys.readouterr()
    assert said in printed.err
    assert printed.out == ""


@pytest.mark.parametrize("option", [["--layout", "XYZ"], ["--scale", "big"], ["--unheard-of"]])
def test_a_wrong_option(option, capsys):
    with pytest.raises(SystemExit) as ended:
        main(["attentions:right", *option])
    assert ended.value.code == UNUSABLE
    assert option[-1] in capsys.readouterr().err


def test_the_catalogue_can_be_listed(capsys):
    assert main(["--catalogue"]) == SOUND
    printed = capsys.readouterr().out
    assert all(f"{id}\n" in printed for id in CATALOGUE)


def test_a_picture_is_written(tmp_path, capsys):
    file = tmp_path / "where.svg"
    assert main(["attentions:unscaled", "--picture", str(file)]) == NOT_SOUND
    assert file.read_text().startswith("<svg")


@pytest.mark.parametrize(
    ("name", "code"), [("right", SOUND), ("unscaled", NOT_SOUND), ("missing", UNUSABLE)]
)
def test_as_a_process_of_its_own(name, code, tmp_path):
    """Modules of the folder where it is called are found."""
    command = [sys.executable, "-m", "helpers.doctor", f"attentions:{name}"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == code, done.stderr
    assert bool(done.stdout) == (code != UNUSABLE)
