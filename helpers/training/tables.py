"""What can be had without any network: tables that count bytes, as a yardstick for a run's loss."""

from __future__ import annotations

import numpy as np

from helpers.training.data import Corpus

BYTES = 256
ORDERS = ("unigram", "bigram", "trigram")


def table_losses(corpus: Corpus, inputs: np.ndarray, targets: np.ndarray) -> dict[str, float]:
    """Cross-entropy, nats a byte, of next-byte tables counted on the training text.

    inputs, targets : (windows, length), as `Corpus.windows` gives them. A table sees what the
    model sees: nothing before its window; the first target of a window has one byte before it, so
    that there the trigram table is a bigram table. Each table is smoothed with the next simpler
    one by the method of Witten and Bell (1991, method C: doi:10.1109/18.87000), the unigram with
    the uniform distribution, so that nothing has probability 0.
    """
    inputs, targets = np.asarray(inputs), np.asarray(targets)
    text = corpus.train.astype(np.int32)  # three bytes fit
    probability = np.full(targets.shape, 1 / BYTES)
    losses = {}
    for order, name in enumerate(ORDERS):
        context, known = _contexts(inputs, order)
        wider = _smoothed(text, order, context, targets, probability)
        probability = np.where(known, wider, probability)
        losses[name] = float(-np.log(probability).mean())
    return losses


def _contexts(inputs: np.ndarray, order: int) -> tuple[np.ndarray, np.ndarray]:
    """The last `order` bytes before each target as one number, and where there are that many."""
    context = np.zeros_like(inputs)
    for back in range(order):
        shifted = np.zeros_like(inputs)
        shifted[:, back:] = inputs[:, : inputs.shape[1] - back]
        context += shifted * BYTES**back
    known = np.arange(inputs.shape[1]) >= order - 1
    return context, np.broadcast_to(known, inputs.shape)


def _smoothed(text, order, context, targets, simpler) -> np.ndarray:
    """(n(c, t) + kinds(c) · simpler) / (n(c) + kinds(c)): kinds(c) bytes were seen after c."""
    n = text.size - order
    before = sum(text[order - 1 - back :][:n] * BYTES**back for back in range(order))
    pairs, counts = np.unique(before * BYTES + text[order:], return_counts=True)
    contexts, place = np.unique(pairs // BYTES, return_inverse=True)
    totals, kinds = np.bincount(place, counts), np.bincount(place)
    n_pair = _looked_up(pairs, counts, context * BYTES + targets)
    n_context = _looked_up(contexts, totals, context)
    n_kinds = _looked_up(contexts, kinds, context)
    seen = n_context > 0
    return np.where(seen, (n_pair + n_kinds * simpler) / np.where(seen, n_context + n_kinds, 1),
                    simpler)  # fmt: skip


def _looked_up(keys: np.ndarray, values: np.ndarray, wanted: np.ndarray) -> np.ndarray:
    """The value of each wanted key, 0 where there is none. Keys are sorted."""
    place = np.minimum(np.searchsorted(keys, wanted), keys.size - 1)
    return np.where(keys[place] == wanted, values[place], 0)
