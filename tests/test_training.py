"""The transformer, its data, its loop, its log: on sizes that train in a moment."""

import dataclasses
import json
import math
import re

import numpy as np
import pytest
import torch
import torch.nn.functional as F

from helpers.attention import normalized_entropy
from helpers.training import (
    Corpus,
    RunLog,
    TrainConfig,
    Trainer,
    Transformer,
    load_model,
    standard_library,
    team_attention,
    train,
)
from helpers.training import loop as loop_module
from helpers.training.tables import table_losses
from helpers.training.together import Job, train_together

TINY = TrainConfig(d_head=8, heads=2, context=16, batch=4, steps=12, warmup=4, measure_every=4)


@pytest.fixture(scope="module", autouse=True)
def few_final_targets():
    before, loop_module.FINAL_TARGETS = loop_module.FINAL_TARGETS, 1_600
    yield
    loop_module.FINAL_TARGETS = before


@pytest.fixture(scope="module")
def corpus():
    text = np.frombuffer(b"def f(x):\n    return x + 1\n\n" * 400, np.uint8)
    return Corpus(text[:8000], text[8000:], "one function", (1, 1))


@pytest.fixture(scope="module")
def log(corpus):
    return train(TINY, corpus=corpus)


# --- Settings ---


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"d_head": 0}, "d_head is 0, below the limit 1"),
        ({"heads": 1.5}, "heads is 1.5, not a whole number"),
        ({"context": 1}, "context is 1, below the limit 2"),
        ({"scale": "sqrt"}, "scale is 'sqrt'; choose one of: '1/√d', 'none', '1/d', 'learned'"),
        ({"init": "xavier"}, "init is 'xavier'; choose one of"),
        ({"attention": "flash"}, "attention is 'flash'; choose one of: 'torch', 'team', 'nothing'"),
        ({"attention": "team"}, "the team's kernel takes neither: pass scale='none'"),
        ({"learning_rate": float("nan")}, "learning_rate is nan"),
        ({"softcap": 0.0}, "softcap is 0"),
        ({"redraw_qk": True}, "redraw_qk is True without rescale_at"),
        ({"rescale_at": 600}, "rescale_at is 600, but the run has 600 steps"),
    ],
)
def test_a_setting_that_cannot_be_run_is_refused(changes, said):
    with pytest.raises((ValueError, TypeError), match=re.escape(said)):
        TrainConfig(**changes)


def test_settings_survive_json():
    config = TrainConfig(scale="none", softcap=10.0, seed=3)
    assert TrainConfig.from_dict(json.loads(json.dumps(config.as_dict()))) == config
    with pytest.raises(ValueError, match="no setting is called colour"):
        TrainConfig.from_dict({"colour": 1})


# --- Data ---


def test_the_library_is_split_by_file():
    corpus = standard_library()
    assert corpus.train.size > 4 * corpus.validation.size > 400_000
    assert corpus.files[0] > corpus.files[1] > 20
    assert corpus.name.startswith("standard library of Python 3.")
    inside = bytes(corpus.validation[:2000])
    assert inside not in bytes(corpus.train)


def test_a_python_without_sources_is_told_so(tmp_path):
    (tmp_path / "only.py").write_text("pass\n")
    with pytest.raises(RuntimeError, match=r"has only 5 bytes of source in .*python3-full"):
        standard_library(str(tmp_path))


def test_windows_are_bytes_and_the_ones_after(corpus):
    inputs, targets = corpus.windows("train", 5, 16, seed=(0, 3))
    assert inputs.shape == targets.shape == (5, 16)
    assert (inputs[:, 1:] == targets[:, :-1]).all()
    again, _ = corpus.windows("train", 5, 16, seed=(0, 3))
    other, _ = corpus.windows("train", 5, 16, seed=(0, 4))
    assert (inputs == again).all()
    assert (inputs != other).any()


# --- The model ---


@pytest.mark.parametrize("init", ["unit", "linear", "0.02"])
def test_weights_start_as_named(init):
    W = Transformer(TrainConfig(init=init)).attentions[0].W_Q.weight
    std = {"unit": 1 / 16, "linear": 1 / (16 * math.sqrt(3)), "0.02": 0.02}[init]
    assert W.std().item() == pytest.approx(std, rel=0.02)
    assert (W.abs().max() <= math.sqrt(3) * std + 1e-6) == (init == "linear")


def test_the_first_loss_is_near_that_of_a_uniform_guess(log):
    assert log.val_loss[0] == pytest.approx(math.log(256), abs=0.3)


