"""The doctor on sound functions, and on sound and sick ones over many seeds."""

import pytest
from doctor_cases import DISEASED, SOUND
from doctor_cases.patients import diagnose

# A NumPy function with k.T, tried on tensors.
pytestmark = pytest.mark.filterwarnings("ignore:The use of `x.T`")

# Together they take every kind of input, and come in both frameworks and three dtypes.
STEADY = [patient for patient in SOUND if patient.every_seed]
QUICK = [patient for patient in DISEASED if "seconds" not in patient.said]  # wait for no clock
SEEDS = 200


@pytest.mark.parametrize("patient", SOUND, ids=str)
def test_a_sound_function_passes(patient, capfd):
    diagnosis = diagnose(patient)
    assert diagnosis.sound, diagnosis
    assert diagnosis.name == "sound"
    assert diagnosis.fix == ""
    assert "✓ sound" in str(diagnosis)
    assert capfd.readouterr() == ("", "")


def test_there_are_enough():
    assert len(SOUND) >= 20
    assert len(STEADY) >= 5


@pytest.mark.parametrize("start", range(0, SEEDS, 20))
def test_no_false_alarm_and_no_miss_over_many_seeds(start):
    for seed in range(start, start + 20):
        sound = diagnose(STEADY[seed % len(STEADY)], 1000 + seed)
        assert sound.sound, (seed, sound)
        sick = QUICK[seed % len(QUICK)]
        diagnosis = diagnose(sick, 1000 + seed)
        assert diagnosis.name == sick.name, (seed, diagnosis)
