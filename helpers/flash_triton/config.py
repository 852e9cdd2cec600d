"""Block sizes, as large as a GPU's shared memory and registers allow.

The kernels are right with any sizes; these decide how fast they are, and whether they start at all.
A tile that is walked over lies in shared memory, once for each stage of the pipeline that loads the
next ones while this one is in use; what is summed up lies in registers, at most 255 a thread.

`tests/test_flash_triton_compiled.py` compiles the kernels with these sizes for each kind of chip,
which needs no GPU, and checks what they take.
"""

from __future__ import annotations

from typing import NamedTuple

import torch

KB = 1024
LARGEST_HEAD = 256

# Compute capability -> shared memory that one program may have (CUDA C++ Programming Guide,
# "Technical Specifications per Compute Capability").
SHARED_MEMORY = {
    (7, 5): 64 * KB,  # T4
    (8, 0): 163 * KB,  # A100
    (8, 6): 99 * KB,  # RTX 30, A10
    (8, 7): 163 * KB,  # Jetson Orin
    (8, 9): 99 * KB,  # RTX 40, L4
    (9, 0): 227 * KB,  # H100, H200
    (10, 0): 227 * KB,  # B200
    (10, 3): 227 * KB,  # B300
    (12, 0): 99 * KB,  # RTX 50
    (12, 1): 99 * KB,  # DGX Spark
}


class Blocks(NamedTuple):
    """How a kernel divides its work.

    own         rows that a program owns: queries, but keys in the kernel of dK and dV
    walk        rows of the other side that it takes at a time
    num_warps   groups of 32 threads that share a program
    num_stages  how many of the walked-over tiles are on their way at a time
    """

    own: int
    walk: int
    num_warps: int
    num_stages: int


INTERPRETER = Blocks(128, 128, 1, 1)  # each step costs the same, large or small: take few


def tile_side(d_head):
    """The columns of a tile: a power of two, and at least 16, which tl.dot needs."""
    return max(16, 1 << (d_head - 1).bit_length())


def shared_memory(capability):
    """Bytes that one program may have. A chip that is not listed gets what all since 8.0 have."""
    return SHARED_MEMORY.get(tuple(capability), 99 * KB)


def block_sizes(capability, d_head, dtype, backward=False):
    """Blocks(own, walk, num_warps, num_stages) for a chip and a head size.

    capability  (major, minor), as torch.cuda.get_device_capability() gives it
    d_head      1 to 256
    dtype       torch.float16, torch.bfloat16 or torch.float32
    backward    False: the forward kernel; True: those of the gradients

    Raises ValueError for a chip older than 7.5 and for other head sizes, and TypeError for bfloat16
    on a chip older than 8.0, which has no instructions for it.
    """
    if not 1 <= d_head <= LARGEST_HEAD:
        raise ValueError(
            f"The head size is {d_head}, but the kernels take 1 to {LARGEST_HEAD}: more does not "
            "fit into a GPU's shared memory. Use more and smaller heads."
        )
    if tuple(capability) < (7, 5):
        raise ValueError(
            f"The GPU has compute capability {capability[0]}.{capability[1]}, and Triton needs 7.5 "
            "or newer. Use F.scaled_dot_product_attention."
        )
    if dtype == torch.bfloat16 and tuple(capability) < (8, 0):
        raise TypeError(
            "The inputs are bfloat16, which GPUs know from compute capability 8.0 on; this one has "
            f"{capability[0]}.{capability[1]}. Convert them with .to(torch.float16)."
        )
    side, shared = tile_side(d_head), shared_memory(capability)
    if dtype == torch.float32 or tuple(capability) < (8, 0):
        return without_tensor_cores(side, shared)
    return with_tensor_cores(capability[0], side, shared, backward)


def without_tensor_cores(side, shared):
    """float32, whose exact products tensor cores cannot do; and Turing, for which Triton does not
    use them. Each thread then holds whole rows of both factors: small tiles, many threads."""
    if side <= 64:
        return Blocks(32, 32, 8, 1)
    if side <= 128:
        return Blocks(32, 16, 8, 1)
    return Blocks(16 if shared > 64 * KB else 8, 16, 4, 1)


def with_tensor_cores(major, side, shared, backward):
    """float16 and bfloat16 since Ampere (8). Hopper (9) multiplies straight from shared memory, and
    has registers left for larger tiles."""
    hopper, small = major == 9, shared <= 99 * KB
    if not backward:
        if side <= 64:
            return Blocks(128, 64, 4, 3 if hopper else 2)
        if side <= 128:
            return Blocks(128, 128, 8, 2) if hopper else Blocks(128, 64, 8, 2)
        return Blocks(64, 32, 4, 2) if small else Blocks(128, 64, 8, 2)
    if side <= 64:
        return Blocks(128, 64 if hopper else 32, 8, 2)
    if side <= 128:
        return Blocks(128 if hopper else 64, 32 if major in (9, 10) else 64, 8, 2)
    return Blocks(32, 32, 4, 1) if small else Blocks(64, 32, 8, 1)