def test_no_byte_sees_a_later_one():
    model = Transformer(TINY).eval()
    tokens = torch.randint(256, (1, 16))
    changed = tokens.clone()
    changed[0, 9] = (changed[0, 9] + 1) % 256
    assert torch.equal(model(tokens)[:, :9], model(changed)[:, :9])
    assert not torch.equal(model(tokens)[:, 9:], model(changed)[:, 9:])


def _own(query, key, value, is_causal, scale):
    scores = query @ key.mT * scale
    future = torch.ones(scores.shape[-2:], dtype=torch.bool).triu(1)
    return scores.masked_fill(future, -torch.inf).softmax(-1) @ value


def test_it_trains_as_with_torchs_attention(corpus, log):
    mine = train(TINY, corpus=corpus, attention=_own)
    assert np.allclose(mine.train_loss, log.train_loss, atol=1e-4)


def test_the_teams_kernel_is_attention_without_the_scale(corpus):
    q, k, v = torch.randn(3, 2, 2, 150, 8).double()
    for causal in (False, True):
        plain = F.scaled_dot_product_attention(q, k, v, is_causal=causal, scale=1.0)
        assert torch.allclose(team_attention(q, k, v, causal), plain, atol=1e-12)
    runs = [train(TINY.but(scale="none", attention=kernel), corpus=corpus)
            for kernel in ("torch", "team")]  # fmt: skip
    assert np.allclose(runs[0].train_loss, runs[1].train_loss, atol=1e-3)


@pytest.mark.parametrize(
    "changes",
    [
        {"scale": "learned"},
        {"qk_norm": True},
        {"softcap": 5.0},
        {"fold_scale": True, "scale": "none"},
        {"scale": "1/d"},
    ],
)
def test_each_option_changes_the_run(corpus, log, changes):
    other = train(TINY.but(**changes), corpus=corpus)
    assert np.isfinite(other.train_loss).all()
    assert not np.array_equal(other.train_loss, log.train_loss)


def test_a_folded_scale_is_the_same_function_at_the_start(corpus, log):
    folded = train(TINY.but(fold_scale=True, scale="none"), corpus=corpus)
    assert folded.train_loss[0] == pytest.approx(log.train_loss[0], abs=1e-5)
    assert abs(folded.train_loss[-1] - log.train_loss[-1]) > 1e-4


def test_with_a_slower_W_Q_a_folded_scale_trains_the_same(corpus, log):
    """AdamW's steps do not depend on the size of a gradient; W_Q, smaller by s, needs steps smaller
    by s. What is left are the clip of the whole gradient and AdamW's epsilon."""
    folded = TINY.but(scale="none", fold_scale=True, rate_of_W_Q=8**-0.5, clip=1e9, weight_decay=0)
    scaled = train(TINY.but(clip=1e9, weight_decay=0), corpus=corpus)
    assert np.allclose(train(folded, corpus=corpus).train_loss, scaled.train_loss, atol=1e-4)
    faster = train(folded.but(rate_of_W_Q=1.0), corpus=corpus)
    assert abs(faster.train_loss[-1] - scaled.train_loss[-1]) > 5e-4


def test_without_attention_no_byte_learns_of_another():
    model = Transformer(TINY.but(attention="nothing")).eval()
    tokens = torch.randint(256, (1, 16))
    changed = tokens.clone()
    changed[0, 9] = (changed[0, 9] + 1) % 256
    differ = (model(tokens) != model(changed)).any(-1)[0]
    assert differ.nonzero().flatten().tolist() == [9]


def test_a_cap_bounds_the_scores():
    attention = Transformer(TINY.but(softcap=2.0)).attentions[0]
    scores = attention.scores(*(100 * torch.randn(2, 1, 2, 16, 8)))
    assert scores[torch.isfinite(scores)].abs().max() <= 2.0


def test_frozen_matrices_stay(corpus):
    trainer = Trainer(TINY.but(freeze_qk=True), corpus=corpus)
    before = trainer.model.attentions[0].W_Q.weight.clone()
    value = trainer.model.attentions[0].W_V.weight.clone()
    trainer.run()
    assert torch.equal(trainer.model.attentions[0].W_Q.weight, before)
    assert not torch.equal(trainer.model.attentions[0].W_V.weight, value)
    assert np.isnan(trainer.log().gradient_norm[..., :2]).all()


# --- The loop ---


def test_it_learns(corpus):
    log = train(TINY.but(steps=60, learning_rate=1e-2), corpus=corpus)
    assert log.final_loss < 0.6 * log.val_loss[0]


