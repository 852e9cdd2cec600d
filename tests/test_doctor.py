"""The doctor on sick functions: each disease by its name, no wrong function passed."""

import re

import pytest
from doctor_cases import DISEASED, REJECTED
from doctor_cases.patients import diagnose

from helpers.doctor import CATALOGUE, Diagnosis, examine

# A NumPy function with k.T, tried on tensors.
pytestmark = pytest.mark.filterwarnings("ignore:The use of `x.T`")


def well_told(diagnosis):
    """What a diagnosis of a sick function must have, whatever the disease."""
    assert not diagnosis.sound
    assert diagnosis.name.split("|")
    assert set(diagnosis.name.split("|")) <= set(CATALOGUE)
    text = str(diagnosis)
    for part in (diagnosis.name, diagnosis.sentence, diagnosis.fix, "Evidence", "See"):
        assert part in text
    assert diagnosis.evidence.strip()
    assert not re.search(r"0x[0-9a-f]{4}|/tmp/|/work/|\bat 0x", text)
    bundle = diagnosis._repr_mimebundle_()
    assert bundle["text/plain"] == text
    assert "<strong>" in bundle["text/html"]


# --- Names ---


@pytest.mark.parametrize("patient", DISEASED, ids=str)
def test_a_disease_gets_its_name(patient, capfd):
    diagnosis = diagnose(patient)
    assert diagnosis.name == patient.name, diagnosis
    well_told(diagnosis)
    assert capfd.readouterr() == ("", "")


def test_every_disease_of_the_catalogue_is_tried():
    tried = {name for patient in DISEASED for name in patient.name.split("|")}
    assert tried | {"too-slow"} == set(CATALOGUE)  # that one in test_doctor_words


@pytest.mark.parametrize("patient", REJECTED, ids=str)
def test_a_wrong_function_is_rejected(patient, capfd):
    well_told(diagnose(patient))
    assert capfd.readouterr() == ("", "")


def test_there_are_enough():
    assert len(REJECTED) >= 30


# --- The catalogue ---


@pytest.mark.parametrize("disease", CATALOGUE.values(), ids=lambda disease: disease.id)
def test_a_disease_is_described(disease):
    assert re.fullmatch(r"[a-z0-9_]+(-[a-z0-9_]+)*", disease.id)
    for sentence in (disease.sentence, disease.tells, disease.fix):
        assert len(sentence.split()) >= 3
    assert re.match(r"https://(github\.com/[\w.-]+/[\w.-]+/(issues|pull)/\d+|arxiv\.org/abs/"
                    r"\d{4}\.\d{5}|docs\.pytorch\.org/)", disease.link)  # fmt: skip


def test_sound_is_no_disease():
    assert "sound" not in CATALOGUE
    assert "unknown" in CATALOGUE
    assert isinstance(examine(lambda q, k, v: v), Diagnosis)
