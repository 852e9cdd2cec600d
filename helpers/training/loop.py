"""The training loop, and what it measures on the way."""

from __future__ import annotations

import platform
import time
from collections.abc import Callable
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import torch
import torch.nn.functional as F

from helpers.training.config import SCALES, TrainConfig
from helpers.training.data import Corpus, standard_library
from helpers.training.log import MATRICES, RunLog
from helpers.training.model import Transformer

PROBE_WINDOWS = 32  # of the validation text, for the loss at each measurement
WATCHED_WINDOWS = 4  # of those, for the statistics of heads
FINAL_TARGETS = 102_400  # bytes of the validation text predicted at the end
_VALIDATION_SEED = 20_170_612  # the same windows for every run, whatever its seed


def train(
    config: TrainConfig, *, corpus: Corpus | None = None, attention: Callable | None = None,
    on_measure: Callable | None = None,
) -> RunLog:  # fmt: skip
    """Train one model and return its log.

    corpus : None takes the standard library. attention : instead of the one that the settings
    name, called as attention(q, k, v, is_causal=True, scale=...); the statistics take for granted
    that it does what it is told. on_measure(trainer) is called at each measurement.
    The same settings give the same log on one machine with one version of torch: it runs on one
    thread and draws every batch from (seed, step).
    """
    trainer = Trainer(config, corpus=corpus, attention=attention)
    trainer.run(on_measure=on_measure)
    return trainer.log()