def test_a_seed_gives_the_same_run_and_leaves_the_readers_seed_alone(corpus, log):
    torch.manual_seed(5)
    expected = torch.rand(1)
    torch.manual_seed(5)
    again = train(TINY, corpus=corpus)
    assert torch.equal(torch.rand(1), expected)
    for name in ("train_loss", "gradient_norm", "val_loss", "entropy", "maps"):
        assert np.array_equal(getattr(again, name), getattr(log, name), equal_nan=True)
    other = train(TINY.but(seed=1), corpus=corpus)
    assert not np.array_equal(other.train_loss, log.train_loss)


def test_threads_are_given_back(corpus):
    before = torch.get_num_threads()
    train(TINY.but(steps=1), corpus=corpus)
    assert torch.get_num_threads() == before


def test_a_saved_run_goes_on_as_if_it_had_not_stopped(corpus, log, tmp_path):
    first = Trainer(TINY, corpus=corpus)
    first.run(until=6)
    first.save(tmp_path / "run.pt")
    second = Trainer.load(tmp_path / "run.pt", corpus=corpus)
    assert second.step == 6
    second.run()
    for field in dataclasses.fields(RunLog):
        if field.name not in ("config", "about"):
            mine, whole = getattr(second.log(), field.name), getattr(log, field.name)
            assert np.array_equal(mine, whole, equal_nan=True), field.name


def test_a_saved_model_is_loaded_without_its_training(corpus, tmp_path):
    trainer = Trainer(TINY.but(scale="none", attention="team"), corpus=corpus)
    trainer.run()
    trainer.save(tmp_path / "run.pt")
    model = load_model(tmp_path / "run.pt", attention="torch")
    tokens = torch.randint(256, (2, 16))
    assert torch.allclose(model(tokens), trainer.model(tokens), atol=1e-5)


def test_the_scale_put_in_later_changes_what_comes_later(corpus):
    failed = train(TINY.but(scale="none", attention="team"), corpus=corpus)
    mended = train(TINY.but(scale="none", attention="team", rescale_at=6), corpus=corpus)
    assert np.array_equal(failed.train_loss[:6], mended.train_loss[:6])
    assert not np.array_equal(failed.train_loss[6:], mended.train_loss[6:])
    assert (mended.score_std[2:] < failed.score_std[2:]).all()


def test_fresh_matrices_come_with_the_scale_if_asked(corpus):
    config = TINY.but(scale="none", rescale_at=6, redraw_qk=True, learning_rate=0.0)
    trainer = Trainer(config, corpus=corpus)
    before = {name: getattr(trainer.model.attentions[1], name).weight.clone()
              for name in ("W_Q", "W_K", "W_V")}  # fmt: skip
    trainer.run()
    for name, weight in before.items():
        same = torch.equal(getattr(trainer.model.attentions[1], name).weight, weight)
        assert same == (name == "W_V")


# --- What is measured ---


def test_the_log_has_the_shapes_it_promises(log):
    n, m, L, H, T = 12, 4, 2, 2, 16
    shapes = {
        "train_loss": (n,), "gradient_norm": (n, L, 3), "agreement": (n, L, 3),
        "measured": (m,), "val_loss": (m,), "entropy": (m, L, H), "largest_weight": (m, L, H),
        "score_std": (m, L, H), "row_gradients": (m, L, H, 4 * (T - 1)), "maps": (m, L, H, T, T),
    }  # fmt: skip
    assert {name: getattr(log, name).shape for name in shapes} == shapes
    assert log.measured.tolist() == [0, 4, 8, 12]
    assert np.isnan(log.agreement[0]).all()
    assert (np.abs(log.agreement[1:]) <= 1 + 1e-6).all()
    assert 0 < log.final_error < log.final_loss


def test_statistics_of_heads_are_those_computed_by_hand():
    torch.manual_seed(0)
    scores = 3 * torch.randn(2, 3, 7, 7)
    future = torch.ones(7, 7, dtype=torch.bool).triu(1)
    weights, found = loop_module._of_heads(scores.masked_fill(future, -torch.inf))
    entropy = normalized_entropy(weights.double().numpy(), allowed=~future.numpy())[:, :, 1:]
    assert np.allclose(found["entropy"], entropy.mean(axis=(0, 2)), atol=1e-6)
    assert np.allclose(found["largest_weight"], weights[:, :, 1:].amax(-1).mean((0, 2)))
    variances = [[scores[b, h, i, : i + 1].var() for b in range(2) for i in range(1, 7)]
                 for h in range(3)]  # fmt: skip
    assert np.allclose(found["score_std"], np.sqrt(np.mean(variances, axis=1)), atol=1e-5)


