"""One rank of `run_ring`: `python -m helpers.ring FOLDER`, with RANK and WORLD_SIZE set.

FOLDER holds task.json and input-RANK.pt, this rank's q, k and v, nobody else's. Written there:
output-RANK.pt, or error-RANK.json with the time and the words of an exception. The ranks find one
another through a file in it too, not through a port.
"""

from __future__ import annotations

import json
import os
import sys
import time
import traceback
from datetime import timedelta
from pathlib import Path

import torch
import torch.distributed as dist

from helpers.ring.attention import ring_attention


def work(folder: Path, rank: int, ranks: int) -> None:
    task = json.loads((folder / "task.json").read_text(encoding="utf-8"))
    device = torch.device("cpu")
    if task["backend"] == "nccl":
        device = torch.device("cuda", int(os.environ.get("LOCAL_RANK", rank)))
        torch.cuda.set_device(device)
    dist.init_process_group(
        task["backend"], store=dist.FileStore(str(folder / "meeting"), ranks), rank=rank,
        world_size=ranks, timeout=timedelta(seconds=max(1, task["timeout"])),
    )  # fmt: skip
    q, k, v = torch.load(folder / f"input-{rank}.pt", weights_only=True).to(device)
    dist.barrier()
    start = time.perf_counter()
    shard = ring_attention(q, k, v, is_causal=task["is_causal"], scale=task["scale"])
    if device.type == "cuda":
        torch.cuda.synchronize()
    seconds = time.perf_counter() - start
    found = {
        "output": shard.output.cpu(), "bytes_sent": shard.bytes_sent, "kinds": list(shard.kinds),
        "seconds": seconds,
    }  # fmt: skip
    torch.save(found, folder / f"output-{rank}.pt")
    dist.barrier()  # nobody hangs up while another still receives
    dist.destroy_process_group()


def main(folder: Path) -> None:
    rank, ranks = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
    try:
        work(folder, rank, ranks)
    except Exception as error:
        said = "".join(traceback.format_exception_only(error)).strip()
        words = json.dumps({"time": time.time(), "said": said})
        (folder / f"error-{rank}.json").write_text(words, encoding="utf-8")
        raise


if __name__ == "__main__":
    main(Path(sys.argv[1]))
