"""What a function does besides computing, and functions that do not get that far."""

from __future__ import annotations

from helpers.doctor.catalogue.base import SDPA, Disease, github

CONDUCT = (
    Disease(
        "changes-its-input",
        "The function changes its inputs in place, so its caller's arrays are spoiled.",
        "The inputs hold other numbers after the call than before it.",
        "Work on new arrays: `x = x * scale` makes one, `x *= scale` does not.",
        github("flashinfer-ai/flashinfer", 2084, "pull"),
    ),
    Disease(
        "dropout-active",
        "Dropout is active: weights are set to 0 at random, the others enlarged.",
        "Weights shown by values of 1 are exactly 0, or the right ones times one factor above 1.",
        "Pass dropout_p=0.0 outside training; scaled_dot_product_attention does not look at "
        "model.eval() by itself.",
        github("pytorch/pytorch", 124464),
    ),
    Disease(
        "not-deterministic",
        "The same inputs give different results, from one call to the next.",
        "Two calls in a row differ by more than rounding explains.",
        "Look for random numbers, uninitialised memory (empty in place of zeros), or a race "
        "between threads.",
        github("ROCm/triton", 953),
    ),
    Disease(
        "depends-on-earlier-calls",
        "The result depends on earlier calls: something is kept that should not be.",
        "A call in a row repeats itself, but the same or other inputs later give what an earlier "
        "call left behind.",
        "Look for a cache by shape, keys that are appended, or a global that is changed.",
        github("NVIDIA/TransformerEngine", 2448),
    ),
    Disease(
        "reuses-its-output",
        "Every call writes into the same memory, so a later call overwrites an earlier result.",
        "A result is right at first and holds other numbers after the next call.",
        "Make a new array for each result.",
        github("mlc-ai/relax", 89, "pull"),
    ),
    Disease(
        "needs-contiguous",
        "Inputs that are views, not contiguous in memory, give a wrong result or an error.",
        "The same numbers in contiguous memory give the right result.",
        "Honour the strides, or begin with .contiguous() (np.ascontiguousarray).",
        github("pytorch/pytorch", 181133),
    ),
    Disease(
        "needs-equal-lengths",
        "Right only where there are as many queries as keys.",
        "Exactly the inputs with T_q ≠ T_k go wrong.",
        "Take T_q from the queries and T_k from the keys: scores are (T_q, T_k).",
        github("thu-ml/SageAttention", 26),
    ),
    Disease(
        "needs-equal-widths",
        "Right only where values have as many features as queries and keys.",
        "Exactly the inputs with d_v ≠ d_k go wrong.",
        "Take d_v from the values: the output is (T_q, d_v). If both are fixed on purpose, say so: "
        "d_k=…, d_v=….",
        github("XunhaoLai/native-sparse-attention-triton", 27),
    ),
    Disease(
        "needs-one-head",
        "Right only for one head of one sequence.",
        "Exactly the inputs with several heads or sequences go wrong.",
        "Let everything but the last two axes pass through: index and reduce by axis=-1 and -2.",
        github("BobMcDear/attorch", 14),
    ),
    Disease(
        "needs-two-axes",
        "Right only for one head of one sequence, (T, d); it fails on (B, H, T, D).",
        "Every input with more than two axes goes wrong.",
        "Exchange the last two axes only: k.swapaxes(-1, -2) or k.mT, where k.T reverses all axes. "
        'If it is meant so, say it: layout="TD".',
        SDPA,
    ),
    Disease(
        "wrong-arguments",
        "The function does not take queries, keys and values.",
        "Its signature says so; it was not called.",
        "Give it three arguments, q, k and v; all others need a default, or one of the names of "
        "scaled_dot_product_attention.",
        SDPA,
    ),
    Disease(
        "raises",
        "The function stops with an error.",
        "It raises on inputs that are fit for attention.",
        "Read the error. If the function is made for certain sizes or dtypes, say which: d_k=64, "
        'd_v=64, dtype="float16"; if for another order of axes: layout="BTHD".',
        SDPA,
    ),
    Disease(
        "did-not-finish",
        "The function did not finish in time and was stopped.",
        "It was called on an input of a few numbers.",
        "Look for a loop that never ends. If it is only slow, give it more: seconds=….",
        SDPA,
    ),
    Disease(
        "too-slow",
        "Each call ends, but all of them together take too long for an examination.",
        "The time for all calls ran out.",
        "Give it more time: seconds=….",
        SDPA,
    ),
    Disease(
        "exits",
        "The function tries to end the program.",
        "It raises SystemExit or KeyboardInterrupt.",
        "Return a result, or raise an ordinary exception.",
        SDPA,
    ),
    Disease(
        "asks-for-input",
        "The function calls input(), and nobody is there to type.",
        "It raised where input() had nobody to ask.",
        "Take everything from the arguments.",
        SDPA,
    ),
    Disease(
        "returns-nothing",
        "The function returns None.",
        "No call brought anything back.",
        "End it with `return output`.",
        SDPA,
    ),
    Disease(
        "wrong-type",
        "The function returns something that is no array of numbers.",
        "What came back cannot be read as numbers.",
        "Return an array, or a tuple whose first element of the output's shape is the output.",
        SDPA,
    ),
    Disease(
        "wrong-shape",
        "The result has the wrong shape.",
        "No exchange of axes makes it right.",
        "The output has the axes of the queries, with the features of the values: (…, T_q, d_v).",
        SDPA,
    ),
    Disease(
        "not-finite",
        "Ordinary inputs give nan or inf.",
        "Scores and values are within ±5, and still the result is not finite.",
        "Look for a division by 0, uninitialised memory, or a logarithm of 0.",
        SDPA,
    ),
    Disease(
        "unknown",
        "The result is wrong, in a way that the catalogue has no name for.",
        "It agrees with no known mistake.",
        "Work that input by hand, one step at a time (helpers.attention.attention_steps), and "
        "compare.",
        SDPA,
    ),
)
