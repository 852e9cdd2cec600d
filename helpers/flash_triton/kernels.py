"""FlashAttention as four Triton kernels, written to be read from top to bottom.

    S = scale · Q Kᵀ        P = softmax(S)        O = P V

No kernel ever holds S or P whole. One *program* (Triton's word for what CUDA calls a thread block)
owns a block of rows and walks over the other side in blocks; thousands of them run at once.

Names. Capital letters are tensors in the GPU's large, slow memory: Q, K, V, O and the gradients
dO, dQ, dK, dV. Small letters are tiles of them in the fast memory of one multiprocessor: q, k, v.
In capitals too is what is known when a kernel is compiled: CAUSAL, D, BLOCK_Q and so on. D is the
head size; BLOCK_D is the power of two at or above it, because Triton's tiles have such sides.

Base 2. exp(x) = 2^(x · log₂ e), and the GPU has an instruction for powers of two only. So scores
are multiplied by scale · log₂ e once, and every exp below is an exp2. What leaves a kernel (lse) is
in natural units again.

Precision. Tiles are multiplied in the inputs' dtype and summed in float32. For float32 inputs
input_precision="ieee" forbids TF32, which would keep 10 of 23 bits.

Sources: Dao 2023, FlashAttention-2, arXiv:2307.08691, algorithms 1 and 2; Milakov and Gimelshein
2018, arXiv:1805.02867 (the online softmax).
"""

# ruff: noqa: E741  the formulas say O and l

from typing import Any, NamedTuple

import triton
import triton.language as tl

LOG2_E = tl.constexpr(1.4426950408889634)  # log₂ e

# Numbers that differ from call to call: without this, Triton compiles anew for 1 and for 16 · n.
SIZES = ["H", "group", "T_q", "T_k"]


class Heads(NamedTuple):
    """A (B, H, T, D) tensor: where it begins, and how many numbers apart its axes' entries are.

    The last axis has no entry: its numbers are neighbours.
    """

    pointer: Any
    batch: int
    head: int
    row: int


# --- Tiles ---------------------------------------------------------------------------------------


@triton.jit
def addresses(X, batch, head, first, ROWS: tl.constexpr, BLOCK_D: tl.constexpr):
    """Where the numbers of X[batch, head, first : first + ROWS, :BLOCK_D] are."""
    # The tile's corner in 64 bits, because a tensor may have more than 2³¹ numbers.
    corner = X.pointer + batch.to(tl.int64) * X.batch + head.to(tl.int64) * X.head
    corner += tl.cast(first, tl.int64) * X.row
    return corner + (tl.arange(0, ROWS)[:, None] * X.row + tl.arange(0, BLOCK_D)[None, :])


@triton.jit
def inside(first, T, ROWS: tl.constexpr, D: tl.constexpr, BLOCK_D: tl.constexpr):
    """(ROWS, BLOCK_D): which numbers of such a tile exist. A tile may reach beyond T and D."""
    rows = first + tl.arange(0, ROWS)
    return (rows[:, None] < T) & (tl.arange(0, BLOCK_D)[None, :] < D)


@triton.jit
def load(
    X, batch, head, first, T,
    ROWS: tl.constexpr, D: tl.constexpr, BLOCK_D: tl.constexpr, EDGE: tl.constexpr = True,
):  # fmt: skip
    """X[batch, head, first : first + ROWS] as a tile, with zeros for what does not exist.

    EDGE=False promises that all the rows exist.
    """
    source = addresses(X, batch, head, first, ROWS, BLOCK_D)
    if EDGE or D < BLOCK_D:
        return tl.load(source, mask=inside(first, T, ROWS, D, BLOCK_D), other=0.0)
    return tl.load(source)


@triton.jit
def store(
    X, tile, batch, head, first, T,
    ROWS: tl.constexpr, D: tl.constexpr, BLOCK_D: tl.constexpr,
):  # fmt: skip
    """Writes a tile to X[batch, head, first : first + ROWS], but nothing outside of X."""
    target = addresses(X, batch, head, first, ROWS, BLOCK_D)
    exists = inside(first, T, ROWS, D, BLOCK_D)
    tl.store(target, tile.to(X.pointer.dtype.element_ty), mask=exists)


