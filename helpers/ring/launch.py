# ruff: noqa: RUF009  (column() only declares a field)
"""Starts the ranks of a ring, collects what they computed, and compares."""

from __future__ import annotations

import json
import os
import re
import signal
import socket
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
import torch.nn.functional as F

from helpers import _inputs as check
from helpers._table import Table, column
from helpers.ring.attention import FULL, MASKED, SKIPPED, predicted_bytes

DTYPES = {"float32": torch.float32, "float64": torch.float64}
BACKENDS = ("gloo", "nccl")


@dataclass(frozen=True, eq=False, repr=False)
class RingResult(Table):
    """What a ring did: a table with a row for each rank, and what was measured of the whole.

    Columns: rank; rows, which of the sequence it holds; full, masked, skipped, how many blocks of
    keys of each kind it met (see `block_kinds`); bytes_sent, counted in the rank from the tensors
    it sent; bytes_predicted, from `predicted_bytes`.

    max_error : largest |ring − F.scaled_dot_product_attention| over all outputs, the latter in
        float64 over the whole sequence, from the same inputs; no units.
    seconds : `ring_attention` itself, in the slowest rank (gloo: on the CPU, with one thread).
    seconds_total : with starting Python, torch and the ranks.
    output : (1, heads, T, d), the ranks' shards joined, on the CPU.

    Printed are the columns alone: they are the same on every machine.
    """

    rank: np.ndarray = column("rank")
    rows: np.ndarray = column("rows of the sequence")
    full: np.ndarray = column("full blocks")
    masked: np.ndarray = column("masked")
    skipped: np.ndarray = column("skipped")
    bytes_sent: np.ndarray = column("bytes sent")
    bytes_predicted: np.ndarray = column("predicted")
    max_error: float
    seconds: float
    seconds_total: float
    output: torch.Tensor
    is_causal: bool
    dtype: str
    backend: str


def run_ring(
    processes: int = 2, T: int = 256, heads: int = 4, d: int = 64, is_causal: bool = True,
    seed: int = 0, *, dtype: str = "float64", scale: float | None = None, backend: str = "gloo",
    timeout: float = 120.0, torchrun: bool | None = None,
) -> RingResult:  # fmt: skip
    """Ring attention of random q, k, v, (1, heads, T, d), over `processes` ranks on this machine.

    Each rank is a process of its own that is given its T/P rows and nothing else. dtype :
    "float64" or "float32". scale : None means 1/√d. backend : "gloo" (CPU, one thread a rank) or
    "nccl" (a GPU a rank). timeout : seconds for everything. torchrun : None lets torchrun start the
    ranks except on Windows, where the one of torch 2.13 cannot (pytorch issue 178600); False starts
    them without it, a little sooner.

    Nothing leaves the machine, and no network is needed: ranks find one another through a file, and
    with gloo send over the loopback interface.

    Raises TypeError and ValueError for wrong arguments, such as a T that processes does not divide;
    RuntimeError with its last words if a rank fails; TimeoutError. Whatever happens, no process
    that was started here is left behind, and no other is touched.
    Source: Liu, Zaharia, Abbeel 2023, arXiv:2310.01889.
    """
    began = time.perf_counter()
    sizes = {"processes": processes, "T": T, "heads": heads, "d": d}
    processes, T, heads, d = (_positive(name, size) for name, size in sizes.items())
    seed, is_causal = check.count("seed", seed), check.flag("is_causal", is_causal)
    scale = None if scale is None else check.scale(scale)
    number = DTYPES[check.one_of("dtype", dtype, tuple(DTYPES))]
    _require_backend(check.one_of("backend", backend, BACKENDS), processes)
    if T % processes:
        raise ValueError(
            f"T is {T}, which {processes} processes cannot share equally. Pass a multiple of "
            f"{processes}, such as {T + -T % processes}."
        )
    if not timeout > 0:
        raise ValueError(f"timeout is {timeout}, but must be more than 0 seconds.")
    torchrun = sys.platform != "win32" if torchrun is None else check.flag("torchrun", torchrun)

    qkv = torch.randn(
        3, 1, heads, T, d, dtype=number, generator=torch.Generator().manual_seed(seed)
    )
    task = {"is_causal": is_causal, "scale": scale, "backend": backend, "timeout": timeout}
    shards = qkv.chunk(processes, dim=-2)
    with tempfile.TemporaryDirectory(prefix="ring-", ignore_cleanup_errors=True) as name:
        folder = Path(name)
        (folder / "task.json").write_text(json.dumps(task), encoding="utf-8")
        for rank, shard in enumerate(shards):
            torch.save(shard.clone(), folder / f"input-{rank}.pt")
        _run(folder, processes, timeout, torchrun, backend)
        files = [folder / f"output-{rank}.pt" for rank in range(processes)]
        found = [torch.load(file, weights_only=True) for file in files]

    output = torch.cat([each["output"] for each in found], dim=-2)
    whole = F.scaled_dot_product_attention(*qkv.double(), is_causal=is_causal, scale=scale)
    sent = predicted_bytes(processes, T, heads, d, number.itemsize)
    n = T // processes
    rows = [
        {
            "rank": rank, "rows": f"{rank * n} … {(rank + 1) * n - 1}",
            **{kind: each["kinds"].count(kind) for kind in (FULL, MASKED, SKIPPED)},
            "bytes_sent": each["bytes_sent"], "bytes_predicted": sent,
        }
        for rank, each in enumerate(found)
    ]  # fmt: skip
    return RingResult.from_rows(
        rows, max_error=(output - whole).abs().max().item(),
        seconds=max(each["seconds"] for each in found),
        seconds_total=time.perf_counter() - began, output=output, is_causal=is_causal, dtype=dtype,
        backend=backend,
    )  # fmt: skip


