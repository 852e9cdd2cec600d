# ruff: noqa: RUF009  (column() only declares a field)
"""Plain attention runs into a wall of memory: its T × T scores. Measured here, and in real models.

    wall = measure_wall()
    print(wall)
    growth(wall.T, wall.peak_plain), growth(wall.T, wall.peak_fused)     # near 2; 1 or less
    print(REAL_MODELS)

MB are 10⁶ bytes and GB 10⁹ throughout.

How a peak is measured. Each of the two ways of computing attention gets a fresh process, with torch
loaded, one thread and warmed up; there T grows. For each T, q, k and v are made, and the process's
resident memory is read (psutil). Then attention runs once, and what counts is how far resident
memory rose above that at its highest, the output included. The system keeps the highest mark:

    Linux    VmHWM in /proc/self/status; writing 5 to /proc/self/clear_refs sets it back to now, so
             each T has a mark of its own (man 5 proc).
    macOS    ru_maxrss of getrusage, the mark since the process began.
    Windows  psutil's peak_wset, the same. VmHWM is that too, where clear_refs may not be written.
             (Not ru_maxrss: on Linux a new program begins with its parent's.)

Without a reset an older mark counts where it is higher, which is why T must grow; a small peak may
then come out as more than it was, under the mark that loading torch left. `WallTable.reset` says
whether each T had a mark of its own.

Freed memory must go back to the system, or the next T would find it there and seem to need less:
glibc is told to take large blocks from the system one by one (MALLOC_MMAP_THRESHOLD_), and MKL not
to keep buffers (MKL_DISABLE_FAST_MM). Other systems may keep some.

Times are the best of a few runs after that one, without any resetting.
"""

from __future__ import annotations

import json
import math
import os
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import numpy as np

from helpers import _inputs as check
from helpers._table import Table, column

WAYS = ("plain", "fused")
MB, GB = 10**6, 10**9


@dataclass(frozen=True, eq=False, repr=False)
class WallTable(Table):
    """Attention of one sequence for growing T, a row for each; from `measure_wall`.

    matrix_bytes : of one T × T matrix, all heads, in float32. peak_plain, peak_fused : MB by which
    resident memory rose at its highest. seconds_plain, seconds_fused : s, one thread.
    heads, d : not printed. reset : whether each T had a high-water mark of its own.
    """

    T: np.ndarray = column("T")
    matrix_bytes: np.ndarray = column("T×T bytes")
    peak_plain: np.ndarray = column("plain: MB", ".1f")
    peak_fused: np.ndarray = column("fused: MB", ".1f")
    seconds_plain: np.ndarray = column("plain: s", ".4f")
    seconds_fused: np.ndarray = column("fused: s", ".4f")
    heads: int
    d: int
    reset: bool


def measure_wall(
    Ts: Sequence[int] = (512, 1024, 2048, 4096), heads: int = 4, d: int = 64, *,
    timeout: float = 300.0,
) -> WallTable:  # fmt: skip
    """Peak memory and time of plain and fused attention on this CPU, for each length in Ts.

    q, k, v : (1, heads, T, d) of float32, no mask, forward only.
    plain : (q kᵀ) / √d, softmax, product with v, in torch. Two T × T matrices exist at a time.
    fused : `F.scaled_dot_product_attention`, held to torch's FlashAttention for CPUs.
    timeout : seconds for each of the two processes.

    The standard Ts need about 0.6 GB for a moment, and some seconds.

    Raises TypeError or ValueError for lengths that do not grow or sizes below 1, MemoryError where
    the largest T would not fit in the memory that is free, RuntimeError with its last words if a
    process fails, TimeoutError. A process that was started here is ended with it.
    """
    Ts = [_positive("each T", T) for T in Ts]
    heads, d = _positive("heads", heads), _positive("d", d)
    if not Ts or any(a >= b for a, b in pairwise(Ts)):
        raise ValueError(
            f"Ts is {tuple(Ts)}, but needs at least one length, and each larger than the one "
            "before: a high-water mark only rises. Pass sorted(set(Ts))."
        )
    _require_memory(Ts[-1], heads)
    found = {way: _in_own_process(way, Ts, heads, d, timeout) for way in WAYS}
    plain, fused = (found[way]["rows"] for way in WAYS)
    rows = [
        {
            "T": T, "matrix_bytes": score_matrix_bytes(T, heads, bytes_per_number=4),
            "peak_plain": a["bytes"] / MB, "peak_fused": b["bytes"] / MB,
            "seconds_plain": a["seconds"], "seconds_fused": b["seconds"],
        }
        for T, a, b in zip(Ts, plain, fused)
    ]  # fmt: skip
    reset = all(found[way]["reset"] for way in WAYS)
    return WallTable.from_rows(rows, heads=heads, d=d, reset=reset)