# --- Who does what -------------------------------------------------------------------------------


@triton.jit
def owned(T, H, BLOCK: tl.constexpr, LAST_FIRST: tl.constexpr):
    """What this program owns: the first of its rows, their batch entry, their head.

    Programs start in the order of their numbers. Neighbours share a head, and so what they read.
    """
    program = tl.program_id(0)
    blocks = tl.cdiv(T, BLOCK)  # of one head
    block = program % blocks
    if LAST_FIRST:  # who has the most to do should not start last
        block = blocks - 1 - block
    return block * BLOCK, program // blocks // H, program // blocks % H


@triton.jit
def keys_to_see(first, T_k, CAUSAL: tl.constexpr, BLOCK_Q: tl.constexpr, BLOCK_K: tl.constexpr):
    """For the queries first … first + BLOCK_Q − 1: where the keys end that every one of them may
    see, in whole blocks, and where those end that any of them may see."""
    seen_by_all, seen_by_any = T_k, T_k
    if CAUSAL:  # query i sees the keys 0 … i ("upper left", as in torch)
        seen_by_all = tl.minimum(first + 1, T_k)
        seen_by_any = tl.minimum(first + BLOCK_Q, T_k)
    return seen_by_all // BLOCK_K * BLOCK_K, seen_by_any


@triton.jit
def may_see(queries, keys, T_k, CAUSAL: tl.constexpr):
    """(queries, keys): whether query i may see key j."""
    allowed = (keys < T_k)[None, :]
    if CAUSAL:
        allowed = allowed & (keys[None, :] <= queries[:, None])
    return allowed


# --- Forward -------------------------------------------------------------------------------------


