"""The doctor on sick functions by name, on wrong ones that it only rejects, on sound ones."""

import inspect
import subprocess
import sys

import pytest
from doctor_cases import DISEASED, REJECTED, SOUND

from helpers.attention import scaled_dot_product_attention, softmax
from helpers.doctor import CATALOGUE, examine
from helpers.doctor.__main__ import main

# How long a call takes depends on what else the machine does.
NAMED = [patient for patient in DISEASED if patient.name != "too-slow"]


def fresh(patient):
    """The function; a class stands for one that must be new for each examination."""
    return patient.fn() if inspect.isclass(patient.fn) else patient.fn


@pytest.mark.parametrize("patient", NAMED, ids=str)
def test_a_disease_gets_its_name(patient):
    diagnosis = examine(fresh(patient), **patient.said)
    assert not diagnosis.sound
    assert diagnosis.name == patient.name
    assert diagnosis.evidence
    assert diagnosis.fix


@pytest.mark.parametrize("patient", REJECTED, ids=str)
def test_a_wrong_function_never_passes(patient):
    assert not examine(fresh(patient), **patient.said).sound


@pytest.mark.parametrize("patient", SOUND, ids=str)
def test_a_right_function_never_fails(patient):
    diagnosis = examine(fresh(patient), **patient.said)
    assert diagnosis.sound, str(diagnosis)
    assert diagnosis.name == "sound"


def unscaled(q, k, v):
    return softmax(q @ k.mT) @ v


def test_names_are_those_of_the_catalogue():
    met = {name for patient in DISEASED for name in patient.name.split("|")}
    assert met <= set(CATALOGUE) | {"unknown"}


@pytest.mark.parametrize("seed", range(0, 200, 4))
def test_no_seed_gives_a_false_alarm_or_a_miss(seed):
    assert examine(scaled_dot_product_attention, _seed=seed).sound
    assert examine(unscaled, _seed=seed).name == "no-scale"


def test_a_convention_that_is_told_makes_it_right():
    assert examine(unscaled).name == "no-scale"
    assert examine(unscaled, scale=1.0).sound


def test_the_command_says_it_and_exits_with_it(tmp_path, capsys):
    sick = tmp_path / "mine.py"
    sick.write_text(
        "from helpers.attention import softmax\ndef attention(q, k, v):\n"
        "    return softmax(q @ k.mT) @ v\n"
    )
    assert main([f"{sick}:attention"]) == 1
    assert "not divided by √d_k" in capsys.readouterr().out
    assert main([f"{sick}:attention", "--scale", "1"]) == 0
    assert main(["helpers.attention:scaled_dot_product_attention"]) == 0
    assert main(["helpers.attention:scaled_dot_attention"]) == 2
    assert "scaled_dot_product_attention" in capsys.readouterr().err
    assert main(["no_such_module:f"]) == 2
    assert "no_such_module cannot be imported" in capsys.readouterr().err


def test_importing_it_needs_no_torch():
    code = "import sys, helpers.doctor; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