def growth(Ts: Sequence[int], values: Sequence[float], largest: int = 3) -> float:
    """The exponent p of values ∝ T^p, no units, by least squares through ln T and ln value.

    Only the `largest` largest Ts count: at small ones a constant share hides the growth.

    Raises ValueError if there are fewer than two different Ts, unequally many values, or one that
    is not positive and finite (a peak of 0 has no logarithm).
    """
    x, y = check.real("Ts", Ts, min_dims=1), check.real("values", values, min_dims=1)
    if x.shape != y.shape or x.ndim != 1:
        raise ValueError(f"Ts has shape {x.shape} and values {y.shape}, but both must be (n,).")
    if check.count("largest", largest) < 2 or len(np.unique(x)) < 2:
        raise ValueError(
            f"a slope needs two different lengths, but Ts is {tuple(x.tolist())} and largest is "
            f"{largest}. Pass two or more."
        )
    order = np.argsort(x, kind="stable")[-largest:]
    x, y = x[order], y[order]
    wrong = [number for number in [*x, *y] if not (number > 0 and math.isfinite(number))]
    if wrong:
        raise ValueError(
            f"got {wrong[0]:g}, which has no logarithm: all must be positive and finite. Leave "
            "that T out."
        )
    x, y = np.log(x), np.log(y)
    x = x - x.mean()
    return float(x @ y / (x @ x))


def score_matrix_bytes(
    T: int, heads: int, layers: int = 1, batch: int = 1, bytes_per_number: int = 2
) -> int:
    """Bytes of the T × T scores: layers · batch · heads · T² · bytes_per_number (2 for bfloat16).

    Raises TypeError or ValueError unless all are whole numbers of 1 or more.
    """
    sizes = {"T": T, "heads": heads, "layers": layers, "batch": batch}
    sizes["bytes_per_number"] = bytes_per_number
    T, heads, layers, batch, number = (_positive(name, size) for name, size in sizes.items())
    return layers * batch * heads * T * T * number


# --- Real models ---------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False, repr=False)
class ModelTable(Table):
    """Published models, a row for each. context : tokens; score_bytes : of one layer's T × T
    scores, one sequence of the full context, 2 bytes a number; score_gb : the same in GB."""

    name: np.ndarray = column("model")
    layers: np.ndarray = column("layers")
    heads: np.ndarray = column("heads")
    d_head: np.ndarray = column("d_head")
    context: np.ndarray = column("context")
    score_bytes: np.ndarray = column("T×T bytes, one layer")
    score_gb: np.ndarray = column("GB", ".3f")


_PUBLISHED = [
    # openai/gpt-2, src/model.py, default_hparams: n_ctx 1024, n_embd 768, n_head 12, n_layer 12.
    ("GPT-2 small", 12, 12, 64, 1024),
    # Brown et al. 2020, arXiv:2005.14165, table 2.1 and section 2.1 (n_ctx = 2048). Every second of
    # its layers is sparse: these are the scores of a dense one.
    ("GPT-3 175B", 96, 96, 128, 2048),
    # meta-llama/Meta-Llama-3-8B, config.json: hidden_size 4096, max_position_embeddings 8192.
    ("Llama 3 8B", 32, 32, 128, 8192),
    # Qwen/Qwen3-0.6B, config.json: head_dim 128 (not 1024 / 16), max_position_embeddings 40960.
    ("Qwen3 0.6B", 28, 16, 128, 40960),
    # meta-llama/Llama-3.1-8B, config.json: hidden_size 4096, max_position_embeddings 131072.
    ("Llama 3.1 8B", 32, 32, 128, 131072),
]


def _real_models() -> ModelTable:
    rows = []
    for name, layers, heads, d_head, context in _PUBLISHED:
        size = score_matrix_bytes(context, heads)
        rows.append(
            {
                "name": name, "layers": layers, "heads": heads, "d_head": d_head,
                "context": context, "score_bytes": size, "score_gb": size / GB,
            }
        )  # fmt: skip
    return ModelTable.from_rows(rows)


# --- The two processes ---------------------------------------------------------------------------


def _positive(name: str, value: int) -> int:
    if check.count(name, value) < 1:
        raise ValueError(f"{name} is {value}, but must be at least 1.")
    return int(value)