def _positive(name: str, value: int) -> int:
    if check.count(name, value) < 1:
        raise ValueError(f"{name} is 0, but must be at least 1.")
    return int(value)


def _require_backend(backend: str, processes: int) -> None:
    import torch.distributed as dist

    if not dist.is_available():
        raise RuntimeError("this torch was built without torch.distributed. Install another.")
    if backend == "nccl" and (gpus := torch.cuda.device_count()) < processes:
        raise ValueError(
            f"backend 'nccl' needs a GPU for each of the {processes} ranks, and there are {gpus}. "
            "Use fewer processes, or backend 'gloo', which runs on the CPU."
        )


# --- Processes -----------------------------------------------------------------------------------


def _run(folder: Path, ranks: int, timeout: float, torchrun: bool, backend: str) -> None:
    """Run all ranks to their end, in time. Raises RuntimeError, TimeoutError."""
    until = time.monotonic() + timeout
    started: list[subprocess.Popen] = []
    with (folder / "words").open("wb") as words:
        try:
            for command, environment in _commands(folder, ranks, torchrun, backend):
                started.append(
                    subprocess.Popen(
                        command, env=environment, stdin=subprocess.DEVNULL,
                        stdout=subprocess.DEVNULL, stderr=words,
                    )
                )  # fmt: skip
            while any(process.poll() is None for process in started):
                if any(process.poll() for process in started):
                    break  # one has failed: the others wait for it in vain
                if time.monotonic() > until:
                    raise TimeoutError(
                        f"a ring of {ranks} did not finish within {timeout:g} s and was ended. "
                        "Each rank first loads torch: pass a longer timeout, or a shorter T."
                    )
                time.sleep(0.02)
        finally:
            codes = [process.poll() for process in started]
            _end(started)
    if any(codes):
        raise RuntimeError(f"a ring of {ranks} failed: {_why(folder, codes, torchrun)}")


def _commands(folder: Path, ranks: int, torchrun: bool, backend: str):
    """(command, environment) of each process to start."""
    inherited = ("PET_", "TORCHELASTIC_")  # settings of a torchrun that this process may be under
    environment = {k: v for k, v in os.environ.items() if not k.startswith(inherited)}
    environment |= {"OMP_NUM_THREADS": "1", "MASTER_ADDR": "127.0.0.1"}
    if backend == "gloo" and (name := _loopback()):
        environment["GLOO_SOCKET_IFNAME"] = name
    worker = ["-m", "helpers.ring", str(folder)]
    if torchrun:
        options = ["--standalone", "--local-addr", "127.0.0.1", "--nproc-per-node", str(ranks)]
        start = [sys.executable, "-m", "torch.distributed.run", *options]
        yield [*start, *worker], environment
        return
    for rank in range(ranks):
        place = {"RANK": str(rank), "LOCAL_RANK": str(rank), "WORLD_SIZE": str(ranks)}
        yield [sys.executable, *worker], environment | place


def _loopback() -> str | None:
    """The name of the loopback interface, where it has one of the usual names."""
    names = {name for _, name in socket.if_nameindex()}
    return next((name for name in ("lo", "lo0") if name in names), None)


def _end(started: list[subprocess.Popen]) -> None:
    """End these processes and those they started, and nothing else."""
    import psutil

    family = []
    for process in started:
        if process.poll() is None:
            try:
                family += psutil.Process(process.pid).children(recursive=True)
            except psutil.NoSuchProcess:
                continue
            process.terminate()  # torchrun ends its ranks when it is told to end
    for process in started:
        try:
            process.wait(timeout=5)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
    _, left = psutil.wait_procs(family, timeout=0)
    for process in left:  # psutil knows a process by its start too: a reused number is left alone
        process.kill()
    psutil.wait_procs(left, timeout=5)


def _why(folder: Path, codes: list[int | None], torchrun: bool) -> str:
    """Which rank failed first, in its own words if it had any."""
    words = (folder / "words").read_text(encoding="utf-8", errors="replace")
    if torchrun:  # its summary names the ranks
        pairs = re.findall(r"rank\s*: (\d+) .*\n\s*exitcode\s*: (-?\d+)", words)
        ended = {int(rank): int(code) for rank, code in pairs}
    else:
        ended = {rank: code for rank, code in enumerate(codes) if code is not None}
    for rank, code in ended.items():
        if code < 0 and code != -signal.SIGTERM:  # it had no time for words; the others complain
            return f"rank {rank} was ended by signal {signal.Signals(-code).name}"
    said = {}
    for file in folder.glob("error-*.json"):
        error = json.loads(file.read_text(encoding="utf-8"))
        said[error["time"]] = f"rank {file.stem.partition('-')[2]}: {error['said']}"
    if said:
        return said[min(said)]
    return "\n".join(words.strip().splitlines()[-5:]) or "it said nothing"
