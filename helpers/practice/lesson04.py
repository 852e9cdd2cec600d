"""Lesson 4's exercises: statements, hints, solutions. (Its questions are in `questions04`, the
wrong functions that a checker knows in `mistakes04`, its judges in `judges04`.)"""

from __future__ import annotations

import random

import numpy as np

from helpers.practice import judges04 as judges
from helpers.practice import mistakes04 as mistakes
from helpers.practice.exercises import Case, Exercise
from helpers.practice.questions04 import PREDICTIONS, QUIZ
from helpers.practice.trials import Trial

__all__ = ["EXERCISES", "PREDICTIONS", "QUIZ"]


# --- Solutions, shown to the reader as they stand here. ---


def head_entropy(weights):
    T = weights.shape[-1]
    safe = np.where(weights > 0, weights, 1)  # ln 1 = 0 in place of ln 0 = -inf
    entropy = -(weights * np.log(safe)).sum(axis=-1)  # (B, H, T)
    largest = np.log(np.arange(2, T + 1))  # row 1 has two keys, the last row T
    return (entropy[:, :, 1:] / largest).mean(axis=(0, 2))  # (H,)


def diagnose(entropy, score_std, d_head):
    # q·k sums d_head products of variance 1, which spreads by √d_head. The scale comes on top.
    before_training = score_std[0]
    if before_training > d_head**0.25:  # nearer to √d_head than to 1, as ratios go
        return "no scale"
    if before_training < d_head**-0.25:  # nearer to 1/√d_head than to 1
        return "divided by d_k"
    return "healthy"


def kernel_test(attention):
    import torch
    from torch.nn.functional import scaled_dot_product_attention

    generator = torch.Generator().manual_seed(0)
    # Two examples, three heads. 100 keys are more than one block, and not a whole number of them;
    # √32 is neither 8 nor 32, nor √100.
    q, k, v = torch.randn(3, 2, 3, 100, 32, generator=generator)
    for is_causal in (False, True):
        expected = scaled_dot_product_attention(q, k, v, is_causal=is_causal)
        actual = attention(q, k, v, is_causal=is_causal)
        if not torch.allclose(actual, expected, rtol=1e-4, atol=1e-5):
            return False
    return True


def blind_inputs():
    q = np.array([[1.0, 0.0], [2.0, 0.0]])
    k = np.array([[3.0, 1.0], [3.0, -5.0], [3.0, 2.0]])  # they differ only where q is 0
    v = np.array([[1.0, 0.0], [0.0, 1.0], [2.0, 2.0]])
    return q, k, v


# --- Inputs of 4.1. All are exact in float32 too. ---


def _causal(*heads) -> np.ndarray:
    """Weights (1, H, T, T) from the rows of each head, future zeros left out: [[1], [0.5, 0.5]]."""
    T = len(heads[0])
    return np.array([[[*row, *[0] * (T - len(row))] for row in head] for head in heads])[None] * 1.0


def _some_causal(seed: int, B: int, H: int, T: int, least: int = 0) -> np.ndarray:
    """Rows of 32nds; each key that a row may attend to gets at least `least` of them."""
    draw = random.Random(seed)
    counts = np.zeros((B, H, T, T))
    for b, h, i in np.ndindex(B, H, T):
        counts[b, h, i, : i + 1] = least
        for _ in range(32 - least * (i + 1)):
            counts[b, h, i, draw.randrange(i + 1)] += 1
    return counts / 32


EXAMPLE = _causal(  # the lesson's: a head that looks at all keys alike, and one at itself alone
    [[1], [0.5, 0.5], [0.25, 0.5, 0.25], [0.25, 0.25, 0.25, 0.25]],
    [[1], [0, 1], [0, 0, 1], [0, 0, 0, 1]],
)

ENTROPY = Exercise(
    id="4.1",
    title="How undecided is a head?",
    minutes=10,
    difficulty="medium",
    statement=(
        "`weights` holds the causal attention weights of a layer: row i of each table may attend "
        "to the keys 0 … i, and every later key has the weight 0. Return one number for each head: "
        "the entropy of a row, −Σ w · ln w, over the largest that this row can have, ln(i + 1), "
        "averaged over the batch and over all rows but the first, which has one key and no choice. "
        "Weights may be 0 among the allowed keys too, and no nan may come out. T is at least 2."
    ),
    signature="head_entropy(weights): (B, H, T, T) -> (H,), each from 0 (decided) to 1 (undecided)",
    hints=(
        "The entropy of rows is exercise 3.2: replace the zeros inside the logarithm by 1. The sum "
        "over `axis=-1` makes (B, H, T) of (B, H, T, T).",
        "The largest entropies of the rows 1 … T − 1 are `np.log(np.arange(2, T + 1))`, T − 1 "
        "numbers. Which rows of the entropy belong to them?",
        "`entropy[:, :, 1:]` leaves the first row out; divided by those numbers it is still "
        "(B, H, T − 1). Divide before you average.",
        "The heads are axis 1. `.mean(axis=(0, 2))` averages over the two others.",
    ),
    solution=head_entropy,
    cases=(
        Case("two keys, undecided", (_causal([[1], [0.5, 0.5]]),)),
        Case("two keys, decided", (_causal([[1], [0, 1]]),)),
        Case("two keys, in between", (_causal([[1], [0.25, 0.75]]),)),
        Case("two heads, two keys", (_causal([[1], [0.125, 0.875]], [[1], [0.5, 0.5]]),)),
        Case("three keys", (_causal([[1], [0.5, 0.5], [0.25, 0.25, 0.5]]),)),
        Case("three keys, a zero", (_causal([[1], [0.25, 0.75], [0.5, 0, 0.5]]),)),
        Case("two examples, one head", (_some_causal(1, 2, 1, 3, least=1),)),
        Case("one example, three heads", (_some_causal(2, 1, 3, 3, least=1),)),
        Case("the lesson's two heads", (EXAMPLE,), example=True),
        Case("two other heads", (_some_causal(3, 1, 2, 4, least=1),)),
        Case("two examples, three heads", (_some_causal(4, 2, 3, 4, least=2),)),
        Case("three examples, two heads", (_some_causal(5, 3, 2, 4),)),
        Case("three examples, three heads, three keys", (_some_causal(6, 3, 3, 3, least=1),)),
        Case("12 keys", (_some_causal(7, 2, 2, 12),)),
    ),
    mistakes=mistakes.ENTROPY,
)

