"""On a GPU: are the Triton kernels right there, and how fast are they?

    python tests/gpu_flash.py --out DIR [--minutes 9] [--dtype bfloat16] [--tune]

1. Correctness against float64, by the rule of `test_flash_triton.py`, several processes at a time
   because compiling takes most of it; ten runs bit-equal; tensors of more than 2³¹ numbers.
2. Benchmark: this kernel and the backends of F.scaled_dot_product_attention, forward and forward +
   backward, medians of triton.testing.do_bench. As in the FlashAttention papers the batch shrinks
   as T grows, 16,384 tokens in all, with H · D = 2048.
3. With --tune: other block sizes, one length.

Writes DIR/gpu_flash.json after every step, so that a run which is cut short leaves what it had.
What would not fit into the time or the memory is recorded as skipped, with the reason.
Exit code 1 if anything is wrong.

FLOP counted: forward 4 · B · H · T² · D, half of it if causal; backward 2.5 times as much. Times
are those between two events on the GPU: where a kernel is shorter than its launch from Python, as
at the shortest lengths, they are the launch's.
"""

import argparse
import datetime
import itertools
import json
import multiprocessing
import os
import platform
import subprocess
import sys
import time
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

# Also where the package is not installed, and for the test module beside this file.
sys.path[:0] = [str(Path(__file__).resolve().parent.parent), str(Path(__file__).resolve().parent)]

import torch  # noqa: E402
import torch.nn.functional as F  # noqa: E402
from torch.nn.attention import SDPBackend, sdpa_kernel  # noqa: E402

from helpers.flash_triton import available, config, flash_attention, runtime  # noqa: E402

GIB = 2**30
DTYPES = ["float16", "bfloat16", "float32"]

# --- 1. Correctness ------------------------------------------------------------------------------

SMALL = (2, 4, 2, 257, 130, 64)  # B, H, H_kv, T_q, T_k, D
CASES = [
    *((sizes, dtype, causal, "contiguous")
      for sizes in [SMALL, (2, 4, 2, 1023, 1025, 128)]
      for dtype in DTYPES
      for causal in (False, True)),
    *(((1, 4, 2, 300, 333, D), dtype, True, "contiguous")
      for D in (16, 40, 72, 80, 96, 256)
      for dtype in ("float16", "float32")),
    *((SMALL, "bfloat16", True, layout)
      for layout in ("heads_inside", "every_second", "cut_out", "one_for_all")),
    *(((1, 2, 1, T_q, T_k, 64), "float16", causal, "contiguous")
      for T_q, T_k in [(1, 1), (1, 1000), (15, 17), (1000, 1), (127, 129)]
      for causal in (False, True)),
    ((1, 2, 2, 8192, 8192, 128), "bfloat16", True, "contiguous"),
]  # fmt: skip


def check(case):
    """One case against float64. Returns a record; never raises."""
    sizes, dtype, is_causal, layout = case
    record = {"sizes": sizes, "dtype": dtype, "causal": is_causal, "layout": layout}
    try:
        import test_flash_triton as rule

        inputs, do = rule.draw(sizes, getattr(torch, dtype))
        lay_out = getattr(rule, layout)
        inputs = [lay_out(x) for x in inputs]
        found = list(rule.errors(inputs, lay_out(do), is_causal=is_causal))
        record["errors"] = {name: found_here for name, *found_here in found}
        record["ok"] = all(error <= bound for _, error, _, bound in found)  # False for nan, too
    except Exception as error:
        record.update(ok=False, error=f"{type(error).__name__}: {str(error)[:500]}")
    return record


def check_all(workers):
    """All cases, several at a time; one after the other if this system cannot do that."""
    context = multiprocessing.get_context("spawn")
    done = []
    try:
        with ProcessPoolExecutor(workers, mp_context=context) as pool:
            for record in pool.map(check, CASES):
                done.append(record)
                yield record
    except Exception as error:  # a worker died
        print(f"  (workers failed: {error!r}; going on without them)", flush=True)
        yield from map(check, CASES[len(done) :])


def check_repeats(dtype):
    """Ten runs, forward and backward: the same bits?"""
    q, k, v = (torch.randn(2, 8, 1000, 128, device="cuda", dtype=dtype) for _ in range(3))
    leaves = [x.requires_grad_() for x in (q, k, v)]
    do = torch.randn_like(q)

    def once():
        out = flash_attention(*leaves, is_causal=True)
        return [out.detach(), *torch.autograd.grad(out, leaves, do)]

    first = once()
    same = all(torch.equal(a, b) for _ in range(9) for a, b in zip(once(), first))
    return {"what": "ten runs bit-equal", "dtype": str(dtype), "ok": same}


