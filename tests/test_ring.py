"""Ring attention: exact for every number of ranks, honest about its bytes, and clean when it fails.

Most tests run the ranks as threads that hand tensors to one another; a few start real processes.
"""

import json
import math
import queue
import signal
import sys
import threading
from concurrent.futures import ThreadPoolExecutor

import psutil
import pytest
import torch
import torch.distributed as dist
import torch.nn.functional as F

from helpers import flash
from helpers.ring import attention, block_kinds, launch, predicted_bytes, ring_attention, run_ring

TOLERANCE = {torch.float64: 1e-12, torch.float32: 1e-5}


class Threads:
    """The part of torch.distributed that the ring uses, between threads."""

    isend, irecv = "isend", "irecv"

    def __init__(self, P):
        self.P, self.me, self.meet = P, threading.local(), threading.Barrier(P, timeout=20)
        self.mail = {(a, b): queue.Queue() for a in range(P) for b in range(P)}
        self.board, self.sent = [None] * P, [0] * P

    def is_available(self):
        return True

    is_initialized = is_available

    def get_rank(self):
        return self.me.rank

    def get_world_size(self):
        return self.P

    def all_gather(self, found, mine):
        self.board[self.me.rank] = mine
        self.meet.wait()
        for place, other in zip(found, self.board):
            place.copy_(other)

    def P2POp(self, op, tensor, peer):
        return op, tensor, peer

    def batch_isend_irecv(self, ops):
        return [Transfer(self, self.me.rank, *op) for op in ops]


class Transfer:
    def __init__(self, world, rank, op, tensor, peer):
        self.arriving = None
        if op == "isend":
            world.sent[rank] += tensor.nbytes
            world.mail[rank, peer].put(tensor.clone())
        else:
            self.arriving, self.box = tensor, world.mail[peer, rank]

    def wait(self):
        if self.arriving is not None:
            self.arriving.copy_(self.box.get(timeout=20))


def in_threads(monkeypatch, shards, **settings):
    """(the RingShard or the exception of each rank, the world they ran in)."""
    world = Threads(len(shards))
    monkeypatch.setattr(attention, "dist", world)

    def work(rank):
        world.me.rank = rank
        try:
            return ring_attention(*shards[rank], **settings)
        except Exception as error:
            return error

    with ThreadPoolExecutor(len(shards)) as pool:
        return list(pool.map(work, range(len(shards)))), world


def draw(*shape, dtype=torch.float64, seed=0):
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(3, *shape, dtype=dtype, generator=generator)


# --- The mathematics -----------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", TOLERANCE)
@pytest.mark.parametrize("is_causal", [False, True])
@pytest.mark.parametrize(("P", "rows"), [(1, 8), (2, 8), (3, 5), (4, 1), (5, 3)])
def test_a_ring_is_attention_over_the_whole_sequence(monkeypatch, P, rows, is_causal, dtype):
    q, k, v = draw(2, 3, P * rows, 7, dtype=dtype)
    shards = list(zip(*(x.chunk(P, dim=-2) for x in (q, k, v))))
    ranks, world = in_threads(monkeypatch, shards, is_causal=is_causal)
    whole = F.scaled_dot_product_attention(q.double(), k.double(), v.double(), is_causal=is_causal)
    output = torch.cat([rank.output for rank in ranks], dim=-2)
    assert output.dtype == dtype
    assert (output - whole).abs().max() <= TOLERANCE[dtype]
    assert [rank.bytes_sent for rank in ranks] == world.sent
    assert set(world.sent) == {predicted_bytes(P, P * rows, 3, 7, dtype.itemsize, batch=2)}
    assert tuple(rank.kinds for rank in ranks) == block_kinds(P, is_causal)


@pytest.mark.parametrize("scale", [0.0, -0.3, 2])
def test_the_scale_is_the_callers(monkeypatch, scale):
    q, k, v = draw(1, 2, 8, 4)
    shards = list(zip(*(x.chunk(2, dim=-2) for x in (q, k, v))))
    ranks, _ = in_threads(monkeypatch, shards, scale=scale)
    whole = F.scaled_dot_product_attention(q, k, v, scale=scale)
    torch.testing.assert_close(torch.cat([rank.output for rank in ranks], dim=-2), whole)