@triton.jit(do_not_specialize=SIZES)
def forward_kernel(
    Q, K, V, O, lse,  # Q, O (B, H, T_q, D), K, V (B, H_kv, T_k, D), lse (B, H, T_q)
    H, group, T_q, T_k, scale,  # group: how many heads of Q share one of K and V
    CAUSAL: tl.constexpr, D: tl.constexpr, BLOCK_D: tl.constexpr,
    BLOCK_Q: tl.constexpr, BLOCK_K: tl.constexpr,
):  # fmt: skip
    """O = softmax(scale · Q Kᵀ) V and lse = ln Σ exp(scale · Q Kᵀ), a row of each for each query.

    A program owns BLOCK_Q queries and walks over their keys.
    """
    first, batch, head = owned(T_q, H, BLOCK_Q, CAUSAL)
    queries = first + tl.arange(0, BLOCK_Q)
    q = load(Q, batch, head, first, T_q, BLOCK_Q, D, BLOCK_D)

    # The online softmax. Of the keys seen so far, each query remembers
    m = tl.full([BLOCK_Q], -float("inf"), tl.float32)  # the largest score, in base 2
    l = tl.zeros([BLOCK_Q], tl.float32)  # Σ 2^(s − m)
    acc = tl.zeros([BLOCK_Q, BLOCK_D], tl.float32)  # Σ 2^(s − m) v

    # First the blocks in which every query may see every key, then those that need a mask. The
    # outer loop is unrolled when the kernel is compiled: EDGE is known then, and `if EDGE` is free.
    whole, end = keys_to_see(first, T_k, CAUSAL, BLOCK_Q, BLOCK_K)
    for EDGE in tl.static_range(2):
        for start in range(whole * EDGE, end if EDGE else whole, BLOCK_K):
            keys = start + tl.arange(0, BLOCK_K)
            k = load(K, batch, head // group, start, T_k, BLOCK_K, D, BLOCK_D, EDGE)
            v = load(V, batch, head // group, start, T_k, BLOCK_K, D, BLOCK_D, EDGE)

            # S = scale · Q Kᵀ, in base 2
            s = tl.dot(q, k.T, input_precision="ieee") * (scale * LOG2_E)
            if EDGE:
                seen = may_see(queries, keys, T_k, CAUSAL)
                s = tl.where(seen, s, -float("inf"))

            # The new maximum. What was summed under the old one is multiplied by 2^(old − new).
            m_new = tl.maximum(m, tl.max(s, 1))
            rescale = tl.exp2(m - m_new)  # 0 at the first block, where m = −inf
            p = tl.exp2(s - m_new[:, None])
            l = l * rescale + tl.sum(p, 1)
            acc = tl.dot(p.to(v.dtype), v, acc * rescale[:, None], input_precision="ieee")
            m = m_new

    # O = acc / l and lse = ln(2^m · l), all that the backward pass will need
    store(O, acc / l[:, None], batch, head, first, T_q, BLOCK_Q, D, BLOCK_D)
    row = (batch * H + head).to(tl.int64) * T_q + queries
    tl.store(lse + row, (m + tl.log2(l)) / LOG2_E, mask=queries < T_q)


# --- Backward ------------------------------------------------------------------------------------
#
#     P  = exp(S − lse)                 the weights, computed once more instead of stored
#     dV = Pᵀ dO            dP = dO Vᵀ
#     dS = P ∘ (dP − delta)             delta = rowsum(P ∘ dP) = rowsum(dO ∘ O)
#     dQ = scale · dS K     dK = scale · dSᵀ Q
#
# dQ sums over keys, dK and dV over queries. Two kernels, each of which sums in its own loop, give
# the same bits on every run. One kernel for all would add to dQ from many programs at once, in
# whatever order they come.


@triton.jit(do_not_specialize=SIZES)
def delta_kernel(
    O, dO, delta,  # (B, H, T_q, D) twice, (B, H, T_q)
    H, T_q,
    D: tl.constexpr, BLOCK_D: tl.constexpr, BLOCK_Q: tl.constexpr,
):  # fmt: skip
    """delta = rowsum(dO ∘ O): how much of dP each softmax row passes on to no score at all."""
    first, batch, head = owned(T_q, H, BLOCK_Q, False)
    queries = first + tl.arange(0, BLOCK_Q)
    o = load(O, batch, head, first, T_q, BLOCK_Q, D, BLOCK_D).to(tl.float32)
    do = load(dO, batch, head, first, T_q, BLOCK_Q, D, BLOCK_D).to(tl.float32)
    row = (batch * H + head).to(tl.int64) * T_q + queries
    tl.store(delta + row, tl.sum(o * do, 1), mask=queries < T_q)


@triton.jit(do_not_specialize=SIZES)
def dk_dv_kernel(
    Q, K, V, dO, dK, dV, lse, delta,
    H, group, T_q, T_k, scale,
    CAUSAL: tl.constexpr, D: tl.constexpr, BLOCK_D: tl.constexpr,
    BLOCK_Q: tl.constexpr, BLOCK_K: tl.constexpr,
):  # fmt: skip
    """dV = Pᵀ dO and dK = scale · dSᵀ Q.

    A program owns BLOCK_K keys and walks over the queries, in each head of Q that shares them. It
    works with Sᵀ, (keys, queries), so that neither P nor dS has to be transposed.
    """
    first, batch, kv_head = owned(T_k, H // group, BLOCK_K, False)
    keys = first + tl.arange(0, BLOCK_K)
    k = load(K, batch, kv_head, first, T_k, BLOCK_K, D, BLOCK_D)
    v = load(V, batch, kv_head, first, T_k, BLOCK_K, D, BLOCK_D)
    dk = tl.zeros([BLOCK_K, BLOCK_D], tl.float32)
    dv = tl.zeros([BLOCK_K, BLOCK_D], tl.float32)

    # Under causality the queries before `begin` see none of these keys, those from `whole` on see
    # all of them, and those between need a mask.
    begin, whole = 0, 0
    if CAUSAL:
        begin = first // BLOCK_Q * BLOCK_Q
        whole = tl.cdiv(first + BLOCK_K - 1, BLOCK_Q) * BLOCK_Q
    for member in range(group):
        head = kv_head * group + member
        for WHOLE in tl.static_range(0 if CAUSAL else 1, 2):
            end = T_q if WHOLE else tl.minimum(whole, T_q)
            for start in range(whole if WHOLE else begin, end, BLOCK_Q):
                queries = start + tl.arange(0, BLOCK_Q)
                q = load(Q, batch, head, start, T_q, BLOCK_Q, D, BLOCK_D)
                do = load(dO, batch, head, start, T_q, BLOCK_Q, D, BLOCK_D)
                # Beyond the last query dO and delta are 0, and with them all that is added below.
                row = (batch * H + head).to(tl.int64) * T_q + queries
                lse_q = tl.load(lse + row, mask=queries < T_q, other=0.0) * LOG2_E
                delta_q = tl.load(delta + row, mask=queries < T_q, other=0.0)

                # Pᵀ = exp(Sᵀ − lse)
                s = tl.dot(k, q.T, input_precision="ieee") * (scale * LOG2_E)
                p = tl.exp2(s - lse_q[None, :])
                if not WHOLE:
                    p = tl.where(keys[:, None] <= queries[None, :], p, 0.0)

                # dV += Pᵀ dO
                dv = tl.dot(p.to(do.dtype), do, dv, input_precision="ieee")

                # dPᵀ = V dOᵀ,  dSᵀ = Pᵀ ∘ (dPᵀ − delta),  dK += dSᵀ Q
                dp = tl.dot(v, do.T, input_precision="ieee")
                ds = p * (dp - delta_q[None, :])
                dk = tl.dot(ds.to(q.dtype), q, dk, input_precision="ieee")

    store(dK, dk * scale, batch, kv_head, first, T_k, BLOCK_K, D, BLOCK_D)
    store(dV, dv, batch, kv_head, first, T_k, BLOCK_K, D, BLOCK_D)


@triton.jit(do_not_specialize=SIZES)
def dq_kernel(
    Q, K, V, dO, dQ, lse, delta,
    H, group, T_q, T_k, scale,
    CAUSAL: tl.constexpr, D: tl.constexpr, BLOCK_D: tl.constexpr,
    BLOCK_Q: tl.constexpr, BLOCK_K: tl.constexpr,
):  # fmt: skip
    """dQ = scale · dS K. A program owns BLOCK_Q queries and walks over their keys."""
    first, batch, head = owned(T_q, H, BLOCK_Q, CAUSAL)
    queries = first + tl.arange(0, BLOCK_Q)
    q = load(Q, batch, head, first, T_q, BLOCK_Q, D, BLOCK_D)
    do = load(dO, batch, head, first, T_q, BLOCK_Q, D, BLOCK_D)
    row = (batch * H + head).to(tl.int64) * T_q + queries
    lse_q = tl.load(lse + row, mask=queries < T_q, other=0.0) * LOG2_E
    delta_q = tl.load(delta + row, mask=queries < T_q, other=0.0)
    dq = tl.zeros([BLOCK_Q, BLOCK_D], tl.float32)

    whole, end = keys_to_see(first, T_k, CAUSAL, BLOCK_Q, BLOCK_K)
    for EDGE in tl.static_range(2):  # whole blocks, then those that need a mask, as above
        for start in range(whole * EDGE, end if EDGE else whole, BLOCK_K):
            keys = start + tl.arange(0, BLOCK_K)
            k = load(K, batch, head // group, start, T_k, BLOCK_K, D, BLOCK_D, EDGE)
            v = load(V, batch, head // group, start, T_k, BLOCK_K, D, BLOCK_D, EDGE)

            # P = exp(S − lse)
            s = tl.dot(q, k.T, input_precision="ieee") * (scale * LOG2_E)
            p = tl.exp2(s - lse_q[:, None])
            if EDGE:
                p = tl.where(may_see(queries, keys, T_k, CAUSAL), p, 0.0)

            # dP = dO Vᵀ,  dS = P ∘ (dP − delta),  dQ += dS K
            dp = tl.dot(do, v.T, input_precision="ieee")
            ds = p * (dp - delta_q[:, None])
            dq = tl.dot(ds.to(k.dtype), k, dq, input_precision="ieee")

    store(dQ, dq * scale, batch, head, first, T_q, BLOCK_Q, D, BLOCK_D)
