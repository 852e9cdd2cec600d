"""A drill's problem and its worked solution in words."""

from __future__ import annotations

import itertools
from decimal import ROUND_HALF_EVEN, Decimal
from fractions import Fraction

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
    """What is asked, in words."""
    n = problem.row + 1
    return (
        f"Work out row {n} with pencil and a calculator for eˣ: what does query {n} take from each "
        f"key? Give its scores q·k, the scores divided by √d_k = √{problem.d_k}, the weights and "
        f"the output, with {problem.places} decimals where they do not end sooner."
    )


def worked(problem: Problem) -> list[tuple[str, list[str]]]:
    """The solution with its arithmetic: (step, lines).

    What is printed is what is computed with: in every line, = stands between equal numbers, and ≈
    before what is on its left, rounded to the decimals shown.
    """
    lines = {
        "scores": _worked_scores(problem),
        "scaled": [
            f"{_exact(s)} ÷ √{problem.d_k} = {_exact(s)} ÷ {problem.root} "
            f"{_rounded(Fraction(s, problem.root), problem.places)}"
            for s in _scores(problem)
        ],
        **_worked_softmax(problem),
    }
    return list(lines.items())


def _scores(problem) -> list[int]:
    return [int(s) for s in problem.scores_of(problem.row)]


def _worked_scores(problem) -> list[str]:
    n, q = problem.row + 1, problem.q[problem.row]
    used = [c for c, x in enumerate(q) if x]
    lines = []
    for j, (key, score) in enumerate(zip(problem.k, _scores(problem), strict=True), start=1):
        products = " + ".join(f"{_signed(q[c])}·{_signed(key[c])}" for c in used)
        lines.append(f"q{_low(n)} · k{_low(j)} = {products} = {_exact(score)}")
    return [*lines, f"(the other entries of query {n} are 0)"]


def _worked_softmax(problem) -> dict[str, list[str]]:
    """The weights and the output."""
    places, n = problem.places, problem.row + 1
    exps, weights = _carried(problem)
    powers = [
        f"e^({_exponent(Fraction(s, problem.root))}) {_is_or_about(s == 0)} {_exact(e)}"
        for s, e in zip(_scores(problem), exps, strict=True)
    ]
    total = sum(exps)
    quotients = [
        f"{_exact(e)} ÷ {_exact(total)} {_is_or_about(total * w == e)} {_answer(w, places)}"
        for e, w in zip(exps, weights, strict=True)
    ]
    columns = list(zip(*problem.v))
    output = [
        f"output {c}: {_sum(weights, column)} = {_answer(_weighted(weights, column), places)}"
        for c, column in enumerate(columns, start=1)
    ]
    early = [_weighted([_to(w, places) for w in weights], column) for column in columns]
    if early != [_to(_weighted(weights, column), places) for column in columns]:
        others = ", ".join(f"output {c} = {_exact(x)}" for c, x in enumerate(early, start=1))
        output.append(f"(right too, with the weights rounded to {places} decimals: {others})")
    return {
        "weights": [
            ", ".join(powers),
            f"sum of row {n}: {' + '.join(map(_exact, exps))} = {_exact(total)}",
            *quotients,
        ],
        "output": output,
    }


def _carried(problem) -> tuple[list[Decimal], list[Decimal]]:
    """Exponentials and weights with as few decimals as give the right answers.

    Right: rounded to the decimals asked for, weights and outputs are those of the unrounded way.
    """
    places, right = problem.places, problem.right
    digits = itertools.product(range(3, 10), range(places + 1, 9))
    for for_exps, for_weights in sorted(digits, key=lambda pair: (sum(pair), pair[1])):
        exps = [
            Decimal(1) if x == 0 else _to(Decimal(float(np.exp(x))), for_exps)
            for x in right["scaled"]
        ]
        weights = [_to(e / sum(exps), for_weights) for e in exps]
        outputs = [_weighted(weights, column) for column in zip(*problem.v, strict=True)]
        pairs = [*zip(weights, right["weights"]), *zip(outputs, right["output"])]
        if all(_agree(mine, unrounded, places) for mine, unrounded in pairs):
            return exps, weights
    raise ValueError(f"problem {problem.seed} has a number on the edge between two roundings.")


def _agree(x: Decimal, right: float, places: int) -> bool:
    """Whether both round to the same, `x` without a last 5 that could go either way."""
    is_edge = 2 * abs(x - _to(x, places)) == Decimal(10) ** -places
    return not is_edge and _to(x, places) == _to(Decimal(float(right)), places)


def _to(x: Decimal, places: int) -> Decimal:
    return x.quantize(Decimal(10) ** -places, ROUND_HALF_EVEN)


def _weighted(weights, column) -> Decimal:
    return sum((w * x for w, x in zip(weights, column, strict=True)), Decimal(0))


def _sum(weights, column) -> str:
    return " + ".join(f"{_exact(w)}·{x}" for w, x in zip(weights, column, strict=True))


def _exact(x: int | Decimal) -> str:
    """All its digits, with a true minus."""
    return str(x).replace("-", "−")


def _is_or_about(is_exact: bool) -> str:
    return "=" if is_exact else "≈"


def _answer(x: Decimal, places: int) -> str:
    """ "3.146 ≈ 3.15", and for 3.150 "3.15"."""
    short = _to(x, places)
    return _exact(short) if short == x else f"{_exact(x)} ≈ {_exact(short)}"


def _rounded(x: Fraction, places: int) -> str:
    """ "= 0.5" or, where digits are left out, "≈ 0.67"."""
    text = shown(float(x), places)
    is_exact = Fraction(text.replace("−", "-")) == x
    return f"{_is_or_about(is_exact)} {text}"


def _exponent(x: Fraction) -> str:
    """A decimal that ends, or a fraction."""
    text = shown(float(x), 2)
    return text if Fraction(text.replace("−", "-")) == x else str(x).replace("-", "−")


def _low(index: int) -> str:
    return str(index).translate(str.maketrans("0123456789", "₀₁₂₃₄₅₆₇₈₉"))


def _signed(x: int) -> str:
    return f"(−{-x})" if x < 0 else str(x)