DIAGNOSE = Trial(
    id="4.2",
    title="Read a run's log",
    minutes=10,
    difficulty="medium",
    statement=(
        "Write a rule that tells from the log of a training run what its kernel does with the "
        'scores. Return "healthy" if it divides them by √d_k, "no scale" if it leaves them as they '
        'are, "divided by d_k" if it divides them by d_k; `d_head` is d_k. `score_std` is the '
        "spread of what the softmax gets, `entropy` the entropy of its weights over the largest "
        "possible: both are means over heads, one number for each measurement, the first of them "
        "from before training. Every model starts with queries and keys of variance 1. The rule is "
        "tried on logs that you have not seen, in which d_head, the learning rate and the number "
        "of measurements may differ."
    ),
    signature="diagnose(entropy, score_std, d_head): (m,), (m,), a whole number -> a string",
    hints=(
        "Print the first and the last numbers of the logs A, B and C: `for name, log in "
        "run_logs.shown().items(): print(name, log.score_std[[0, -1]], log.entropy[[0, -1]])`. "
        "Which of them do training and learning rate have no part in?",
        "Before training, q·k is a sum of d_head products of variance 1. How far do such sums "
        "spread (lesson 2), and how far after each of the three kernels?",
        "About √d_head without the scale, about 1 with it, about 1/√d_head divided by d_k: compare "
        "`score_std[0]` with these three.",
        "Limits half-way between them, as ratios go, are d_head**0.25 and d_head**-0.25.",
    ),
    solution=diagnose,
    judge=judges.diagnose,
)

KERNEL_TEST = Trial(
    id="4.3",
    title="The test that was missing",
    minutes=15,
    difficulty="hard",
    statement=(
        "Write the unit test that the team should have had. It gets a kernel, to be called as "
        "`attention(query, key, value, is_causal)` with torch tensors (B, H, T, D), which should "
        "compute what `F.scaled_dot_product_attention` does. Return True if it is right and False "
        "if not; a test that fails an `assert` and otherwise returns nothing will do as well. It "
        "is tried on right kernels, which differ in how they round, and on a dozen broken ones. "
        "Some of these are wrong for some sizes only. Many kernels take the keys in blocks, here "
        "of 64."
    ),
    signature="kernel_test(attention): attention(query, key, value, is_causal) -> True or False",
    hints=(
        "Compare with `F.scaled_dot_product_attention(q, k, v, is_causal=is_causal)` on random "
        "tensors, with a tolerance: `torch.allclose(actual, expected, rtol=1e-4, atol=1e-5)`.",
        "For which d_k are 1/√d_k, 1/d_k, 1 and 1/8 four different numbers? For which H is a "
        "mistake about heads visible, for which B one about the batch?",
        "Blocks of 64: how many keys must there be for a second block, and for a last block that "
        "is not full?",
        "With `torch.randn(3, 2, 3, 100, 32)` as q, k, v, and both values of `is_causal`, every "
        "broken kernel shows.",
    ),
    solution=kernel_test,
    judge=judges.kernel_test,
)

BLIND = Trial(
    id="4.4",
    title="Inputs that see nothing",
    minutes=8,
    difficulty="hard",
    statement=(
        "Find inputs with which no test can see that the scale is missing: attention with the "
        "scale 1/√d and without it gives outputs that agree to 1e-6 in every entry. So that it is "
        "not too cheap: d and the number of keys are at least 2, neither q nor k is all zeros, and "
        "two rows of v differ by 0.1 or more in some column. NumPy arrays or torch tensors, as you "
        "like."
    ),
    signature="blind_inputs() -> q (T_q, d), k (T_k, d), v (T_k, d_v)",
    hints=(
        "The scale multiplies every score of a query. Which scores give the same weights "
        "afterwards?",
        "Softmax sees only the differences between a query's scores. Which differences stay as "
        "they are when you multiply them?",
        "Equal scores have the difference 0. Equal keys give equal scores; which other keys do?",
        "Keys that differ only in a feature where q is 0: q = [1, 0] and the keys [3, 1] and "
        "[3, −5] have the scores 3 and 3.",
    ),
    solution=blind_inputs,
    judge=judges.blind_inputs,
)

EXERCISES = (ENTROPY, DIAGNOSE, KERNEL_TEST, BLIND)
