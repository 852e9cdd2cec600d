"""What the lists of functions are made of, and the right pieces that sick functions start from."""

import math
from dataclasses import dataclass, field

import numpy as np
import torch

from helpers.doctor import examine

torch.set_num_threads(1)  # small matrices are faster so, and test workers leave each other alone


@dataclass(frozen=True)
class Patient:
    """fn : a function, or a class whose objects are called, a new one for each examination. name :
    what the doctor must say, None where it only has to reject. said : conventions. every_seed : a
    sound function that is quickly examined, and so with many seeds."""

    fn: object
    name: str | None = None
    said: dict = field(default_factory=dict)
    every_seed: bool = False

    def __str__(self):
        code = getattr(self.fn, "__code__", None)
        line = f"line{code.co_firstlineno}" if code else type(self.fn).__name__
        return f"{self.name or ''}-{line}"


def ward():
    """(list, decorator that appends the function to it under a name)."""
    patients = []

    def admit(name=None, *, every_seed=False, **said):
        def add(fn):
            patients.append(Patient(fn, name, said, every_seed))
            return fn

        return add

    return patients, admit


def diagnose(patient, seed=0):
    fn = patient.fn() if isinstance(patient.fn, type) else patient.fn
    said = {"seconds": 15, **patient.said}  # other work on the machine must not tell
    return examine(fn, _seed=seed, **said)


def soft(s, axis=-1):
    e = np.exp(s - s.max(axis=axis, keepdims=True))
    return e / e.sum(axis=axis, keepdims=True)


def scores(q, k):
    return q @ np.swapaxes(k, -1, -2) / math.sqrt(q.shape[-1])


def safe(s):
    """Softmax that gives zeros where a row is -inf throughout."""
    top = s.max(axis=-1, keepdims=True)
    e = np.exp(s - np.where(np.isfinite(top), top, 0))
    total = e.sum(axis=-1, keepdims=True)
    return e / np.where(total == 0, 1, total)


def additive(mask):
    """A mask, boolean or float, as what to add."""
    if mask is None:
        return 0
    return np.where(mask, 0, -np.inf) if mask.dtype == bool else mask
