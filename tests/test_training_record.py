"""The record that comes with lesson 4, and that what the lesson says of it follows from it."""

import itertools
import json
import re
from pathlib import Path

import numpy as np
import pytest

from helpers.training import Record, TrainConfig, sweep
from helpers.training.config import INITS
from helpers.training.record import agreement, predicted_score_std

NOTEBOOK = Path(__file__).parent.parent / "notebooks" / "04_the_missing_scale.ipynb"
STORY = TrainConfig()


@pytest.fixture(scope="module")
def record():
    return Record()


# --- The record is whole, and made by this code ---


def test_every_run_of_the_plan_is_recorded_once(record):
    recorded = [TrainConfig.from_dict(line["config"]) for line in record.lines]
    assert len(recorded) == len(set(recorded))
    assert set(recorded) == set(sweep.plan())


def test_lines_have_the_shape_they_promise(record):
    for line in record.lines:
        config = TrainConfig.from_dict(line["config"])
        m = config.steps // config.measure_every + 1
        assert line["measured"] == list(range(0, config.steps + 1, config.measure_every))
        for name in ("val_loss", "entropy", "largest_weight", "score_std"):
            assert len(line[name]) == m, name
        assert all(0 <= x <= 1 for x in line["entropy"] + line["largest_weight"])
        assert 0 < line["final_error"] < 0.05 < line["final_loss"] < 5.6
        for half in ("first", "second"):
            shape = np.array(agreement(line, half)).shape
            assert shape == (config.layers, 3)
        about = line["about"]
        assert re.fullmatch(r"20\d\d-\d\d-\d\d", about["date"])
        assert {"python", "torch", "corpus", "seconds", "processor", "cores"} <= set(about)


def test_all_runs_read_the_same_text(record):
    assert len({line["about"]["corpus"] for line in record.lines}) == 1


def test_the_record_holds_no_path_and_no_name_of_a_machine():
    text = sweep.RECORD.read_text(encoding="utf-8")
    assert "/" not in re.sub(r"1/√d|1/d", "", text)


def test_the_sweep_goes_on_where_it_stopped(tmp_path, monkeypatch, capsys):
    tiny = TrainConfig(d_head=8, heads=1, layers=1, context=8, batch=2, steps=4, measure_every=2)
    monkeypatch.setattr(sweep, "plan", lambda: [tiny, tiny.but(scale="none")])
    file = tmp_path / "record.jsonl"
    sweep.main(["--record", str(file), "--first", "1"])
    assert [line["config"]["scale"] for line in sweep.read(file)] == ["1/√d"]
    sweep.main(["--record", str(file)])
    assert [line["config"]["scale"] for line in sweep.read(file)] == ["1/√d", "none"]
    assert "1 runs are recorded, 1 to do." in capsys.readouterr().out
    file.write_text(file.read_text() + "{broken\n")
    with pytest.raises(ValueError, match=r"line 3 of record\.jsonl is no JSON"):
        sweep.read(file)


def test_a_run_that_was_not_recorded_is_named(record):
    with pytest.raises(KeyError, match="no run with d_head 12 is recorded"):
        record.of(STORY.but(d_head=12))


# --- What the lesson says ---


def test_the_start_is_as_predicted(record):
    """Unscaled scores at step 0, against √d_head · d_model · σ_W², within a quarter."""
    for line in record.lines:
        config = TrainConfig.from_dict(line["config"])
        if config.scale == "none" and config.softcap is None and not config.fold_scale:
            predicted = predicted_score_std(config.init, config.d_head)
            assert line["score_std"][0] == pytest.approx(predicted, rel=0.25)


def losses(record, **changes):
    return record.losses(STORY.but(**changes))


def test_the_story(record):
    healthy, failed = losses(record), losses(record, scale="none")
    assert len(healthy) == len(failed) == 3
    assert (failed - healthy > 0.4).all()
    for line in record.of(STORY.but(scale="none")):
        assert line["entropy"][0] < 0.12
        assert max(line["entropy"][1:]) < 0.12
    for line in record.of(STORY):
        assert 0.8 < line["entropy"][0] < 0.9


def test_the_teams_attention_is_worth_little(record):
    nothing = losses(record, attention="nothing")
    assert nothing.mean() - losses(record, scale="none").mean() == pytest.approx(0.05, abs=0.005)
    assert nothing.mean() - losses(record).mean() == pytest.approx(0.52, abs=0.005)
    for line in record.of(STORY.but(attention="nothing")):
        assert line["val_loss"][5] < 0.5 * line["val_loss"][0]  # after 100 steps
    after_60 = [[line["val_loss"][3] for line in record.of(STORY.but(attention=attention))]
                for attention in ("torch", "nothing")]  # fmt: skip
    np.testing.assert_allclose(*after_60, atol=0.03)


def test_gradients_do_not_vanish_and_do_not_agree(record):
    for good, bad in zip(record.of(STORY), record.of(STORY.but(scale="none"))):
        for half in ("first", "second"):
            ratio = np.divide(bad[f"gradient_norm_{half}_half"], good[f"gradient_norm_{half}_half"])
            assert (ratio[0, :2] > 2).all()
            assert ((ratio[1, :2] > 0.9) & (ratio[1, :2] < 2.3)).all()
        assert (agreement(good, "first")[:, :2] > 3 * agreement(bad, "first")[:, :2]).all()