def check_large():
    """More than 2³¹ numbers in a tensor, more than 65,535 heads: is the last head right?"""
    record = {"what": "more than 2³¹ numbers"}
    B, H, T, D = 2100, 64, 128, 128
    need = 5 * B * H * T * D * 2
    if torch.cuda.mem_get_info()[0] < need:
        return {**record, "ok": None, "skipped": f"needs {need / GIB:.0f} GiB"}
    try:
        q, k, v = (torch.randn(B, H, T, D, device="cuda", dtype=torch.float16) for _ in range(3))
        out = flash_attention(q, k, v)[-1:, -2:]
        ref = F.scaled_dot_product_attention(*(x[-1:, -2:].double() for x in (q, k, v)))
        error = (out.double() - ref).abs().max().item()
        return {**record, "ok": error < 5e-3, "error": error}
    except Exception as error:
        return {**record, "ok": False, "error": f"{type(error).__name__}: {str(error)[:500]}"}


# --- 2. Benchmark --------------------------------------------------------------------------------

LENGTHS = [512, 1024, 2048, 4096, 8192, 16384]
TOKENS, WIDTH = 16384, 2048
BACKENDS = {
    "flash": SDPBackend.FLASH_ATTENTION,
    "cudnn": SDPBackend.CUDNN_ATTENTION,
    "efficient": SDPBackend.EFFICIENT_ATTENTION,
    "math": SDPBackend.MATH,
}


def attention_by(name):
    """name -> function of q, k, v, is_causal. One backend only: no silent fall-back to another."""
    if name == "ours":
        return flash_attention

    def by_torch(q, k, v, is_causal):
        with sdpa_kernel(BACKENDS[name]):
            return F.scaled_dot_product_attention(q, k, v, is_causal=is_causal)

    return by_torch


def job(name, B, H, T, D, is_causal, backward, dtype):
    """A function without arguments that does one pass, and the FLOP that it counts for."""
    q, k, v, do = (torch.randn(B, H, T, D, device="cuda", dtype=dtype) for _ in range(4))
    attention = attention_by(name)
    flop = 4 * B * H * T * T * D / (2 if is_causal else 1)
    if not backward:
        return lambda: attention(q, k, v, is_causal), flop
    leaves = [x.requires_grad_() for x in (q, k, v)]

    def both():
        return torch.autograd.grad(attention(*leaves, is_causal), leaves, do)

    return both, 3.5 * flop


def measure(run, flop):
    """Median milliseconds, TFLOP/s, and the most memory at a time beyond the inputs."""
    from triton.testing import do_bench

    run()  # compile, choose algorithms
    torch.cuda.synchronize()
    torch.cuda.reset_peak_memory_stats()
    before = torch.cuda.memory_allocated()
    run()
    torch.cuda.synchronize()
    peak = torch.cuda.max_memory_allocated() - before
    ms = do_bench(run, warmup=20, rep=100, return_mode="median")
    return {"ms": ms, "TFLOP/s": flop / ms / 1e9, "peak_MiB": peak / 2**20}


def attempt(record, name, shape, dtype, deadline):
    """`record` with what was measured, or with why it was not."""
    if time.monotonic() > deadline:
        return {**record, "skipped": "out of time"}
    B, H, T, D, is_causal, backward = shape
    if name == "math":  # scores, weights and their gradients, in float32 inside
        need = B * H * T * T * 4 * (6 if backward else 3)
        if need > torch.cuda.mem_get_info()[0]:
            return {**record, "skipped": f"would need about {need / GIB:.0f} GiB"}
    try:
        return {**record, **measure(*job(name, B, H, T, D, is_causal, backward, dtype))}
    except Exception as error:  # out of memory, or this backend does not do it
        return {**record, "skipped": f"{type(error).__name__}: {str(error).strip()[:200]}"}
    finally:
        torch.cuda.empty_cache()