def test_lse_is_that_of_all_keys_and_large_scores_do_not_overflow(monkeypatch):
    q, k, v = draw(1, 2, 8, 4)
    q = q * 1000
    shards = list(zip(*(x.chunk(4, dim=-2) for x in (q, k, v))))
    ranks, _ = in_threads(monkeypatch, shards, is_causal=True)
    scores = (q @ k.mT / 2).masked_fill(torch.ones(8, 8, dtype=bool).triu(1), -math.inf)
    torch.testing.assert_close(torch.cat([r.lse for r in ranks], dim=-1), scores.logsumexp(-1))
    assert all(rank.output.isfinite().all() for rank in ranks)


def test_bfloat16_travels_as_it_is_and_is_summed_in_float32(monkeypatch):
    q, k, v = draw(1, 2, 64, 8, dtype=torch.bfloat16)
    shards = list(zip(*(x.chunk(4, dim=-2) for x in (q, k, v))))
    ranks, _ = in_threads(monkeypatch, shards)
    assert ranks[0].bytes_sent == predicted_bytes(4, 64, 2, 8, bytes_per_number=2)
    assert (ranks[0].output.dtype, ranks[0].lse.dtype) == (torch.bfloat16, torch.float32)
    whole = F.scaled_dot_product_attention(q.double(), k.double(), v.double())
    output = torch.cat([rank.output for rank in ranks], dim=-2)
    assert (output - whole).abs().max() <= 0.01 * whole.abs().max()  # bfloat16 has 8 bits


def test_the_merge_is_the_one_that_the_lesson_teaches():
    a, b = draw(2, 3, 4)[:2]
    lse_a, lse_b = draw(2, 3)[:2]
    ours = attention._merge(a, lse_a, b, lse_b)
    taught = flash.merge(a.numpy(), lse_a.numpy(), b.numpy(), lse_b.numpy())
    for x, y in zip(ours, taught):
        torch.testing.assert_close(x, torch.from_numpy(y))


# --- Which blocks, how many bytes ----------------------------------------------------------------


def test_which_blocks_a_rank_computes():
    assert block_kinds(3, True) == (
        ("masked", "skipped", "skipped"),
        ("masked", "full", "skipped"),
        ("masked", "full", "full"),
    )
    assert block_kinds(2, False) == (("full", "full"),) * 2
    assert block_kinds(1, True) == (("masked",),)


def test_the_prediction_in_numbers():
    assert predicted_bytes(2, 256, 4, 64, bytes_per_number=8) == 2 * 4 * 128 * 64 * 8
    assert predicted_bytes(1, 256, 4, 64) == 0
    # Twice the ranks: each block is half as large, and makes 3 hops instead of 1.
    assert predicted_bytes(4, 256, 4, 64) * 2 == predicted_bytes(2, 256, 4, 64) * 3


# --- Wrong inputs --------------------------------------------------------------------------------

GOOD = torch.zeros(1, 2, 4, 8)


@pytest.mark.parametrize(
    ("qkv", "settings", "error", "words"),
    [
        ((GOOD.numpy(), GOOD, GOOD), {}, TypeError, "q is a ndarray"),
        ((GOOD, GOOD.long(), GOOD), {}, TypeError, "k has dtype torch.int64"),
        ((GOOD, GOOD, GOOD.double()), {}, TypeError, "one dtype"),
        ((GOOD, GOOD.to("meta"), GOOD), {}, TypeError, "one device"),
        ((GOOD[0], GOOD, GOOD), {}, ValueError, "(2, 4, 8)"),
        ((GOOD[:, :, :0],) * 3, {}, ValueError, "none of them 0"),
        ((GOOD, GOOD[:, :1], GOOD[:, :1]), {}, ValueError, "grouped heads"),
        ((GOOD, GOOD, GOOD[..., :4]), {}, ValueError, "must be equal"),
        ((GOOD.clone().requires_grad_(), GOOD, GOOD), {}, ValueError, "forward only"),
        ((GOOD,) * 3, {"is_causal": 1}, TypeError, "is_causal"),
        ((GOOD,) * 3, {"scale": math.inf}, ValueError, "scale"),
        ((GOOD,) * 3, {}, RuntimeError, "init_process_group"),
    ],
)
def test_a_rank_refuses(qkv, settings, error, words):
    with pytest.raises(error) as caught:
        ring_attention(*qkv, **settings)
    assert words in str(caught.value)