class Trainer:
    """A run that can be stopped, saved and taken up again.

    model : the Transformer. step : steps done. log() : the run so far.
    """

    def __init__(self, config: TrainConfig, *, corpus: Corpus | None = None, attention=None):
        self.config = config
        self.corpus = corpus or standard_library()
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(config.seed)
            self.model = Transformer(config, attention)
        self.optimizer = torch.optim.AdamW(
            _groups(self.model, config), lr=config.learning_rate, betas=(0.9, 0.95), fused=True
        )
        self.step = 0
        self.seconds = 0.0
        self._of_steps = {name: [] for name in ("train_loss", "gradient_norm", "agreement")}
        self._of_measurements = {}
        self._last = None  # the gradients of the step before, to compare with
        self._final = (float("nan"), float("nan"))
        self._probe = probe_windows(self.corpus, config.context)
        self._watched = tuple(x[:WATCHED_WINDOWS] for x in self._probe)

    def run(self, until: int | None = None, on_measure: Callable | None = None) -> None:
        """Train on until `until` steps are done; None to the end, with the final loss."""
        stop = self.config.steps if until is None else min(until, self.config.steps)
        began = time.perf_counter()
        with _one_thread():
            while self.step < stop:
                if self.step % self.config.measure_every == 0:
                    self._measure(on_measure)
                self._one_step()
            if self.step == self.config.steps:
                self._measure(on_measure)
                self._final = self._final_loss()
        self.seconds += time.perf_counter() - began

    # --- One step ---

    def _one_step(self):
        config = self.config
        if self.step == config.rescale_at:
            self._put_the_scale_in()
        seed = (config.seed, self.step)
        tokens, targets = _windows(self.corpus, "train", config.batch, config.context, seed)
        loss = self.model.loss(tokens, targets)
        self.optimizer.zero_grad(set_to_none=True)
        loss.backward()
        self._note_step(loss)
        torch.nn.utils.clip_grad_norm_(self.model.parameters(), config.clip)
        warm = min(1.0, (self.step + 1) / config.warmup) if config.warmup else 1.0
        for group in self.optimizer.param_groups:
            group["lr"] = config.learning_rate * warm * group["rate"]
        self.optimizer.step()
        self.step += 1

    def _put_the_scale_in(self):
        for attention in self.model.attentions:
            attention.function = F.scaled_dot_product_attention
            attention.scale = SCALES["1/√d"](self.config.d_head)
        if self.config.redraw_qk:
            with torch.random.fork_rng(devices=[]):
                torch.manual_seed(self.config.seed + 1_000)
                fresh = Transformer(self.config)
            for new, old in zip(fresh.attentions, self.model.attentions):
                for name in ("W_Q", "W_K"):
                    weight = getattr(old, name).weight
                    weight.data.copy_(getattr(new, name).weight)
                    self.optimizer.state.pop(weight, None)  # its averages are of other weights

    # --- What is measured ---

    def _note_step(self, loss):
        """Gradient norms, and cosines with the step before, at W_Q, W_K, W_V of each layer."""
        now = [[getattr(a, name).weight.grad for name in MATRICES] for a in self.model.attentions]
        before = self._last or now
        nothing = float("nan")
        self._of_steps["train_loss"].append(loss.item())
        self._of_steps["gradient_norm"].append(
            [[nothing if g is None else g.norm().item() for g in layer] for layer in now]
        )
        self._of_steps["agreement"].append(
            [[nothing if g is None or self._last is None else _cosine(g, h) for g, h in zip(*pair)]
             for pair in zip(now, before)]
        )  # fmt: skip
        self._last = now  # zero_grad(set_to_none=True) leaves these alone

    def _measure(self, on_measure):
        if self._of_measurements.get("measured", [None])[-1] == self.step:
            return
        seen = {"measured": self.step, "val_loss": self._loss(*self._probe)[0]}
        seen |= _watch(self.model, *self._watched)
        for name, value in seen.items():
            self._of_measurements.setdefault(name, []).append(value)
        if on_measure is not None:
            on_measure(self)

    @torch.no_grad()
    def _loss(self, tokens, targets):
        """(mean, standard error over windows) in nats a byte."""
        of_windows = []
        for part in zip(tokens.split(32), targets.split(32)):
            losses = self.model.loss(*part, reduction="none")
            of_windows.append(losses.unflatten(0, part[0].shape).double().mean(1))
        losses = torch.cat(of_windows)
        return losses.mean().item(), losses.std().item() / losses.numel() ** 0.5

    def _final_loss(self):
        return self._loss(*final_windows(self.corpus, self.config.context))

    def log(self) -> RunLog:
        steps = {name: np.array(values, np.float32) for name, values in self._of_steps.items()}
        measured = {name: np.array(values) for name, values in self._of_measurements.items()}
        about = {
            "corpus": self.corpus.name, "python": platform.python_version(),
            "torch": torch.__version__, "seconds": round(self.seconds, 1),
        }  # fmt: skip
        return RunLog(self.config, about, **steps, **measured,
                      final_loss=self._final[0], final_error=self._final[1])  # fmt: skip

    def newest(self) -> dict:
        """The newest measurement, as JSON can carry it: step, losses, statistics of heads."""
        last = {name: values[-1] for name, values in self._of_measurements.items()}
        recent = self._of_steps["train_loss"][-self.config.measure_every :]
        return {
            "step": self.step, "steps": self.config.steps, "val_loss": last["val_loss"],
            "train_loss": sum(recent) / len(recent) if recent else None,
            **{name: last[name].tolist() for name in ("entropy", "largest_weight", "score_std")},
        }  # fmt: skip

    # --- Kept and taken up again ---

    def save(self, path: Path) -> None:
        """Weights, optimiser and log so far, for `load`."""
        torch.save(
            {
                "config": self.config.as_dict(), "step": self.step,
                "model": self.model.state_dict(), "optimizer": self.optimizer.state_dict(),
                "of_steps": self._of_steps, "last": self._last,
                "of_measurements": {
                    name: [torch.as_tensor(np.asarray(value)) for value in values]
                    for name, values in self._of_measurements.items()
                },
            },
            path,
        )  # fmt: skip

    @classmethod
    def load(cls, path: Path, corpus: Corpus | None = None, **changes) -> Trainer:
        """The run as it was saved; `changes` of its settings count from there on."""
        saved = torch.load(path, weights_only=True)
        trainer = cls(TrainConfig.from_dict(saved["config"] | changes), corpus=corpus)
        trainer.model.load_state_dict(saved["model"])
        trainer.optimizer.load_state_dict(saved["optimizer"])
        trainer.step, trainer._of_steps, trainer._last = (
            saved["step"], saved["of_steps"], saved["last"]
        )  # fmt: skip
        trainer._of_measurements = {
            name: [value.numpy() if value.dim() else value.item() for value in values]
            for name, values in saved["of_measurements"].items()
        }
        return trainer


