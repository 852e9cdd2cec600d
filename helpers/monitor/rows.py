"""The rows that a monitor gives: one head in one call each."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import torch


@dataclass(frozen=True, eq=False)
class AttentionRow:
    """One head in one call, pooled over its batch and its query rows.

    Rows that may attend to fewer than two keys have nothing to decide and are left out of
    everything here but q_rms and k_rms; so are the padded queries of a self-attention whose
    key_padding_mask says which they are. nan if no row is left.

    call              number of the call, from 1, counting those that were seen but not recorded
    model, layer      class of the outermost module, and the qualified name in it of the innermost
                      one that was running ("#2": its second attention in one pass). Outside any
                      module "" and "call 7".
    kind              "sdpa", "MultiheadAttention" or "TransformerEncoderLayer"
    head, batch       number of the head, from 0, and how many batch entries were pooled
    T_q, T_k, d_head  queries, keys and features of a head (the longest, if the batch is nested)
    scale             the scale that the scores were multiplied with: as given, or 1/√d_head
    rows              query rows that count, over the batch
    entropy           −Σ w ln w over ln(keys that the row may attend), mean of rows: 0 to 1
    largest_weight    the largest weight of a row, mean of rows
    score_std         deviation of the scaled scores within a row, over the keys it may attend,
                      masks and biases not added: the root of the mean of the rows' variances
                      (n − 1 in the denominator). Softmax sees no other spread.
    score_std_pooled  deviation of all those scores together
    q_rms, k_rms      root mean square of the entries of q and of k
    weights           (batch, T_q, T_k), float32, on the CPU, with keep_weights=True; else None
    """

    call: int
    model: str
    layer: str
    kind: str
    head: int
    batch: int
    T_q: int
    T_k: int
    d_head: int
    scale: float
    rows: int
    entropy: float
    largest_weight: float
    score_std: float
    score_std_pooled: float
    q_rms: float
    k_rms: float
    weights: torch.Tensor | None = field(default=None, repr=False)

    @property
    def scale_estimate(self) -> float:
        """scale · q_rms/k_rms: the scale if q was made as large as k and shrunk before the call.

        A guess. What a model multiplied into q beforehand cannot be known from q.
        """
        return self.scale * self.q_rms / self.k_rms if self.k_rms else math.nan