def test_unequal_shards_are_refused_on_every_rank(monkeypatch):
    shards = [(torch.zeros(1, 2, rows, 8),) * 3 for rows in (4, 4, 3)]
    ranks, _ = in_threads(monkeypatch, shards)
    for error in ranks:
        assert isinstance(error, ValueError)
        assert "rank 2 of (1, 2, 3, 8)" in str(error)


@pytest.mark.parametrize(
    ("settings", "error", "words"),
    [
        ({"T": 257}, ValueError, "such as 258"),
        ({"T": 0}, ValueError, "T is 0"),
        ({"processes": 0}, ValueError, "processes is 0"),
        ({"processes": 2.0}, TypeError, "processes"),
        ({"heads": -1}, ValueError, "heads"),
        ({"dtype": "float16"}, ValueError, "'float64'"),
        ({"backend": "mpi"}, ValueError, "'gloo'"),
        ({"scale": math.nan}, ValueError, "scale"),
        ({"is_causal": None}, TypeError, "is_causal"),
        ({"timeout": 0}, ValueError, "timeout"),
        ({"torchrun": 1}, TypeError, "torchrun"),
    ],
)
def test_a_ring_is_not_even_started(monkeypatch, settings, error, words):
    monkeypatch.setattr(launch, "_run", lambda *_: pytest.fail("started"))
    with pytest.raises(error) as caught:
        run_ring(**settings)
    assert words in str(caught.value)


def test_nccl_needs_a_gpu_for_each_rank(monkeypatch):
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 1)
    with pytest.raises(ValueError, match="there are 1"):
        run_ring(backend="nccl")


@pytest.mark.parametrize("wrong", [0, -1])
def test_a_ring_of_nobody_has_no_blocks(wrong):
    with pytest.raises(ValueError, match="processes"):
        block_kinds(wrong, True)


# --- Real processes ------------------------------------------------------------------------------

real = pytest.mark.skipif(not dist.is_gloo_available(), reason="this torch has no gloo")


@pytest.fixture
def no_process_stays():
    before = set(psutil.Process().children(recursive=True))
    yield
    assert set(psutil.Process().children(recursive=True)) <= before


@real
@pytest.mark.usefixtures("no_process_stays")
@pytest.mark.parametrize(
    ("torchrun", "settings"),
    [
        pytest.param(
            True, {}, marks=pytest.mark.skipif(sys.platform == "win32", reason="no torchrun")
        ),
        (False, {"processes": 1, "T": 7}),
        (
            False,
            {
                "processes": 3,
                "T": 48,
                "heads": 1,
                "d": 8,
                "is_causal": False,
                "scale": 0.2,
                "dtype": "float32",
            },
        ),
    ],
)
def test_real_processes_compute_the_same(torchrun, settings):
    result = run_ring(torchrun=torchrun, timeout=300, **settings)
    assert result.max_error <= TOLERANCE[getattr(torch, result.dtype)]
    assert result.bytes_sent.tolist() == result.bytes_predicted.tolist()
    P = settings.get("processes", 2)
    assert (result.bytes_sent > 0).all() == (P > 1)
    computed = result.full + result.masked
    assert computed.tolist() == ([r + 1 for r in range(P)] if result.is_causal else [P] * P)
    assert (computed + result.skipped == P).all()
    assert result.output.shape == (
        1, settings.get("heads", 4), settings.get("T", 256), settings.get("d", 64),
    )  # fmt: skip
    assert 0 < result.seconds < result.seconds_total
    assert len(str(result).splitlines()) == P + 1
    for secret in ("/", "\\", "127.0.0.1", "tensor"):
        assert secret not in str(result)