def _groups(model: Transformer, config: TrainConfig) -> list[dict]:
    """What the optimiser treats alike: W_Q, the other matrices, and what is no matrix."""
    chosen = {a.W_Q.weight for a in model.attentions}
    trained = [p for p in model.parameters() if p.requires_grad]
    W_Q = [p for p in trained if p in chosen]
    matrices = [p for p in trained if p.dim() >= 2 and p not in chosen]
    others = [p for p in trained if p.dim() < 2]
    groups = [
        {"params": W_Q, "rate": config.rate_of_W_Q, "weight_decay": config.weight_decay},
        {"params": matrices, "rate": 1.0, "weight_decay": config.weight_decay},
        {"params": others, "rate": 1.0, "weight_decay": 0.0},
    ]
    return [group for group in groups if group["params"]]


def load_model(path: Path, **changes) -> Transformer:
    """The model of a file of `Trainer.save`, without what only training needs; `changes` of its
    settings, such as another attention function."""
    saved = torch.load(path, weights_only=True)
    model = Transformer(TrainConfig.from_dict(saved["config"] | changes))
    model.load_state_dict(saved["model"])
    return model


def _windows(corpus: Corpus, part: str, count: int, context: int, seed):
    """(inputs, targets), tensors (count, context)."""
    return tuple(map(torch.from_numpy, corpus.windows(part, count, context, seed)))


def probe_windows(corpus: Corpus, context: int):
    """(inputs, targets) on which the loss is taken at each measurement: 2,048 bytes or so."""
    return _windows(corpus, "validation", PROBE_WINDOWS, context, _VALIDATION_SEED)


def final_windows(corpus: Corpus, context: int):
    """(inputs, targets) on which final losses, and the tables they are compared with, are taken."""
    count = -(-FINAL_TARGETS // context)
    return _windows(corpus, "validation", count, context, _VALIDATION_SEED + 1)


def _watch(model: Transformer, tokens, targets) -> dict[str, np.ndarray]:
    """Statistics of every head on some windows: (L, H), rows (L, H, R), maps (L, H, T, T)."""
    for attention in model.attentions:
        attention.watched = ()
    loss = model.loss(tokens, targets, reduction="sum")
    seen = [attention.watched for attention in model.attentions]
    gradients = torch.autograd.grad(loss, [q for q, _ in seen])
    for attention in model.attentions:
        attention.watched = None
    layers = []
    with torch.no_grad():
        for attention, (q, k), gradient in zip(model.attentions, seen, gradients):
            weights, statistics = _of_heads(attention.scores(q, k))
            rows = gradient.norm(dim=-1)[:, :, 1:].transpose(0, 1).flatten(1)  # (H, B·(T − 1))
            layers.append({**statistics, "row_gradients": rows, "maps": weights[0].half()})
    return {name: torch.stack([layer[name] for layer in layers]).numpy() for name in layers[0]}


def _of_heads(scores: torch.Tensor):
    """Weights (B, H, T, T), and statistics (H,) of causal scores (B, H, T, T) over their rows;
    the first row, which may attend to one key only, is left out."""
    weights = scores.softmax(dim=-1)
    keys = torch.arange(1, scores.size(-1) + 1, dtype=scores.dtype)[1:]  # that each row may attend
    rows, s = weights[:, :, 1:], scores[:, :, 1:]
    allowed = torch.isfinite(s)
    entropy = torch.special.entr(rows).sum(-1) / keys.log()
    mean = s.masked_fill(~allowed, 0).sum(-1) / keys
    squares = (s - mean[..., None]).masked_fill(~allowed, 0).square().sum(-1) / (keys - 1)
    return weights, {
        "entropy": entropy.mean((0, 2)),
        "largest_weight": rows.amax(-1).mean((0, 2)),
        "score_std": squares.mean((0, 2)).sqrt(),
    }


def _cosine(a: torch.Tensor, b: torch.Tensor) -> float:
    return F.cosine_similarity(a.flatten(), b.flatten(), dim=0).item()


@contextmanager
def _one_thread():
    """One thread: two runs then share two cores. Denormal numbers, which saturated weights are
    full of, count as 0: on many CPUs arithmetic with them is many times slower."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    torch.set_flush_denormal(True)
    try:
        yield
    finally:
        torch.set_num_threads(threads)
        torch.set_flush_denormal(False)