def test_gradient_statistics_are_those_of_autograd(corpus):
    trainer = Trainer(TINY, corpus=corpus)
    gradients = []
    for step in (0, 1):
        model = trainer.model
        model.zero_grad()
        tokens, targets = (torch.from_numpy(x) for x in corpus.windows("train", 4, 16, (0, step)))
        F.cross_entropy(model(tokens).flatten(0, 1), targets.flatten()).backward()
        gradients.append(model.attentions[1].W_K.weight.grad.clone())
        trainer.run(until=step + 1)
    log = trainer.log()
    assert log.gradient_norm[1, 1, 1] == pytest.approx(gradients[1].norm().item(), rel=1e-4)
    cosine = (gradients[0] * gradients[1]).sum() / gradients[0].norm() / gradients[1].norm()
    assert log.agreement[1, 1, 1] == pytest.approx(cosine.item(), abs=1e-4)


# --- Kept ---


def test_a_log_is_saved_and_loaded(log, tmp_path):
    log.save(tmp_path / "run.npz")
    loaded = RunLog.load(tmp_path / "run.npz")
    assert loaded.config == log.config
    assert loaded.about == log.about
    assert np.array_equal(loaded.maps, log.maps)
    assert loaded.final_loss == log.final_loss


@pytest.mark.parametrize("content", [b"", b"not an archive", b"PK\x03\x04 broken"])
def test_another_file_is_no_log(content, tmp_path):
    (tmp_path / "x.npz").write_bytes(content)
    with pytest.raises(ValueError, match=r"is no run log .*RunLog.save"):
        RunLog.load(tmp_path / "x.npz")
    with pytest.raises(FileNotFoundError):
        RunLog.load(tmp_path / "y.npz")


# --- Side by side ---


def test_runs_side_by_side_are_those_of_one_process(tmp_path):
    short = TINY.but(steps=4)
    heard = []
    logs = train_together(
        [short, Job(short.but(scale="none"), save=tmp_path / "half.pt", save_at=2)],
        on_measure=lambda number, seen: heard.append((number, seen["step"])),
    )
    assert sorted(heard) == [(0, 0), (0, 4), (1, 0), (1, 4)]
    alone = train(short)
    assert np.array_equal(logs[0].train_loss, alone.train_loss)
    changed = Job(short.but(scale="none", rescale_at=2), start=tmp_path / "half.pt")
    (mended,) = train_together([changed])
    assert np.array_equal(mended.train_loss[:2], logs[1].train_loss[:2])
    assert mended.config.rescale_at == 2


def test_a_run_that_fails_says_why(tmp_path):
    with pytest.raises(RuntimeError, match=r"(?s)exit code 1: .*nothing\.pt"):
        train_together([Job(TINY, start=tmp_path / "nothing.pt")])


def test_an_error_while_watching_ends_the_runs():
    def stop(number, seen):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        train_together([TINY.but(steps=100_000)], on_measure=stop)


# --- Tables that count bytes ---


def test_tables_are_as_counted_by_hand():
    text = np.frombuffer(b"abab", np.uint8)
    corpus = Corpus(text, text, "ab", (1, 1))
    inputs, targets = np.array([[97]]), np.array([[98]])  # a -> b
    losses = table_losses(corpus, inputs, targets)
    unigram = (2 + 2 / 256) / (4 + 2)  # b twice of 4, 2 kinds
    bigram = (2 + 1 * unigram) / (2 + 1)  # b after a twice of 2, 1 kind
    assert losses["unigram"] == pytest.approx(-math.log(unigram))
    assert losses["bigram"] == pytest.approx(-math.log(bigram))
    assert losses["trigram"] == losses["bigram"]  # there is one byte before it in its window
    longer = table_losses(corpus, np.array([[97, 98]]), np.array([[98, 97]]))
    trigram = [bigram, (1 + 1 * _bigram_b_a()) / (1 + 1)]  # a after ab once, 1 kind
    assert longer["trigram"] == pytest.approx(-np.log(trigram).mean())


def _bigram_b_a():
    unigram = (2 + 2 / 256) / (4 + 2)
    return (1 + 1 * unigram) / (1 + 1)  # a after b once, 1 kind


def test_probabilities_sum_to_one():
    text = np.frombuffer(b"the cat sat on the mat", np.uint8)
    corpus = Corpus(text, text, "cat", (1, 1))
    for context in ([116, 104], [122, 122]):
        inputs = np.array([context] * 256)
        targets = np.stack([np.full(256, 104), np.arange(256)], axis=1)
        total = np.zeros(3)
        for byte in range(256):
            losses = table_losses(corpus, inputs[byte : byte + 1], targets[byte : byte + 1])
            first = table_losses(corpus, inputs[byte : byte + 1, :1], targets[byte : byte + 1, :1])
            total += [math.exp(first[name] - 2 * losses[name]) for name in losses]
        assert total == pytest.approx(np.ones(3))