def benchmark(dtype, deadline):
    # The quick and telling ones first: math is slow, and goes last.
    names = ["ours", "flash", "cudnn", "efficient", "math"]
    for backward, D, is_causal, T, name in itertools.product(
        (False, True), (64, 128), (False, True), LENGTHS, names
    ):
        shape = (TOKENS // T, WIDTH // D, T, D, is_causal, backward)
        record = dict(zip(("B", "H", "T", "D", "causal", "backward"), shape), by=name)
        yield attempt(record, name, shape, dtype, deadline)


# --- 3. Tuning -----------------------------------------------------------------------------------

FORWARD = [(128, 128, 8, 2), (128, 64, 8, 3), (128, 64, 4, 3), (64, 64, 4, 3), (128, 64, 8, 2),
           (128, 128, 8, 3), (128, 32, 4, 4)]  # fmt: skip
BACKWARD = [(128, 64, 8, 2), (128, 32, 8, 2), (128, 32, 8, 3), (64, 64, 4, 2), (64, 32, 4, 3),
            (64, 64, 8, 2), (128, 32, 4, 2)]  # fmt: skip


def with_blocks(task):
    """Compile and run one choice once, so that Triton's cache on disk has it. In a worker."""
    blocks, shape, dtype = task
    config.block_sizes = lambda *args, **kwargs: config.Blocks(*blocks)
    try:
        run, _ = job("ours", *shape, getattr(torch, dtype))
        run()
        torch.cuda.synchronize()
    except Exception:
        return False  # measured again below, where the reason is kept
    return True


def tune(dtype, deadline, workers):
    """Forward + backward is timed with the forward kernel's usual blocks and other ones behind."""
    usual = config.block_sizes
    tasks = [
        (blocks, (4, WIDTH // D, 4096, D, is_causal, backward))
        for D, is_causal in itertools.product((64, 128), (True, False))
        for backward in (False, True)
        for blocks in (BACKWARD if backward else FORWARD)
    ]
    name = str(dtype).removeprefix("torch.")
    if time.monotonic() < deadline:
        try:
            context = multiprocessing.get_context("spawn")
            with ProcessPoolExecutor(workers, mp_context=context) as pool:
                list(pool.map(with_blocks, [(*task, name) for task in tasks]))
        except Exception as error:
            print(f"  (workers failed: {error!r}; compiling as we go)", flush=True)
    for blocks, shape in tasks:

        def chosen(capability, d_head, dtype, backward, blocks=blocks, turn=shape[-1]):
            if backward == turn:
                return config.Blocks(*blocks)
            return usual(capability, d_head, dtype, backward)

        config.block_sizes = chosen
        record = {"blocks": blocks, "D": shape[3], "causal": shape[4], "backward": shape[5]}
        yield attempt(record, "ours", shape, dtype, deadline)
    config.block_sizes = usual


# --- The program ---------------------------------------------------------------------------------


def this_machine():
    import triton

    query = ["nvidia-smi", "--query-gpu=driver_version", "--format=csv,noheader"]
    try:
        driver = subprocess.run(query, capture_output=True, text=True, timeout=30).stdout.strip()
    except (OSError, subprocess.TimeoutExpired):
        driver = ""
    properties = torch.cuda.get_device_properties(0)
    return {
        "date": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
        "device": properties.name,
        "capability": list(torch.cuda.get_device_capability()),
        "multiprocessors": properties.multi_processor_count,
        "memory_GiB": round(properties.total_memory / GIB, 1),
        "driver": driver,
        "python": platform.python_version(),
        "torch": torch.__version__,
        "triton": triton.__version__,
        "cuda": torch.version.cuda,
        "cudnn": torch.backends.cudnn.version(),
    }


def words(record):
    """A record as a line."""
    told = {key: value for key, value in record.items() if key not in ("errors", "ms")}
    line = " ".join(
        f"{key}={value:.4g}" if isinstance(value, float) else f"{key}={value}"
        for key, value in told.items()
    )
    if record.get("ok") is False:
        line = "WRONG " + line + f" {record.get('errors', '')}"
    return "  " + line


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--out", type=Path, default=Path("."), help="folder for gpu_flash.json")
    parser.add_argument("--minutes", type=float, default=9, help="start nothing new after these")
    parser.add_argument("--dtype", choices=["float16", "bfloat16"], default="bfloat16")
    parser.add_argument("--tune", action="store_true", help="also try other block sizes")
    parser.add_argument("--workers", type=int, default=max(1, min(8, (os.cpu_count() or 2) // 2)))
    options = parser.parse_args()

    here = available()
    if not here or not torch.cuda.is_available() or runtime.interpreted():
        sys.exit(f"This needs an NVIDIA GPU and compiled kernels. {here.reason}")
    started = time.monotonic()
    deadline = started + 60 * options.minutes
    dtype = getattr(torch, options.dtype)
    options.out.mkdir(parents=True, exist_ok=True)
    result = {**this_machine(), "dtype": options.dtype}

    def collect(title, records):
        """Keep, show and save each record as it comes."""
        print(f"{title} ({time.monotonic() - started:.0f} s)", flush=True)
        result[title] = []
        for record in records:
            result[title].append(record)
            print(words(record), flush=True)
            result["seconds"] = round(time.monotonic() - started, 1)
            text = json.dumps(result, indent=1, ensure_ascii=False)
            (options.out / "gpu_flash.json").write_text(text + "\n", encoding="utf-8")

    print(json.dumps(result), flush=True)
    collect("correctness", check_all(options.workers))
    others = (check_repeats(torch.float16), check_repeats(torch.float32), check_large())
    collect("further checks", others)
    torch.cuda.empty_cache()
    collect("benchmark", benchmark(dtype, deadline))
    if options.tune:
        collect("tuning", tune(dtype, deadline, options.workers))

    checked = result["correctness"] + result["further checks"]
    wrong = [record for record in checked if record["ok"] is False]
    print(f"{len(checked) - len(wrong)} of {len(checked)} checks passed, {result['seconds']} s")
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
