"""The Triton kernels compile for real GPUs, and fit into them. Needs Linux, but no GPU.

Triton cross-compiles: from Python through PTX (NVIDIA's assembly language) to a cubin (machine
code), whose registers, shared memory and spills are then read off. A *spill* is a value for which
no register is left, and which goes to slow memory instead.

A compilation takes 1 to 10 seconds, so `pytest` compiles a part of the table and
`pytest -m slow tests/test_flash_triton_compiled.py` the rest. As a program it prints the table:

    python tests/test_flash_triton_compiled.py [sm ...]
"""

import functools
import json
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import NamedTuple

import pytest

ROOT = Path(__file__).resolve().parent.parent
CHIPS = [75, 80, 86, 90, 100]
KERNELS = ["forward", "dk_dv", "dq"]
DTYPES = ["float16", "bfloat16", "float32"]

# Bytes that each thread may spill, where none is not to be had. From Triton Turing gets no
# tensor-core code, and its products of wide rows need more than the 255 registers of a thread.
SPILLS = {(75, "dk_dv"): 512, (75, "dq"): 512}
A_FEW = 96  # elsewhere, seen up to 72: some values, mostly kept around the loops


class Case(NamedTuple):
    sm: int
    kernel: str
    dtype: str
    d_head: int
    causal: bool = True

    def __str__(self):
        return f"sm_{self.sm}-{self.kernel}-{self.dtype}-{self.d_head}"


ALL = [
    Case(sm, kernel, dtype, d_head)
    for sm in CHIPS
    for d_head in (64, 128, 256)
    for dtype in DTYPES
    for kernel in KERNELS
    if (sm, dtype) != (75, "bfloat16")  # which Turing does not know
    and (d_head, dtype) != (256, "bfloat16")  # as float16
]
USUAL = [
    *(Case(90, kernel, "float16", 128) for kernel in KERNELS),
    *(Case(80, kernel, "bfloat16", 64) for kernel in KERNELS),
    *(Case(75, kernel, "float16", 64) for kernel in KERNELS),
    *(Case(100, kernel, "bfloat16", 128) for kernel in KERNELS),
    Case(86, "dk_dv", "float16", 128),
    Case(90, "forward", "float32", 128),
    Case(90, "dk_dv", "float32", 64),
    Case(90, "forward", "bfloat16", 80, causal=False),
]


# --- In a process of its own, without the interpreter --------------------------------------------


def compiled(sm, kernel, dtype, d_head, causal=True):
    """Compile one kernel with the block sizes that the chip gets. Returns what it takes."""
    import torch
    import triton
    from triton.backends.compiler import GPUTarget
    from triton.compiler import ASTSource

    from helpers.flash_triton import config, kernels

    function = getattr(kernels, kernel + "_kernel")
    blocks = config.block_sizes(
        divmod(sm, 10), d_head, getattr(torch, dtype), backward=kernel != "forward"
    )
    owns_keys = kernel == "dk_dv"
    constants = {
        "CAUSAL": causal,
        "D": d_head,
        "BLOCK_D": config.tile_side(d_head),
        "BLOCK_Q": blocks.walk if owns_keys else blocks.own,
        "BLOCK_K": blocks.own if owns_keys else blocks.walk,
    }
    number = {"float16": "fp16", "bfloat16": "bf16", "float32": "fp32"}[dtype]
    signature, attributes = {}, {}
    for place, name in enumerate(function.arg_names):
        multiple_of_16 = [["tt.divisibility", 16]]
        if name in constants:
            signature[name] = "constexpr"
        elif name in kernels.SIZES:
            signature[name] = "i32"
        elif name == "scale":
            signature[name] = "fp32"
        elif name in ("lse", "delta"):
            signature[name] = "*fp32"
            attributes[(place,)] = multiple_of_16
        else:  # a tensor: its address and three strides, as torch's allocator gives them
            signature[name] = kernels.Heads(f"*{number}", "i32", "i32", "i32")
            attributes |= {(place, part): multiple_of_16 for part in range(4)}
    done = triton.compile(
        ASTSource(function, signature, constants, attributes),
        target=GPUTarget("cuda", sm, 32),
        options={"num_warps": blocks.num_warps, "num_stages": blocks.num_stages},
    )
    ptx = done.asm["ptx"]
    return {
        "blocks": list(blocks),
        "shared": done.metadata.shared,
        "limit": config.shared_memory(divmod(sm, 10)),
        "tensor_cores": re.findall(r"\b(?:wgmma\.mma_async|mma\.sync|tcgen05\.mma)\b", ptx)[:1],
        **resources(done.asm["cubin"]),
    }


