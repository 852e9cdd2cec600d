"""python -m helpers.doctor: its exit codes and what it says."""

import subprocess
import sys
from pathlib import Path

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

def masked(q, k, v, attn_mask=None):
    s = q @ k.mT / np.sqrt(q.shape[-1])
    if attn_mask is not None and attn_mask.dtype == bool:
        s = np.where(attn_mask, -np.inf, s)
    elif attn_mask is not None:
        s = s + attn_mask
    return np.nan_to_num(_soft(s)) @ v

def empty(q, k, v, mask=None):
    s = q @ k.mT / np.sqrt(q.shape[-1])
    return _soft(s if mask is None else np.where(mask, s, -np.inf)) @ v

def frozen(q, k, v):
    import torch
    with torch.no_grad():
        return torch.nn.functional.scaled_dot_product_attention(q, k, v)

def slow(q, k, v):
    import time
    time.sleep(0.2)
    return right(q, k, v)

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
    (tmp_path / "typo.py").write_text("def f(q, k, v)\n    return q\n")
    (tmp_path / "nothing_in_it.py").write_text("number = 3\n")
    for name in ("attentions", "broken", "leaves", "typo", "nothing_in_it"):
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
        (["attentions:masked"], NOT_SOUND, "✗ mask-inverted"),
        (["attentions:masked", "--mask-true-means", "masked"], SOUND, "True = masked"),
        (["attentions:empty"], NOT_SOUND, "✗ nan-on-fully-masked-row"),
        (["attentions:empty", "--empty-rows", "any"], SOUND, "✓ sound"),
        (["attentions:frozen"], NOT_SOUND, "✗ gradient-missing"),
        (["attentions:frozen", "--no-gradients"], SOUND, "takes no such thing: "),
        (["attentions:frozen", "--no-gradients", "--device", "cpu"], SOUND, "torch; float32"),
        (["attentions:frozen", "--no-gradients", "--dtype", "bfloat16"], SOUND, "torch; bfloat16"),
        (["attentions:slow", "--seconds", "0.05"], NOT_SOUND, "✗ did-not-finish"),
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
        (["attentions:xyz"], "attentions has no xyz. It has: right, unscaled, always_causal"),
        (["attentions.py:xyz"], "attentions.py has no xyz. It has: right"),
        (["attentions:xyz"], "and 1 more."),
        (["attentions:Model.xyz"], "has no Model.xyz. It has: attend."),
        (["nothing_in_it:f"], "nothing_in_it has no f. It has no function at all."),
        (["attentions:number"], "attentions:number is no function, but an object of type int"),
        (["nowhere:f"], "nowhere cannot be imported"),
        (["nowhere.py:f"], "There is no file nowhere.py. Give its path from here."),
        (["atentions.py:f"], "no file atentions.py. Is one of these meant: attentions.py?"),
        (["typo:f"], "typo cannot be imported: SyntaxError: expected ':'"),
        (["typo.py:f"], "typo.py cannot be imported: SyntaxError: expected ':' (typo.py, line 1)"),
        (["broken:f"], "nothing_of_that_name"),
        (["leaves:f"], "leaves cannot be imported: SystemExit"),
        (["attentions:right", "--framework", "numpy", "--dtype", "bfloat16"], "NumPy has no"),
        (["attentions:right", "--d-k", "0"], "d_k is 0, but must be positive."),
        (["attentions:right", "--d-v", "-2"], "d_v is -2, but must be positive."),
        (["attentions:right", "--seconds", "-1"], "seconds is -1.0, but must be positive."),
        (["attentions:right", "--seconds", "nan"], "seconds is nan, but must be positive."),
        (["attentions:right", "--scale", "inf"], "scale gives inf, but must be finite."),
        (["attentions:right", "--device", "toaster"], "device is 'toaster', but torch cannot use"),
        (["attentions:right", "--device", "toaster"], 'Pass "cpu", or nothing.'),
        (
            ["attentions:right", "--framework", "numpy", "--device", "cuda"],
            "device is 'cuda', but NumPy knows none: drop it.",
        ),
    ],
)
def test_what_it_cannot_use(arguments, said, capsys):
    assert main(arguments) == UNUSABLE
    printed = capsys.readouterr()
    assert said in printed.err
    assert printed.out == ""