def test_freezing_costs_the_failed_model_nothing(record):
    frozen = losses(record, scale="none", freeze_qk=True)
    assert (frozen < losses(record, scale="none")).all()
    with_scale = losses(record, freeze_qk=True)
    assert (with_scale - losses(record) > 0.1).all()
    assert (frozen - with_scale).mean() == pytest.approx(0.25, abs=0.005)
    assert (with_scale - losses(record)).mean() == pytest.approx(0.17, abs=0.005)
    assert (losses(record, scale="none") - frozen).mean() == pytest.approx(0.05, abs=0.005)


def test_a_scale_put_in_later_helps_in_part(record):
    late = STORY.but(scale="none", rescale_at=300)
    renewed = late.but(redraw_qk=True)
    of = [record.losses(c) for c in (STORY, renewed, late, STORY.but(scale="none"))]
    assert all((better < worse).all() for better, worse in itertools.pairwise(of))

    def probe(config, step):
        return np.array([line["val_loss"][step // 20] for line in record.of(config)])

    fresh = probe(STORY, 300)
    ahead = fresh - probe(late, 600)
    assert ((ahead > 0.01) & (ahead < 0.055)).all()
    ahead = fresh - probe(renewed, 600)
    assert ((ahead > 0.11) & (ahead < 0.165)).all()
    for config in (late, renewed):
        assert (probe(config, 320) <= probe(config, 300)).all()  # no jump 20 steps later


def test_what_helps_and_what_does_not(record):
    healthy, failed = losses(record), losses(record, scale="none")
    of = {name: losses(record, **changes) for name, changes in sweep.ALTERNATIVES.items()}
    for name in ("learned scale", "QK-norm", "folded, W_Q slower too"):
        assert (np.abs(of[name] - healthy) < 0.03).all(), name
    assert ((healthy - of["QK-norm"] > 0.01) & (healthy - of["QK-norm"] < 0.02)).all()
    assert (np.abs(of["folded into W_Q"] - failed) < 0.06).all()
    gap = (failed - healthy).mean()
    assert 0.64 < (failed - of["soft cap 10, no scale"]).mean() / gap < 0.7
    assert 0.25 < (failed - of["soft cap 50, no scale"]).mean() / gap < 0.33
    by_d = losses(record, scale="1/d")
    assert (healthy < by_d).all()
    assert (failed - by_d).mean() == pytest.approx(0.34, abs=0.005)


def lost(record, d_head, init, rate):
    config = sweep.on_map(d_head, init, rate, "none")
    return record.losses(config) - record.losses(config.but(scale="1/√d"))


def test_large_heads_at_the_larger_rate_fail_under_every_init(record):
    for init in ("unit", "linear", "0.02"):
        assert len(lost(record, 128, init, 1e-3)) == 3
        assert (lost(record, 128, init, 1e-3) > 0.27).all()
    for line in record.of(sweep.on_map(128, "0.02", 1e-3, "none")):
        assert 0.9 < line["score_std"][0] < 1.1
        assert line["score_std"][-1] > 100


def test_a_smaller_rate_saves_small_weights(record):
    assert (
        (lost(record, 128, "0.02", 3e-4) > 0.03) & (lost(record, 128, "0.02", 3e-4) < 0.07)
    ).all()


def test_small_heads_suffer_less(record):
    for rate in sweep.RATES:
        rows = record.lost(rate)
        assert (rows[:, 0] < rows[:, -1]).all()
    start = [predicted_score_std(init, d) for init in INITS for d in sweep.D_HEADS]
    size = [d for _ in INITS for d in sweep.D_HEADS]
    slow, fast = (record.lost(rate).ravel() for rate in sweep.RATES)
    by = {name: [np.corrcoef(np.log(x), cost)[0, 1] for cost in (slow, fast)]
          for name, x in (("start", start), ("size", size))}  # fmt: skip
    assert by["start"][0] > 0.9  # at the small rate the cost follows the start,
    assert by["size"][1] > by["start"][1] + 0.1  # at the large one the head size
    small = lost(record, 16, "unit", 3e-4)
    assert ((small > 0.05) & (small < 0.085)).all()


def test_where_everything_is_small_the_scale_hurts(record):
    assert (record.lost(3e-4)[2, :3] < -0.07).all()  # heads of 16, 32 and 64, one seed
    small = lost(record, 16, "0.02", 3e-4)
    assert len(small) == 3
    assert ((small < -0.075) & (small > -0.105)).all()
    config = sweep.on_map(16, "0.02", 3e-4, "none")
    for line in record.of(config):
        assert line["score_std"][0] == pytest.approx(0.34, abs=0.02)
        assert line["score_std"][-1] == pytest.approx(1.8, abs=0.15)
    for line in record.of(config.but(scale="1/√d")):
        assert line["score_std"][0] == pytest.approx(0.085, abs=0.005)
        assert line["score_std"][-1] == pytest.approx(0.9, abs=0.1)


# --- And that the notebook prints what the record says ---


def test_the_notebook_prints_the_record():
    cells = json.loads(NOTEBOOK.read_text(encoding="utf-8"))["cells"]
    printed = {cell["id"]: "".join("".join(o.get("text", "")) for o in cell["outputs"])
               for cell in cells if cell["cell_type"] == "code"}  # fmt: skip
    assert Record().corners().text("d_head", "init", "rate", "with_scale", "without", "lost",
                                   "least", "most") in printed["corners"]  # fmt: skip
