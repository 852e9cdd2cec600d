"""The doctor on sound functions, and on sound and sick ones over many seeds."""

from collections import Counter
from itertools import pairwise

import pytest
from doctor_cases import DISEASED, REJECTED, SOUND
from doctor_cases.patients import diagnose

# A NumPy function with k.T, tried on tensors.
pytestmark = pytest.mark.filterwarnings("ignore:The use of `x.T`")

SEEDS = 200
ROUNDS = 2  # how often each patient has its turn; in test_doctor it is seen once more
TOGETHER = 20  # seeds in one test


def in_turn(patients, count):
    """For each seed its patients: `count` in all, one after the other, as often as it takes."""
    ends = [count * seed // SEEDS for seed in range(SEEDS + 1)]
    return [
        [patients[i % len(patients)] for i in range(start, end)] for start, end in pairwise(ends)
    ]


def patient_ones(patients):
    """Without those that wait for the clock."""
    return [patient for patient in patients if "seconds" not in patient.said]


STEADY = [patient for patient in SOUND if patient.every_seed]
ALL_SOUND = in_turn(SOUND, ROUNDS * len(SOUND))
MORE_SOUND = in_turn(STEADY, 2 * SEEDS - ROUNDS * len(SOUND))
SICK = in_turn(patient_ones(DISEASED), ROUNDS * len(patient_ones(DISEASED)))
WRONG = in_turn(patient_ones(REJECTED), ROUNDS * len(patient_ones(REJECTED)))


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


@pytest.mark.parametrize("start", range(0, SEEDS, TOGETHER))
def test_no_false_alarm_and_no_miss_over_many_seeds(start):
    for seed in range(start, start + TOGETHER):
        for patient in ALL_SOUND[seed] + MORE_SOUND[seed]:
            diagnosis = diagnose(patient, 1000 + seed)
            assert diagnosis.sound, (seed, patient, diagnosis)
        for patient in SICK[seed]:
            diagnosis = diagnose(patient, 1000 + seed)
            assert diagnosis.name == patient.name, (seed, diagnosis)
        for patient in WRONG[seed]:
            assert not diagnose(patient, 1000 + seed).sound, (seed, patient)


def test_every_patient_has_its_turn_and_every_seed_its_patients():
    turns = Counter(
        id(patient)
        for groups in zip(ALL_SOUND, MORE_SOUND, SICK, WRONG)
        for group in groups
        for patient in group
    )
    for patient in patient_ones([*SOUND, *DISEASED, *REJECTED]):
        assert turns[id(patient)] >= ROUNDS, patient
    for sound, more, sick, wrong in zip(ALL_SOUND, MORE_SOUND, SICK, WRONG):
        assert 1 <= len(sound + more) <= 3
        assert 2 <= len(sick + wrong) <= 5
