"""A drill's problem and its worked solution in words."""

from __future__ import annotations

import numpy as np

from helpers.practice.drill import Problem


def shown(x: float, places: int) -> str:
    """A number at so many decimals, without trailing zeros behind whole ones, with a true minus."""
    text = f"{x:.{places}f}"
    if "." in text:
        text = text.rstrip("0").rstrip(".")
    text = "0" if text in ("-0", "") else text
    return text.replace("-", "−")


def task(problem: Problem) -> str:
    """What is asked, in a sentence."""
    n = problem.row + 1
    return (
        f"What does query {n} take from each key? Work out row {n}: its scores q·k, the scores "
        f"divided by √d_k = √{problem.d_k}, the weights and the output, with {problem.places} "
        "decimals where they do not end sooner."
    )


def worked(problem: Problem) -> list[tuple[str, list[str]]]:
    """The solution with its arithmetic: (step, lines). ≈ stands where something was rounded."""
    right, places, n = problem.right, problem.places, problem.row + 1
    q = problem.q[problem.row]
    used = [c for c, x in enumerate(q) if x]
    scores = []
    for j, key in enumerate(problem.k):
        products = " + ".join(f"{_signed(q[c])}·{_signed(key[c])}" for c in used)
        scores.append(f"q{_low(n)} · k{_low(j + 1)} = {products} = {shown(right['scores'][j], 0)}")
    scores.append("(the other entries of the query are 0)")
    scaled = [
        f"{shown(s, 0)} ÷ √{problem.d_k} = {shown(s, 0)} ÷ {problem.root} {_equals(x, places + 1)}"
        for s, x in zip(right["scores"], right["scaled"], strict=True)
    ]
    exps = np.exp(right["scaled"])
    powers = [
        f"e^({shown(x, places + 1)}) {_equals(e, 3)}"
        for x, e in zip(right["scaled"], exps, strict=True)
    ]
    weights = [
        f"{', '.join(powers)}; their sum ≈ {shown(exps.sum(), 3)}",
        *(
            f"{shown(e, 3)} ÷ {shown(exps.sum(), 3)} ≈ {w:.{places}f}"
            for e, w in zip(exps, right["weights"], strict=True)
        ),
    ]
    output = []
    for c in range(problem.d_v):
        terms = " + ".join(
            f"{w:.{places}f}·{problem.v[j][c]}" for j, w in enumerate(right["weights"])
        )
        output.append(f"output {c + 1}: {terms} ≈ {right['output'][c]:.{places}f}")
    output.append("(worked out with unrounded weights; rounded ones may differ in the last digit)")
    return [("scores", scores), ("scaled", scaled), ("weights", weights), ("output", output)]


def _low(index: int) -> str:
    return str(index).translate(str.maketrans("0123456789", "₀₁₂₃₄₅₆₇₈₉"))


def _signed(x: int) -> str:
    return f"(−{-x})" if x < 0 else str(x)


def _equals(x: float, places: int) -> str:
    """ "= 0.5" or, where digits are left out, "≈ 0.667"."""
    sign = "=" if abs(x - round(x, places)) < 1e-9 else "≈"
    return f"{sign} {shown(x, places)}"