def _require_memory(T: int, heads: int) -> None:
    import psutil

    needed = 2.5 * score_matrix_bytes(T, heads, bytes_per_number=4)
    free = psutil.virtual_memory().available
    if needed > free:
        raise MemoryError(
            f"plain attention at T = {T} with {heads} heads needs about {needed / GB:.1f} GB, and "
            f"{free / GB:.1f} GB are free: this is the wall. Pass a smaller T, or fewer heads."
        )


def _in_own_process(way: str, Ts: list[int], heads: int, d: int, timeout: float) -> dict:
    settings = {"OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}
    settings |= {"MALLOC_MMAP_THRESHOLD_": "65536", "MKL_DISABLE_FAST_MM": "1"}
    asked = json.dumps({"way": way, "Ts": Ts, "heads": heads, "d": d})
    try:
        done = subprocess.run(
            [sys.executable, "-m", "helpers.memory_wall"], input=asked, capture_output=True,
            encoding="utf-8", env=os.environ | settings, timeout=timeout,
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        raise TimeoutError(
            f"measuring {way} attention did not finish within {timeout:g} s and was ended. "
            "Pass a longer timeout, or smaller Ts."
        ) from None
    if done.returncode:
        said = "\n".join(done.stderr.strip().splitlines()[-3:]) or "it said nothing"
        raise RuntimeError(
            f"measuring {way} attention ended with exit code {done.returncode}: {said}"
        )
    return json.loads(done.stdout)


def _measure(way: str, Ts: list[int], heads: int, d: int) -> dict:
    """In the process itself: {"reset": …, "rows": [{"bytes": …, "seconds": …}, …]}."""
    attend = {"plain": _plain, "fused": _fused}[way]
    import torch

    torch.set_num_threads(1)
    reset = _reset_peak()
    # A small attention first: code is loaded at its first use, and kernels differ by T. Where the
    # mark cannot be set back, only a very small one.
    warm_up = [(T, 1) for T in ([64, 256, 1024] if reset else [64])]
    rows = []
    with torch.inference_mode():
        for T, H in warm_up + [(T, heads) for T in Ts]:
            generator = torch.Generator().manual_seed(T)
            q, k, v = torch.randn(3, 1, H, T, d, generator=generator)
            before = _resident()
            _reset_peak()
            attend(q, k, v)
            rows.append({"bytes": max(0, _peak() - before), "seconds": _best(attend, q, k, v)})
    return {"reset": reset, "rows": rows[len(warm_up) :]}


def _plain(q, k, v):
    scores = q @ k.mT / math.sqrt(q.shape[-1])  # (1, H, T, T)
    weights = scores.softmax(dim=-1)  # (1, H, T, T)
    return weights @ v


def _fused(q, k, v):
    import torch.nn.functional as F
    from torch.nn.attention import SDPBackend, sdpa_kernel

    with sdpa_kernel(SDPBackend.FLASH_ATTENTION):
        return F.scaled_dot_product_attention(q, k, v)


def _best(attend, q, k, v, runs: int = 3, enough: float = 0.3) -> float:
    """Seconds of the shortest of `runs` runs; of fewer where they take over `enough` together."""
    times: list[float] = []
    while len(times) < runs and sum(times) < enough:
        start = time.perf_counter()
        attend(q, k, v)
        times.append(time.perf_counter() - start)
    return min(times)


def _resident() -> int:
    """Bytes of this process in memory now."""
    import psutil

    return psutil.Process().memory_info().rss


def _reset_peak() -> bool:
    """Set the high-water mark back to what is resident now; whether the system lets us."""
    try:
        Path("/proc/self/clear_refs").write_text("5")
    except OSError:
        return False
    return _peak_of_linux() is not None


def _peak_of_linux() -> int | None:
    try:
        lines = Path("/proc/self/status").read_text().splitlines()
    except OSError:
        return None
    marks = [line for line in lines if line.startswith("VmHWM:")]
    return int(marks[0].split()[1]) * 1024 if marks else None


def _peak() -> int:
    """Bytes of this process in memory at most, since the last reset or since it began."""
    if (mark := _peak_of_linux()) is not None:
        return mark
    if sys.platform == "win32":
        import psutil

        return psutil.Process().memory_info().peak_wset
    import resource

    mark = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return mark if sys.platform == "darwin" else mark * 1024


REAL_MODELS = _real_models()

if __name__ == "__main__":
    print(json.dumps(_measure(**json.load(sys.stdin))))
