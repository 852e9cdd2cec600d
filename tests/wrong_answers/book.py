"""Where the lessons' answers are written down, and what several of them use."""

import numpy as np

WRONG, HOSTILE, RIGHT = [], [], []


def wrong(exercise, mistake):
    """A wrong answer, and the mistake (or one of several) that must be named."""
    return lambda fn: WRONG.append((exercise, fn, mistake)) or fn


def hostile(exercise, mistake):
    """The same, for a function that misbehaves."""
    return lambda fn: HOSTILE.append((exercise, fn, mistake)) or fn


def right(exercise):
    """A right answer in other words."""
    return lambda fn: RIGHT.append((exercise, fn)) or fn


def stable(x, axis=-1):
    """A softmax without a fault, for answers whose fault lies elsewhere."""
    e = np.exp(x - np.max(x, axis=axis, keepdims=True))
    return e / np.sum(e, axis=axis, keepdims=True)
