"""The wall of memory: real peaks, in ratios that hold on any machine; no clock is asserted."""

import json
import subprocess
import sys

import numpy as np
import psutil
import pytest

from helpers import memory_wall
from helpers.memory_wall import REAL_MODELS, growth, measure_wall, score_matrix_bytes

TS = (256, 512, 1024, 2048)


@pytest.fixture(scope="module")
def wall():
    return measure_wall(TS, heads=2, d=32)


def test_a_row_for_each_length(wall):
    assert wall.T.tolist() == list(TS)
    assert wall.matrix_bytes.tolist() == [2 * T * T * 4 for T in TS]
    assert (wall.heads, wall.d) == (2, 32)
    assert len(str(wall).splitlines()) == len(TS) + 1
    assert (wall.seconds_plain > 0).all()
    assert (wall.seconds_fused > 0).all()


def test_plain_attention_holds_its_matrices(wall):
    held = wall.peak_plain * 1e6 / wall.matrix_bytes
    assert (np.diff(wall.peak_plain) > 0).all()
    assert (held[1:] >= 1).all()
    assert 1.9 <= held[-1] <= 2.6  # two at a time, and little else
    assert 1.8 <= growth(wall.T, wall.peak_plain) <= 2.1


def test_fused_attention_holds_no_matrix(wall):
    assert wall.peak_fused[-1] * 1e6 < wall.matrix_bytes[-1] / 4
    assert wall.peak_fused[-1] < wall.peak_plain[-1] / 8
    output = 2 * TS[-1] * 32 * 4
    assert wall.peak_fused[-1] * 1e6 >= output / 2 or not wall.reset


@pytest.mark.skipif(sys.platform != "linux", reason="how Linux keeps the mark")
def test_without_a_reset_the_mark_since_the_start_serves():
    code = (
        "import json, helpers.memory_wall as m; m._reset_peak = lambda: False;"
        "print(json.dumps(m._measure('plain', [1024], 8, 8)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    found = json.loads(done.stdout)
    assert found["reset"] is False
    matrix = score_matrix_bytes(1024, 8, bytes_per_number=4)
    assert 1 <= found["rows"][0]["bytes"] / matrix <= 2.6


@pytest.mark.parametrize("power", [0, 0.5, 1, 2, 3])
def test_growth_of_known_powers(power):
    T = np.array([512, 1024, 2048, 4096])
    assert growth(T, 7.0 * T.astype(float) ** power) == pytest.approx(power, abs=1e-12)


def test_growth_looks_at_the_largest():
    Ts, values = [8, 1, 4, 2], [64, 99, 16, 4]  # T², but for the smallest
    assert growth(Ts, values) == pytest.approx(2)
    assert growth(Ts, values, largest=4) < 1.5
    assert growth([1, 2], [3, 6]) == pytest.approx(1)


@pytest.mark.parametrize(
    ("Ts", "values", "settings", "error", "words"),
    [
        ([1], [1], {}, ValueError, "two different lengths"),
        ([2, 2], [1, 3], {}, ValueError, "two different lengths"),
        ([1, 2], [1, 2], {"largest": 1}, ValueError, "largest is 1"),
        ([1, 2], [1, 2, 3], {}, ValueError, "both must be"),
        ([1, 2], [0, 1], {}, ValueError, "no logarithm"),
        ([1, 2], [np.nan, 1], {}, ValueError, "no logarithm"),
        ([1, 2], ["a", "b"], {}, TypeError, "real numbers"),
    ],
)
def test_growth_refuses(Ts, values, settings, error, words):
    with pytest.raises(error, match=words):
        growth(Ts, values, **settings)


@pytest.mark.parametrize(
    ("settings", "error", "words"),
    [
        ({"Ts": ()}, ValueError, "at least one length"),
        ({"Ts": (512, 512)}, ValueError, "larger than the one before"),
        ({"Ts": (1024, 512)}, ValueError, "larger than the one before"),
        ({"Ts": (0, 512)}, ValueError, "each T"),
        ({"Ts": (512.0,)}, TypeError, "each T"),
        ({"heads": 0}, ValueError, "heads"),
        ({"d": -1}, ValueError, "d is -1"),
        ({"Ts": (10**7,)}, MemoryError, "this is the wall"),
    ],
)
def test_nothing_is_measured(monkeypatch, settings, error, words):
    monkeypatch.setattr(memory_wall, "_in_own_process", lambda *_: pytest.fail("started"))
    with pytest.raises(error, match=words):
        measure_wall(**settings)


def test_a_process_that_fails_or_takes_too_long(monkeypatch):
    before = set(psutil.Process().children(recursive=True))
    monkeypatch.setattr(memory_wall, "WAYS", ("nonsense",))
    with pytest.raises(RuntimeError, match=r"exit code 1: [\s\S]*KeyError: 'nonsense'"):
        measure_wall((64,), heads=1, d=8)
    with pytest.raises(TimeoutError, match=r"within 0\.1 s"):
        measure_wall((64,), timeout=0.1)
    assert set(psutil.Process().children(recursive=True)) <= before


def test_bytes_of_the_scores():
    assert score_matrix_bytes(1024, 12) == 12 * 1024**2 * 2
    assert score_matrix_bytes(4, 3, layers=5, batch=7, bytes_per_number=4) == 4 * 4 * 3 * 5 * 7 * 4
    for wrong in ({"T": 0}, {"heads": 0}, {"layers": -1}, {"batch": 0}, {"bytes_per_number": 0}):
        with pytest.raises(ValueError, match=next(iter(wrong))):
            score_matrix_bytes(**({"T": 4, "heads": 1} | wrong))
    with pytest.raises(TypeError, match="T"):
        score_matrix_bytes(4.0, 1)


def test_real_models():
    by_name = {row["name"]: row for row in REAL_MODELS.rows()}
    assert len(by_name) == len(REAL_MODELS) == 5
    assert by_name["GPT-2 small"]["score_bytes"] == 25_165_824
    assert by_name["Llama 3.1 8B"]["score_bytes"] == 2**40  # a tebibyte
    assert (np.diff(REAL_MODELS.score_bytes) > 0).all()
    np.testing.assert_allclose(REAL_MODELS.score_gb, REAL_MODELS.score_bytes / 1e9)
    assert "1099.512" in str(REAL_MODELS)