@pytest.mark.parametrize(
    ("option", "wanted"),
    [
        (["--layout", "XYZ"], "BTHD"),
        (["--scale", "big"], "must be a number, or one of 1/sqrt(d_k), 1/d_k, 1"),
        (["--causal-alignment", "bottom_right"], "lower_right"),
        (["--mask-true-means", "hidden"], "masked"),
        (["--framework", "jax"], "torch"),
        (["--dtype", "int8"], "bfloat16"),
        (["--empty-rows", "nan"], "zeros"),
        (["--d-k", "x"], "must be a whole number, such as 64"),
        (["--d-v", "7.5"], "must be a whole number, such as 64"),
        (["--seconds", "long"], "must be a number of seconds"),
        (["--unheard-of"], "unrecognized"),
        (["--device"], "expected one argument"),
    ],
    ids=" ".join,
)
def test_a_wrong_option(option, wanted, capsys):
    with pytest.raises(SystemExit) as ended:
        main(["attentions:right", *option])
    assert ended.value.code == UNUSABLE
    printed = capsys.readouterr()
    assert printed.out == ""
    for part in (*option, wanted):
        assert part in printed.err


def test_without_torch_it_says_what_is_missing(monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, "torch", None)  # as if it were not installed
    assert main(["attentions:right"]) == SOUND
    capsys.readouterr()
    for options in (["--framework", "torch"], ["--device", "cpu"], ["--dtype", "bfloat16"]):
        assert main(["attentions:right", *options]) == UNUSABLE
        printed = capsys.readouterr()
        assert printed.out == ""
        assert "torch is needed, but cannot be imported" in printed.err
        assert "leave out" in printed.err


def test_the_catalogue_can_be_listed(capsys):
    assert main(["--catalogue"]) == SOUND
    printed = capsys.readouterr().out
    assert all(f"{id}\n" in printed for id in CATALOGUE)


def test_a_picture_is_written(tmp_path, capsys):
    file = tmp_path / "where.svg"
    assert main(["attentions:unscaled", "--picture", str(file)]) == NOT_SOUND
    assert file.read_text().startswith("<svg")


def test_a_sound_function_has_no_picture(tmp_path, capsys):
    file = tmp_path / "where.svg"
    assert main(["attentions:right", "--picture", str(file)]) == SOUND
    printed = capsys.readouterr()
    assert "✓ sound" in printed.out
    assert printed.err == f"{file} is not written: nothing is wrong.\n"
    assert not file.exists()


def test_nor_has_what_gives_no_numbers(tmp_path, capsys):
    file = tmp_path / "where.svg"
    options = ["--seconds", "0.05", "--picture", str(file)]
    assert main(["attentions:slow", *options]) == NOT_SOUND
    assert "is not written: there is no output that could be" in capsys.readouterr().err
    assert not file.exists()


@pytest.mark.parametrize("name", ["no_folder/where.svg", "."])
def test_a_picture_that_cannot_be_written_changes_no_verdict(name, capsys):
    assert main(["attentions:unscaled", "--picture", name]) == NOT_SOUND
    printed = capsys.readouterr()
    assert "✗ no-scale" in printed.out
    assert f"{Path(name)} cannot be written: " in printed.err
    assert "Name a file in a folder that exists." in printed.err


@pytest.mark.parametrize(
    ("name", "code"), [("right", SOUND), ("unscaled", NOT_SOUND), ("missing", UNUSABLE)]
)
def test_as_a_process_of_its_own(name, code, tmp_path):
    """Modules of the folder where it is called are found."""
    command = [sys.executable, "-m", "helpers.doctor", f"attentions:{name}"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == code, done.stderr
    assert bool(done.stdout) == (code != UNUSABLE)
