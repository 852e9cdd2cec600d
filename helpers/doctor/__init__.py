"""What is wrong with this attention function? A doctor for NumPy and torch.

    from helpers.doctor import examine
    examine(my_attention)        # a Diagnosis: shows a sentence, the evidence and the fix
    examine(my_attention).sound  # True or False

On the command line: python -m helpers.doctor mymodule:my_attention

The function is tried on up to seventy inputs and compared with the right result and with every
mistake in `CATALOGUE`. What it cannot name, the doctor still rejects; what cannot be told apart it
names as a set.
"""

from __future__ import annotations

from collections.abc import Callable

from helpers.doctor.catalogue import CATALOGUE, Disease
from helpers.doctor.conventions import Conventions
from helpers.doctor.diagnosis import Diagnosis
from helpers.doctor.exam import run

__all__ = ["CATALOGUE", "Diagnosis", "Disease", "examine"]


def examine(
    fn: Callable,
    *,
    scale: float | str | Callable[[int], float] | None = None,
    causal: bool = False,
    causal_alignment: str = "upper_left",
    mask_true_means: str = "attend",
    layout: str = "BHTD",
    framework: str | None = None,
    dtype: str | None = None,
    device: str | None = None,
    d_k: int | None = None,
    d_v: int | None = None,
    empty_rows: str = "zeros",
    gradients: bool = True,
    seconds: float | None = None,
    _seed: int = 0,
) -> Diagnosis:
    """Find out what is wrong with an attention function, if anything is.

    fn : takes q (B, H, T_q, d_k), k (B, H, T_k, d_k), v (B, H, T_k, d_v) and returns
        (B, H, T_q, d_v), or a tuple with that in it. Arrays or tensors: NumPy is tried first.
        Masks, causality, grouped heads and a given scale are probed where it has a parameter
        attn_mask (mask, attention_mask, attn_bias), is_causal (causal), enable_gqa, scale
        (softmax_scale, sm_scale). `attn_mask` must take what torch's does: booleans, and floats
        to add; `mask` alone is tried with booleans only. What is right alone is also probed two
        at a time. A mask together with causality may be refused, as torch does; whoever answers
        must let both hold.
    scale : what the function multiplies scores by when it is not told: None for 1/√d_k, a number,
        a function of d_k, or "1/sqrt(d_k)", "1/d_k" (muP), "1" (T5).
    causal : True if it hides the future without being asked.
    causal_alignment : "upper_left" (torch's is_causal) or "lower_right" (flash-attention).
    mask_true_means : "attend" (scaled_dot_product_attention) or "masked" (nn.MultiheadAttention).
    layout : order of the axes: "BHTD", "BTHD", "HTD", "THD", "BTD" or "TD".
    framework : "numpy" or "torch"; None finds out. Gradients are compared for torch, so name it
        where a function takes both.
    dtype : of the inputs: "float64", "float32", "float16", "bfloat16". None takes float32, or half
        precision where the function takes nothing else; torch functions are then also tried
        with a few inputs of half precision. A result is held to the coarser of the dtypes that
        went in and came out.
    device : for torch, such as "cuda"; None is the CPU.
    d_k, d_v : sizes that the function is made for; None tries several.
    empty_rows : "zeros" wants zeros from a query that may see no key, as torch gives; "any" does
        not look.
    gradients : False leaves the gradients of torch functions alone. That of a float mask is
        compared too, unless the function refuses a mask that requires one.
    seconds : for one call; None is 2, or 60 on a device. All calls together get ten times that.

    Whatever `fn` does, a Diagnosis comes back; limits are those of `helpers.watchdog` (a loop in C
    code goes on in the background). What differs only beyond 1037 keys or 531 queries (300 of
    each under causality), 72 features, 3 sequences or 9 heads is not seen; nor what takes three
    arguments at once, nor a product Q Kᵀ that float16 cannot hold before it is scaled: the formula
    as it is written down has that limit.

    Raises TypeError if fn is no function or an argument is of the wrong kind, ValueError for a
    value that is not listed above or a device that torch has not; ImportError if torch is asked
    for and missing.
    Sources: Vaswani et al. 2017, arXiv:1706.03762, 3.2.1; for the tolerance, the tests of
    github.com/Dao-AILab/flash-attention.
    """
    if not callable(fn):
        raise TypeError(f"examine needs a function, but got an object of type {type(fn).__name__}.")
    conventions = Conventions(
        scale=scale,
        causal=causal,
        causal_alignment=causal_alignment,
        mask_true_means=mask_true_means,
        layout=layout,
        framework=framework,
        dtype=dtype,
        device=device,
        d_k=d_k,
        d_v=d_v,
        empty_rows=empty_rows,
        gradients=gradients,
        seconds=seconds,
        seed=_seed,
    )
    return run(fn, conventions)