def task(folder, inputs, **changed):
    words = {"is_causal": False, "scale": None, "backend": "gloo", "timeout": 100} | changed
    (folder / "task.json").write_text(json.dumps(words))
    for rank, qkv in enumerate(inputs):
        torch.save(qkv, folder / f"input-{rank}.pt")


@real
@pytest.mark.usefixtures("no_process_stays")
def test_the_last_words_of_a_rank(tmp_path):
    good = torch.zeros(3, 1, 2, 4, 8)
    task(tmp_path, [good, good.long()])  # rank 0 waits for rank 1 until it is ended
    with pytest.raises(RuntimeError) as caught:
        launch._run(tmp_path, 2, 300, sys.platform != "win32", "gloo")
    assert "rank 1: TypeError: q has dtype torch.int64" in str(caught.value)


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no signals")
@pytest.mark.usefixtures("no_process_stays")
def test_a_rank_that_is_killed_has_no_words(tmp_path, monkeypatch):
    wait = [sys.executable, "-c", "import time; time.sleep(600)"]
    die = [sys.executable, "-c", "import os, signal; os.kill(os.getpid(), signal.SIGKILL)"]
    monkeypatch.setattr(launch, "_commands", lambda *_: [(wait, None), (die, None)])
    with pytest.raises(RuntimeError, match="a ring of 2 failed: rank 1 was ended by signal SIGK"):
        launch._run(tmp_path, 2, 300, False, "gloo")


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no signals")
def test_torchruns_summary_is_understood(tmp_path):
    (tmp_path / "words").write_text(
        "Failures:\n[1]:\n  host      : localhost\n  rank      : 0 (local_rank: 0)\n"
        "  exitcode  : -15 (pid: 7)  (SIGTERM)\nRoot Cause (first observed failure):\n[0]:\n"
        "  rank      : 1 (local_rank: 1)\n  exitcode  : -9 (pid: 8)  (SIGKILL)\n"
    )
    said = json.dumps({"time": 1.0, "said": "RuntimeError: Connection closed by peer"})
    (tmp_path / "error-0.json").write_text(said)
    assert launch._why(tmp_path, [1], True) == "rank 1 was ended by signal SIGKILL"


def test_the_first_words_count_and_without_any_the_last_lines(tmp_path):
    (tmp_path / "words").write_text("".join(f"line {n}\n" for n in range(9)))
    assert launch._why(tmp_path, [1, None], False) == "\n".join(f"line {n}" for n in range(4, 9))
    for rank, when in ((0, 2.0), (1, 1.0)):
        said = json.dumps({"time": when, "said": f"Error {rank}"})
        (tmp_path / f"error-{rank}.json").write_text(said)
    assert launch._why(tmp_path, [1, 1], False) == "rank 1: Error 1"


@pytest.mark.parametrize("torchrun", [True, False])
@pytest.mark.usefixtures("no_process_stays")
def test_a_ring_that_takes_too_long_is_ended(torchrun):
    with pytest.raises(TimeoutError, match=r"within 0\.3 s and was ended"):
        run_ring(timeout=0.3, torchrun=torchrun)


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no signals")
@pytest.mark.usefixtures("no_process_stays")
def test_the_processes_of_a_process_are_ended_too(tmp_path):
    child = "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); time.sleep(600)"
    parent = (
        "import subprocess, sys, time;"
        f"subprocess.Popen([sys.executable, '-c', {child!r}], start_new_session=True);"
        "print('ready', flush=True); time.sleep(600)"
    )
    process = psutil.Popen([sys.executable, "-c", parent], stdout=-1)
    process.stdout.readline()
    family = process.children(recursive=True)
    assert len(family) == 1
    launch._end([process])
    process.stdout.close()
    assert process.returncode == -signal.SIGTERM
    assert not family[0].is_running() or family[0].status() == psutil.STATUS_ZOMBIE
