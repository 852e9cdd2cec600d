"""The settings of one training run, all of them named and checked."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass, fields, replace

from helpers._measuring import choice, count, real

# What the scores q·k are multiplied by, as a function of d_head. "learned" starts at 1/√d.
SCALES = {
    "1/√d": lambda d: 1 / math.sqrt(d),
    "none": lambda d: 1.0,
    "1/d": lambda d: 1 / d,
    "learned": lambda d: 1 / math.sqrt(d),
}

# Standard deviation of the weights of a linear layer with `d_in` inputs.
INITS = {
    "unit": lambda d_in: 1 / math.sqrt(d_in),  # unit-RMS inputs give entries of variance 1
    "linear": lambda d_in: 1 / math.sqrt(3 * d_in),  # nn.Linear's default, a uniform distribution
    "0.02": lambda d_in: 0.02,  # GPT-2's
}

ATTENTIONS = ("torch", "team", "nothing")


@dataclass(frozen=True)
class TrainConfig:
    """One training run. The defaults are the team's model, with the scale.

    Model: `layers` pre-norm blocks of `heads` heads of `d_head` features, no biases; d_model is
    heads · d_head. It reads `context` bytes and predicts each next one.
    Attention: `attention` is "torch" (F.scaled_dot_product_attention), "team" (the kernel that
    forgot the scale; needs scale="none"), or "nothing" (its output is 0, so that no byte learns of
    another). `scale` multiplies the scores: a key of SCALES.
    `qk_norm` puts an RMSNorm with learned factors on q and on k first, `softcap` c bounds the
    scaled scores by c·tanh(s/c), `fold_scale` starts W_Q smaller by 1/√d_head, `rate_of_W_Q`
    is a factor of the learning rate for W_Q alone, `freeze_qk` keeps W_Q and W_K as they start.
    Optimisation: `steps` batches of `batch` windows; AdamW with betas (0.9, 0.95), `learning_rate`
    constant after `warmup` linear steps, `weight_decay` on matrices, gradients clipped to
    norm `clip`. `rescale_at` = n puts the scale 1/√d_head in after n steps; with
    `redraw_qk` W_Q and W_K are then drawn anew as well.
    Measurements: every `measure_every` steps, and at the end, on the same windows.

    Raises ValueError or TypeError, which say the limit, for a setting that cannot be run.
    """

    d_head: int = 128
    heads: int = 2
    layers: int = 2
    context: int = 64
    attention: str = "torch"
    scale: str = "1/√d"
    init: str = "unit"
    qk_norm: bool = False
    softcap: float | None = None
    fold_scale: bool = False
    rate_of_W_Q: float = 1.0
    freeze_qk: bool = False
    batch: int = 8
    steps: int = 600
    learning_rate: float = 1e-3
    warmup: int = 50
    weight_decay: float = 0.01
    clip: float = 1.0
    rescale_at: int | None = None
    redraw_qk: bool = False
    measure_every: int = 20
    seed: int = 0

    def __post_init__(self):
        for name in ("d_head", "heads", "layers", "batch", "steps", "measure_every"):
            count(name, getattr(self, name))
        count("context", self.context, least=2)
        count("warmup", self.warmup, least=0)
        count("seed", self.seed, least=0)
        choice("scale", self.scale, SCALES)
        choice("init", self.init, INITS)
        choice("attention", self.attention, dict.fromkeys(ATTENTIONS))
        for name in ("learning_rate", "weight_decay", "rate_of_W_Q"):
            real(name, getattr(self, name), low=0.0)
        real("clip", self.clip, low=1e-6)
        if self.softcap is not None:
            real("softcap", self.softcap, low=1e-6)
        if self.rescale_at is not None:
            count("rescale_at", self.rescale_at)
            if self.rescale_at >= self.steps:
                raise ValueError(
                    f"rescale_at is {self.rescale_at}, but the run has {self.steps} steps; pass a "
                    f"number below {self.steps}."
                )
        elif self.redraw_qk:
            raise ValueError("redraw_qk is True without rescale_at; pass the step at which.")
        if self.attention == "team" and (self.scale != "none" or self.softcap is not None):
            raise ValueError(
                f"attention is 'team' with scale={self.scale!r}, softcap={self.softcap!r}; the "
                "team's kernel takes neither: pass scale='none' and softcap=None."
            )

    @property
    def d_model(self) -> int:
        return self.heads * self.d_head

    def but(self, **changes) -> TrainConfig:
        """The same settings, but for some."""
        return replace(self, **changes)

    def as_dict(self) -> dict:
        return asdict(self)

    @classmethod
    def from_dict(cls, settings: dict) -> TrainConfig:
        """Raises ValueError for names that are no setting."""
        known = {field.name for field in fields(cls)}
        if strange := sorted(set(settings) - known):
            raise ValueError(f"no setting is called {', '.join(strange)}; there are: "
                             f"{', '.join(sorted(known))}.")  # fmt: skip
        return cls(**settings)