def resources(cubin):
    """Registers a thread, and bytes that it spills, as the cuobjdump in Triton's wheel says."""
    import triton

    cuobjdump = Path(triton.__file__).parent / "backends" / "nvidia" / "bin" / "cuobjdump"
    with tempfile.NamedTemporaryFile(suffix=".cubin") as file:
        file.write(cubin)
        file.flush()
        command = [str(cuobjdump), "--dump-resource-usage", file.name]
        said = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    # What a thread keeps in slow memory. These kernels have no arrays: all of it is spills.
    registers, stack, local = re.search(r"REG:(\d+) STACK:(\d+).*? LOCAL:(\d+)", said).groups()
    return {"registers": int(registers), "spills": int(stack) + int(local)}


def main():
    """Compile the cases on stdin (JSON), or those of the chips named, a line of JSON each."""
    if sys.argv[1:] == ["-"]:
        for case in json.load(sys.stdin):
            print(json.dumps(compiled(*case)), flush=True)
        return
    row = "{:<5} {:<8} {:<9} {:>4}  {:<18} {:>7} {:>7} {:>9} {:>6}  {}"
    print(row.format("chip", "kernel", "dtype", "D", "blocks", "shared", "limit", "registers",
                     "spills", "tensor cores"))  # fmt: skip
    wanted = [int(name) for name in sys.argv[1:]] or CHIPS
    for case in (case for case in ALL if case.sm in wanted):
        had = compiled(*case)
        print(row.format(*case[:4], str(tuple(had["blocks"])), had["shared"], had["limit"],
                         had["registers"], had["spills"], *had["tensor_cores"] or ["-"]),
              flush=True)  # fmt: skip


# --- The tests -----------------------------------------------------------------------------------


@functools.cache
def outcome(case):
    """What `compiled` says of a case. The usual cases share a process, the others one a chip."""
    others = [other for other in ALL if other.sm == case.sm and other not in USUAL]
    together = USUAL if case in USUAL else others
    return dict(zip(together, in_another_process(tuple(together))))[case]


@functools.cache
def in_another_process(cases):
    pytest.importorskip("triton")
    environment = {**os.environ, "TRITON_INTERPRET": "0"}  # set, so that the package leaves it
    done = subprocess.run(
        [sys.executable, __file__, "-"],
        input=json.dumps(cases),
        env=environment,
        cwd=ROOT,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    return [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]


def check(case):
    had = outcome(case)
    assert had["shared"] <= had["limit"]
    assert had["registers"] <= 255
    if case.d_head <= 128:  # larger heads have to fit, no more
        assert had["spills"] <= SPILLS.get((case.sm, case.kernel), A_FEW)
    wanted = case.sm >= 80 and case.dtype != "float32"
    assert bool(had["tensor_cores"]) == wanted, had["tensor_cores"]
    if wanted:
        best = {9: "wgmma.mma_async", 10: "tcgen05.mma"}.get(case.sm // 10, "mma.sync")
        assert had["tensor_cores"] == [best]


@pytest.mark.parametrize("case", USUAL, ids=str)
def test_fits(case):
    check(case)


@pytest.mark.slow
@pytest.mark.parametrize("case", [case for case in ALL if case not in USUAL], ids=str)
def test_fits_too(case, request):
    if "slow" not in request.config.getoption("-m"):
        pytest.skip('takes minutes; asked for by -m slow, or -m "slow or not slow" for all tests')
    check(case)


def test_the_table_knows_the_limits():
    """Shared memory by capability, as the CUDA C++ Programming Guide has it."""
    from helpers.flash_triton import config

    kb = {sm: config.shared_memory(divmod(sm, 10)) // 1024 for sm in CHIPS}
    assert kb == {75: 64, 80: 163, 86: 99, 90: 227, 100: 227}


if __name__ == "__main__":
    main()
