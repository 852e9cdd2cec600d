"""The kinds of short computations: how each makes its numbers, its slips and its worked solution.

A generator takes a random.Random and returns a Draft. The answer is computed in floating point, by
`helpers.attention` or by counting; the worked solution from whole numbers and fractions. A test
holds the two against each other.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from random import Random

import numpy as np

from helpers.attention import (
    causal_mask,
    entropy,
    scaled_dot_product_attention,
    softmax,
    softmax_jacobian,
)
from helpers.flash import merge

GIB, MIB, KIB = 2**30, 2**20, 2**10


@dataclass(frozen=True)
class Slip:
    """A mistake: the numbers that come out, and a sentence that names it."""

    values: tuple[float, ...]
    sentence: str


@dataclass(frozen=True)
class Draft:
    """What a generator makes. worked : lines, the last one with the answer."""

    prompt: str
    answer: tuple[float, ...]
    slips: tuple[Slip, ...]
    worked: tuple[str, ...]


@dataclass(frozen=True)
class Kind:
    """A kind of problem; see `helpers.interview.by_hand.Problem` for the fields."""

    build: Callable[[Random], Draft]
    level: str
    minutes: int
    labels: tuple[str, ...]
    lesson: str
    section: str
    topic: str
    unit: str = ""
    tolerance: float = 0.01


GENERATORS: dict[str, Kind] = {}


def _kind(id: str, *, labels: str, **rest):
    """Register a generator. labels : separated by commas."""

    def register(build):
        GENERATORS[id] = Kind(build=build, labels=tuple(labels.split(", ")), **rest)
        return build

    return register


def _draft(prompt: str, answer, slips: dict, worked: list[str]) -> Draft:
    """slips : sentence → the number, or numbers, that come out."""
    return Draft(
        prompt,
        _floats(answer),
        tuple(Slip(_floats(values), sentence) for sentence, values in slips.items()),
        tuple(worked),
    )


def _floats(values) -> tuple[float, ...]:
    """As floats, without what rounding has left of a 0."""
    return tuple(round(float(value), 12) for value in np.atleast_1d(np.asarray(values, float)))


def shown(value) -> str:
    """A number as the worked solution writes it: whole, or with up to four digits that count."""
    value = float(value)
    if abs(value - round(value)) < 1e-9 * max(1, abs(value)):
        return f"{round(value):,}".replace("-", "−")
    digits = max(0, 3 - math.floor(math.log10(abs(value))))
    text = f"{value:,.{digits}f}".replace("-", "−")
    return text.rstrip("0").rstrip(".") if "." in text else text


def _at_most(value: float) -> str:
    """A limit in at most four digits, rounded down: what is shown must not exceed it."""
    unit = 10.0 ** (math.floor(math.log10(value)) - 3)
    return shown(math.floor(value / unit + 1e-9) * unit)


def _tex(fraction) -> str:
    r"""A whole number or a fraction, as TeX: 3, \frac{1}{4}, -\frac{1}{4}."""
    fraction = Fraction(fraction)
    if fraction.denominator == 1:
        return str(fraction.numerator)
    sign = "-" if fraction < 0 else ""
    return rf"{sign}\frac{{{abs(fraction.numerator)}}}{{{fraction.denominator}}}"


def _row(numbers) -> str:
    """(1, 2, -1), as TeX."""
    return f"({', '.join(_tex(number) for number in numbers)})"


def _rounded(numbers) -> str:
    """The same in decimals, for what is typed."""
    return "; ".join(shown(number) for number in numbers)


def _decimal(fraction) -> str:
    """What follows a fraction: ", which is 3.5"; nothing after a whole number."""
    return "" if Fraction(fraction).denominator == 1 else f", which is {shown(fraction)}"


def _results(fractions) -> str:
    r"""A row of them: $(\frac{1}{4}, \frac{3}{4})$, in decimals 0.25; 0.75."""
    whole = all(Fraction(fraction).denominator == 1 for fraction in fractions)
    decimals = "" if whole else f", in decimals {_rounded(fractions)}"
    return f"${_row(fractions)}${decimals}"


def _signed(number) -> str:
    """For use in a product or after a plus: parentheses around what is negative."""
    return f"({_tex(number)})" if number < 0 else _tex(number)


def _log(n: int) -> str:
    return "0" if n == 1 else rf"\ln {n}"


# --- One query, a few keys ---


@_kind(
    "scaled-score", level="screen", minutes=1, labels="scaled score",
    lesson="1", section="3. Scale: divide by √dₖ", topic="by_hand",
)  # fmt: skip
def _scaled_score(rng: Random) -> Draft:
    d_k = rng.choice((4, 9))
    used = rng.sample(range(d_k), 4)
    q, k = ([rng.choice((-3, -2, -1, 1, 2, 3)) if i in used else 0 for i in range(d_k)]
            for _ in range(2))  # fmt: skip
    root, products = math.isqrt(d_k), [a * b for a, b in zip(q, k)]
    score = int(np.dot(q, k))
    terms = " + ".join(_signed(a * b) for a, b in zip(q, k) if a)
    return _draft(
        f"$q = {_row(q)}$ and $k = {_row(k)}$, so $d_k = {d_k}$. What is the scaled score?",
        score / np.sqrt(d_k),
        {
            r"that is $q \cdot k$ itself: it still has to be divided by $\sqrt{d_k}$.": score,
            r"divided by $d_k$ instead of $\sqrt{d_k}$.": score / d_k,
            "a minus sign was lost: products of unlike signs are negative.": sum(map(abs, products))
            / root,
        },
        [
            rf"$q \cdot k = {terms} = {score}$",
            rf"divided by $\sqrt{{{d_k}}} = {root}$: ${_tex(Fraction(score, root))}$"
            f"{_decimal(Fraction(score, root))}",
        ],
    )


@_kind(
    "softmax-weights", level="screen", minutes=2, labels="weight 1, weight 2, weight 3",
    lesson="1", section="4. Softmax: turn a row of scores into shares", topic="by_hand",
)  # fmt: skip
def _softmax_weights(rng: Random) -> Draft:
    powers = [1, *rng.sample((2, 3, 4, 5, 6, 8), 2)]
    rng.shuffle(powers)
    logs, total = np.log(powers), sum(powers)
    shares = [Fraction(n, total) for n in powers]
    without = [0 if n == 1 else n / (total - 1) for n in powers]
    return _draft(
        f"The scaled scores of a row are $({', '.join(map(_log, powers))})$. What are its weights?",
        softmax(logs),
        {
            "these are the exponentials: they still have to be divided by their sum.": powers,
            r"the score 0 takes part as well: $e^0 = 1$.": without,
            "the scores were divided by their sum, and no exponential was taken.": logs
            / logs.sum(),
        },
        [
            f"The exponentials are {', '.join(map(str, powers))}, since $e^{{\\ln n}} = n$ and "
            "$e^0 = 1$.",
            f"Their sum is {total}.",
            f"The weights are {_results(shares)}.",
        ],
    )


_SHARES = (
    ("1/2", "1/4", "1/4"),
    ("1/2", "1/3", "1/6"),
    ("3/5", "1/5", "1/5"),
    ("1/2", "2/5", "1/10"),
    ("7/10", "1/5", "1/10"),
    ("3/4", "1/8", "1/8"),
)


def _shares(rng: Random) -> list[Fraction]:
    """Three weights that sum to 1."""
    shares = [Fraction(text) for text in rng.choice(_SHARES)]
    rng.shuffle(shares)
    return shares


@_kind(
    "output-row", level="screen", minutes=1, labels="output 1, output 2",
    lesson="1", section="5. Output: mix the values", topic="by_hand",
)  # fmt: skip
def _output_row(rng: Random) -> Draft:
    weights = _shares(rng)
    values = [[rng.randint(-4, 12) for _ in range(2)] for _ in range(3)]
    V = np.array(values)
    winner = V[int(np.argmax(weights))]
    exact = [sum(w * row[c] for w, row in zip(weights, values)) for c in range(2)]
    sums = [
        " + ".join(rf"{_tex(w)} \cdot {_signed(row[c])}" for w, row in zip(weights, values))
        for c in range(2)
    ]
    return _draft(
        f"A query gives its three keys the weights ${_row(weights)}$. Their values are "
        f"{', '.join(f'${_row(row)}$' for row in values)}. What is the output?",
        np.array(weights, dtype=float) @ V,
        {
            "that is the plain mean of the values: each has its own weight.": V.mean(axis=0),
            "that is the sum of the values: each has to be multiplied by its weight.": V.sum(
                axis=0
            ),
            "that is the value of the key with the largest weight: the others take part too.": (
                winner
            ),
        },
        [
            f"first entry: ${sums[0]} = {_tex(exact[0])}$",
            f"second entry: ${sums[1]} = {_tex(exact[1])}$",
            f"output: {_rounded(exact)}",
        ],
    )


@_kind(
    "whole-attention", level="onsite", minutes=3, labels="output",
    lesson="1", section="7. In five lines, and in PyTorch", topic="by_hand",
)  # fmt: skip
def _whole_attention(rng: Random) -> Draft:
    keys = rng.choice((2, 3))
    q = [math.log(4), 0.0, math.log(9), 0.0]
    k = [[rng.randint(0, 1), rng.randint(-3, 3), rng.randint(0, 1), rng.randint(-3, 3)]
         for _ in range(keys)]  # fmt: skip
    v = [rng.randint(-6, 18) for _ in range(keys)]
    exps = [2 ** row[0] * 3 ** row[2] for row in k]
    unscaled = [e**2 for e in exps]
    by_d_k = np.sqrt(exps)

    def mean(weights):
        return np.dot(weights, v) / np.sum(weights)

    exact = Fraction(sum(e * x for e, x in zip(exps, v)), sum(exps))
    top = " + ".join(rf"{e} \cdot {_signed(x)}" for e, x in zip(exps, v))
    return _draft(
        rf"One query, $q = (\ln 4, 0, \ln 9, 0)$, and {keys} keys: "
        f"{', '.join(f'${_row(row)}$' for row in k)}. Their values are single numbers: "
        f"{', '.join(f'${x}$' for x in v)}. What is the output of scaled dot-product attention?",
        scaled_dot_product_attention(
            np.array([q]), np.array(k, float), np.array(v, float)[:, None]
        )[0],
        {
            r"the scores were not divided by $\sqrt{d_k} = 2$.": mean(unscaled),
            r"the scores were divided by $d_k = 4$ instead of $\sqrt{d_k} = 2$.": mean(by_d_k),
            "that is the plain mean of the values: the scores differ.": np.mean(v),
            "that is the numerator: divide by the sum of the exponentials.": np.dot(exps, v),
        },
        [
            r"Divided by $\sqrt{4} = 2$ a key's score is its first entry times $\ln 2$ plus its "
            r"third times $\ln 3$.",
            f"The exponentials are {', '.join(map(str, exps))}, and their sum is {sum(exps)}.",
            rf"The output is $\frac{{{top}}}{{{sum(exps)}}} = {_tex(exact)}${_decimal(exact)}.",
        ],
    )


@_kind(
    "ratio-without-scale", level="screen", minutes=1, labels="ratio",
    lesson="3", section="2. Scale is a temperature", topic="softmax_and_gradient",
)  # fmt: skip
def _ratio_without_scale(rng: Random) -> Draft:
    ratio, root = rng.choice(
        ((2, 3), (2, 4), (2, 5), (2, 6), (2, 8), (2, 10), (3, 2), (3, 3), (3, 4), (4, 2), (4, 3),
         (5, 2), (5, 3), (10, 2), (10, 3), (10, 4))
    )  # fmt: skip
    d_k, times = root**2, "twice" if ratio == 2 else f"{ratio} times"
    weights = softmax(np.array([math.log(ratio) * np.sqrt(d_k), 0.0]))
    return _draft(
        rf"$d_k = {d_k}$. In a row of softmax$(QK^\top/\sqrt{{d_k}})$ the first weight is {times} "
        "the second. What is their ratio if the division is left out?",
        weights[0] / weights[1],
        {
            "the scores are multiplied, not the ratio: it is raised to a power.": ratio * root,
            "the ratio changes: a factor multiplies the difference of the two scores.": ratio,
            rf"the factor is $\sqrt{{d_k}} = {root}$, not $d_k$.": float(ratio) ** d_k,
        },
        [
            rf"The ratio is $e$ to the difference of the scores, which is $\ln {ratio}$ now.",
            rf"Without the division it is $\sqrt{{{d_k}}} = {root}$ times as large: "
            rf"${root} \ln {ratio}$.",
            f"$e^{{{root} \\ln {ratio}}} = {ratio}^{{{root}}}$, which is {shown(ratio**root)}",
        ],
    )


# --- Spread ---


@_kind(
    "score-variance", level="screen", minutes=1, labels="variance",
    lesson="2", section="2. The derivation, with its assumptions", topic="variance",
)  # fmt: skip
def _score_variance(rng: Random) -> Draft:
    std, d_k = Fraction(rng.choice(("2", "3", "1/2", "1/4"))), rng.choice((16, 32, 64, 128, 256))
    exact = std**4 * d_k
    return _draft(
        f"The {d_k} entries of q and the {d_k} entries of k are all independent, with mean 0 and "
        rf"standard deviation $\sigma = {_tex(std)}$. What is the variance of $q \cdot k$?",
        float(std) ** 2 * float(std) ** 2 * d_k,
        {
            r"that is $\sigma^2 d_k$: each product has two random factors, so $\sigma^4$.": std**2
            * d_k,
            r"that is the standard deviation, $\sigma^2\sqrt{d_k}$: the variance is asked for.": (
                float(std**2) * math.sqrt(d_k)
            ),
            r"that is $d_k$, which holds for $\sigma = 1$.": d_k,
        },
        [
            r"One product $q_i k_i$ has the variance $\sigma^2 \cdot \sigma^2 = \sigma^4 = "
            f"{_tex(std**4)}$.",
            f"There are {d_k} of them, independent: ${_tex(std**4)} \\cdot {d_k} = "
            f"{_tex(exact)}${_decimal(exact)}",
        ],
    )


@_kind(
    "three-divisors", level="screen", minutes=1,
    labels="without a scale, divided by √d_k, divided by d_k",
    lesson="2", section="4. Three divisors side by side", topic="divisors",
)  # fmt: skip
def _three_divisors(rng: Random) -> Draft:
    root, variance = rng.choice((4, 8, 10, 12, 16, 20, 32)), rng.choice((1, 1, 2, 3))
    d_k, std = root**2, root * variance
    entries = "variance 1" if variance == 1 else f"variance {variance}"
    variances = np.array([d_k * variance**2, variance**2, variance**2 / d_k])
    return _draft(
        f"$d_k = {d_k}$. The entries of q and k are independent, with mean 0 and {entries}. What "
        r"is the standard deviation of the scores: as they are, divided by $\sqrt{d_k}$, and "
        "divided by $d_k$?",
        np.sqrt(variances),
        {
            "those are variances: standard deviations are their roots.": variances,
            r"dividing by $d_k$ instead of $\sqrt{d_k}$ makes the last another $\sqrt{d_k}$ times "
            "smaller.": (std, variance, variance),
            r"the standard deviation of a sum of $d_k$ independent terms grows like $\sqrt{d_k}$, "
            "not like $d_k$.": (d_k * variance, root * variance, variance),
        },
        [
            f"The variance of a score is ${d_k} \\cdot {variance} \\cdot {variance}$, so its "
            f"standard deviation is $\\sqrt{{{d_k}}} \\cdot {variance} = {std}$.",
            f"Divided by {root} and by {d_k}: {shown(std)}; {shown(variance)}; "
            f"{shown(Fraction(variance, root))}",
        ],
    )


@_kind(
    "initial-score-std", level="onsite", minutes=2, labels="unscaled, divided by √d_head",
    lesson="2", section="6. Where does “variance 1” come from?", topic="initialisation",
)  # fmt: skip
def _initial_score_std(rng: Random) -> Draft:
    d_head = rng.choice((16, 64, 100, 256))
    d_model = rng.choice((500, 600, 1000, 1200, 2000, 2500, 4000, 5000))
    std = Fraction(rng.choice(("1/50", "1/100", "1/20")))
    root, entry = math.isqrt(d_head), d_model * std**2
    answer = np.sqrt(d_head * (d_model * float(std) ** 2) ** 2)
    return _draft(
        f"A fresh model: $d_{{model}} = {d_model}$, heads of {d_head}, $W_Q$ and $W_K$ with "
        f"independent entries of mean 0 and standard deviation {shown(std)}. The inputs have mean "
        "square 1 and are unrelated. What is the standard deviation of a score, unscaled and "
        r"divided by $\sqrt{d_{head}}$?",
        (answer, answer / np.sqrt(d_head)),
        {
            r"$\sigma_W$ comes in squared: once from $W_Q$, once from $W_K$.": (
                root * d_model * float(std),
                d_model * float(std),
            ),
            r"a score sums over the $d_{head}$ features of one head, not over $d_{model}$.": (
                math.sqrt(d_model) * float(entry),
                math.sqrt(d_model / d_head) * float(entry),
            ),
            r"that is without the factor $d_{model}$: each entry of q sums over $d_{model}$ "
            "inputs.": (root * float(std**2), float(std**2)),
            r"a sum of $d_{head}$ independent terms grows like the root of $d_{head}$.": (
                d_head * float(entry),
                root * float(entry),
            ),
        },
        [
            rf"An entry of q or k has the variance $d_{{model}} \sigma_W^2$, which is {d_model} · "
            f"{shown(std**2)} = {shown(entry)}.",
            rf"A score: $\sqrt{{d_{{head}}}} \cdot d_{{model}} \sigma_W^2$, which is {root} · "
            f"{shown(entry)} = {shown(root * entry)}.",
            f"Divided by {root}, so unscaled and scaled: {shown(root * entry)}; {shown(entry)}",
        ],
    )


@_kind(
    "entries-with-a-mean", level="expert", minutes=3, labels="over all scores, within a row",
    lesson="2", section="3. Break every assumption", topic="variance",
)  # fmt: skip
def _entries_with_a_mean(rng: Random) -> Draft:
    d_k, std, mean = rng.choice((16, 50, 64, 100)), rng.choice((1, 2)), rng.choice((1, 2, 3))
    pooled = d_k * ((std**2 + mean**2) ** 2 - mean**4)
    within = d_k * (std**2 + mean**2) * std**2
    return _draft(
        f"$d_k = {d_k}$; all entries of q and k are independent, with mean $\\mu = {mean}$ and "
        f"standard deviation $\\sigma = {std}$. What is the variance of $q \\cdot k$ over all "
        "queries and keys, and what is it within a row, over the keys of one query, on average?",
        (pooled, within),
        {
            r"that is $\sigma^4 d_k$, which holds for a mean of 0.": (std**4 * d_k,) * 2,
            r"within a row the query is fixed: one of the two terms $\sigma^2\mu^2 d_k$ comes from "
            "what all its keys share, and drops out.": (pooled, pooled),
            "the two are in each other's place.": (within, pooled),
            r"not all that the mean adds is a shift of the row: the query's mean also multiplies "
            r"what differs between keys, $\sigma^2\mu^2 d_k$.": (pooled, std**4 * d_k),
        },
        [
            r"One product has the variance $(\sigma^2 + \mu^2)^2 - \mu^4 = \sigma^4 + "
            rf"2\sigma^2\mu^2 = {std**4} + 2 \cdot {std**2 * mean**2} = {pooled // d_k}$.",
            r"With q fixed it is $q_i^2 \sigma^2$, on average $(\sigma^2 + \mu^2)\sigma^2 = "
            f"{within // d_k}$.",
            f"Times {d_k}: {shown(pooled)}; {shown(within)}",
        ],
    )


# --- Softmax and its gradient ---


@_kind(
    "softmax-jacobian", level="onsite", minutes=2, labels="∂p₁/∂z₁, ∂p₁/∂z₂",
    lesson="3", section="3. The Jacobian", topic="softmax_and_gradient",
)  # fmt: skip
def _softmax_jacobian(rng: Random) -> Draft:
    p = _shares(rng)
    jacobian = softmax_jacobian(np.array(p, dtype=float))
    own, other = p[0] * (1 - p[0]), -p[0] * p[1]
    return _draft(
        f"A softmax gives the weights $p = {_row(p)}$. How does the first weight move with its own "
        r"input, $\partial p_1 / \partial z_1$, and how with the second one, "
        r"$\partial p_1 / \partial z_2$?",
        (jacobian[0, 0], jacobian[0, 1]),
        {
            "the second is negative: what one weight gains the others lose.": (own, -other),
            r"the first is $p_1 - p_1^2$; the $p_1$ of the diagonal was left out.": (
                -(p[0] ** 2),
                other,
            ),
            r"that is the diagonal alone, $\mathrm{diag}(p)$: $p\,p^\top$ is taken off it.": (
                p[0],
                0,
            ),
        },
        [
            f"$p_1 (1 - p_1) = {_tex(p[0])} \\cdot {_tex(1 - p[0])} = {_tex(own)}$",
            f"$-p_1 p_2 = -{_tex(p[0])} \\cdot {_tex(p[1])} = {_tex(other)}$",
            f"In decimals {_rounded((own, other))}.",
        ],
    )


@_kind(
    "softmax-backward", level="onsite", minutes=3, labels="dz 1, dz 2, dz 3",
    lesson="3", section="3. The Jacobian", topic="softmax_and_gradient",
)  # fmt: skip
def _softmax_backward(rng: Random) -> Draft:
    p, g = _shares(rng), [rng.randint(-4, 8) for _ in range(3)]
    inner = sum(a * b for a, b in zip(p, g))
    exact = [a * (b - inner) for a, b in zip(p, g)]
    terms = " + ".join(rf"{_tex(a)} \cdot {_signed(b)}" for a, b in zip(p, g))
    plain = np.array(p, dtype=float)
    return _draft(
        f"A softmax gave the weights $p = {_row(p)}$. The gradient with respect to them is "
        f"$g = {_row(g)}$. What is the gradient with respect to the inputs of the softmax?",
        softmax_jacobian(plain) @ np.array(g, dtype=float),
        {
            r"that is $p_i g_i$: the weighted mean $\sum_j p_j g_j$ is taken off $g_i$ first.": (
                plain * g
            ),
            r"that is $g_i - \sum_j p_j g_j$: each entry is then multiplied by its weight.": (
                np.array(g) - float(inner)
            ),
            r"the mean of g was taken off without the weights.": plain * (g - np.mean(g)),
        },
        [
            rf"$\sum_j p_j g_j = {terms} = {_tex(inner)}$",
            f"$g_i$ minus that: ${_row([b - inner for b in g])}$",
            f"times $p_i$: {_results(exact)} (they sum to 0)",
        ],
    )


@_kind(
    "entropy", level="onsite", minutes=2, labels="entropy ÷ ln 2, share of the largest possible",
    lesson="3", section="2. Scale is a temperature", topic="softmax_and_gradient",
)  # fmt: skip
def _entropy(rng: Random) -> Draft:
    halvings = rng.choice(((1, 2, 3, 3), (1, 2, 2), (2, 2, 2, 2), (1, 3, 3, 3, 3), (2, 2, 2, 3, 3)))
    most = rng.randint(3, 12)
    keys, weights = 2**most, [Fraction(1, 2**n) for n in halvings]
    nats = entropy(np.array([*weights, *[0] * (keys - len(weights))], dtype=float))
    exact = sum(n * w for n, w in zip(halvings, weights))
    terms = " + ".join(rf"{_tex(w)} \cdot {n}" for n, w in zip(halvings, weights))
    natural = math.log(2)
    return _draft(
        f"A query has {keys:,} keys. {len(weights)} of them get the weights "
        f"${', '.join(map(_tex, weights))}$, the others 0. What is the entropy of the row, as a "
        rf"multiple of $\ln 2$, and what share is it of the largest that {keys:,} keys allow?",
        (nats / natural, nats / math.log(keys)),
        {
            r"that is in nats: divide by $\ln 2 \approx 0.69$.": (
                float(exact) * natural,
                exact / most,
            ),
            "the largest entropy is that of all keys with equal weights, not of the keys that have "
            "some.": (exact, float(exact) / math.log2(len(weights))),
            r"each term is $p \ln p$: the logarithm is weighted by p.": (
                sum(halvings),
                Fraction(sum(halvings), most),
            ),
        },
        [
            rf"$-p \ln p$ of $p = \frac{{1}}{{2^n}}$ is $p \cdot n \ln 2$: the sum is ${terms} = "
            rf"{_tex(exact)}$ times $\ln 2$.",
            rf"The largest is $\ln {keys} = {most} \ln 2$, with equal weights.",
            f"Entropy and share: {_rounded((exact, exact / most))}",
        ],
    )


# --- Online softmax, merging, backward ---


@_kind(
    "online-update", level="onsite", minutes=3, labels="new l, new o, output",
    lesson="5", section="2. Softmax without seeing all scores", topic="online_softmax",
)  # fmt: skip
def _online_update(rng: Random) -> Draft:
    old, new = rng.sample((1, 2, 3, 4, 6, 8, 12), 2)
    total, value = Fraction(rng.choice((3, 4, 5, 6, 7)), 2), rng.randint(2, 12)
    acc = rng.randint(2, 12)
    largest = max(old, new)
    shrink, power = Fraction(old, largest), Fraction(new, largest)
    l_new, o_new = total * shrink + power, acc * shrink + power * value
    exact = (l_new, o_new, o_new / l_new)
    # Computed another way: what the running numbers stand for, in exponentials of the scores.
    sum_all, acc_all = total * old + new, float(acc * old + new * value)
    answer = (sum_all / largest, acc_all / largest, acc_all / sum_all)
    slips = {}

    def slip(sentence, l_after, o_after):
        slips[sentence] = (l_after, o_after, o_after / l_after)

    if new > old:
        slip(r"l and o were not rescaled by $e^{m - m'}$.", total + 1, acc + value)
        slip(r"o was not rescaled by $e^{m - m'}$, only l.", l_new, acc + value)
        slip(
            r"rescaled the wrong way: the factor is $e^{m - m'}$, at most 1.",
            total / shrink + 1,
            acc / shrink + value,
        )
    else:
        slip(
            "the new score lies below the largest one, so its exponential is less than 1.",
            total + 1,
            acc + value,
        )
        slip(
            "m does not change, so nothing is rescaled: m is the largest score, not the newest.",
            total * Fraction(old, new) + 1,
            acc * Fraction(old, new) + value,
        )
        slip(
            r"the exponential refers to m: $e^{s - m}$, not $e^s$.", total + new, acc + new * value
        )
    return _draft(
        f"An online softmax has seen some keys: $m = {_log(old)}$, $l = {_tex(total)}$ and "
        f"$o = {acc}$ (values are single numbers). The next score is ${_log(new)}$, with the value "
        f"{value}. What are the new l and o, and what is the output if this was the last key?",
        answer,
        slips,
        [
            f"The new m is ${_log(largest)}$, so the factor $e^{{m - m'}}$ is ${_tex(shrink)}$ and "
            f"the new exponential $e^{{s - m'}}$ is ${_tex(power)}$.",
            rf"$l' = {_tex(total)} \cdot {_tex(shrink)} + {_tex(power)} = {_tex(l_new)}$",
            rf"$o' = {acc} \cdot {_tex(shrink)} + {_tex(power)} \cdot {value} = {_tex(o_new)}$",
            rf"output $o' / l' = {_tex(exact[2])}$; in decimals {_rounded(exact)}",
        ],
    )


@_kind(
    "merge-two-parts", level="onsite", minutes=2, labels="output, e to the merged lse",
    lesson="5", section="7. The same merge elsewhere", topic="split_and_ring",
)  # fmt: skip
def _merge_two_parts(rng: Random) -> Draft:
    a, b = rng.sample((1, 2, 3, 4, 5, 6, 8, 9), 2)
    one, other = rng.sample(range(0, 25), 2)
    exact = Fraction(a * one + b * other, a + b)
    out, lse = merge(np.array([float(one)]), np.log(a), np.array([float(other)]), np.log(b))
    logs = np.log([a, b])
    return _draft(
        "Two parts of the keys were attended to separately. Outputs (single numbers) and "
        f"log-sum-exps: ${one}$ with $\\mathrm{{lse}} = {_log(a)}$, and ${other}$ with "
        f"$\\mathrm{{lse}} = {_log(b)}$. What is the output over all keys, and what is $e$ to the "
        "power of its lse?",
        (out[0], np.exp(lse)),
        {
            "that is the plain mean: a part weighs $e$ to its lse.": ((one + other) / 2, a + b),
            "each part got the other's weight.": (
                (b * one + a * other) / (a + b),
                a + b,
            ),
            "that is the numerator: divide by the sum of both weights.": (
                a * one + b * other,
                a + b,
            ),
            "each part was weighted by its lse: the weight is the exponential of it.": (
                np.dot(logs, [one, other]) / logs.sum(),
                a + b,
            ),
            "the lse are logarithms of sums: sums add up, their logarithms do not.": (
                float(exact),
                a * b,
            ),
        },
        [
            f"The weights are $e$ to each lse: {a} and {b}, together {a + b}.",
            rf"output $\frac{{{a} \cdot {one} + {b} \cdot {other}}}{{{a + b}}} = {_tex(exact)}$; "
            rf"in "
            f"decimals {_rounded((exact, a + b))}",
        ],
    )


@_kind(
    "flash-backward", level="expert", minutes=3, labels="Δ, dS",
    lesson="5", section="5. Backward: one more number a row", topic="flash",
)  # fmt: skip
def _flash_backward(rng: Random) -> Draft:
    out, grad = ([rng.choice((-2, -1, 1, 2, 3)) for _ in range(3)] for _ in range(2))
    value = [rng.choice((-2, -1, 0, 1, 2, 3, 4)) for _ in range(3)]
    n, score = rng.choice((2, 3, 4, 5, 6, 8)), rng.choice((1, 2, 3))
    weight = Fraction(score, n * score)
    delta, d_weight = int(np.dot(grad, out)), int(np.dot(grad, value))
    exact = weight * (d_weight - delta)
    kept = math.exp(math.log(score) - math.log(n * score))
    return _draft(
        "The backward pass of FlashAttention, one query and one of its keys. Kept from the "
        f"forward pass: the output $O = {_row(out)}$ and $\\mathrm{{lse}} = {_log(n * score)}$. "
        f"The scaled score is ${_log(score)}$, the value $V = {_row(value)}$, the incoming "
        f"gradient $dO = {_row(grad)}$. "
        r"What is $\Delta = \sum_c dO_c\,O_c$, and what is the gradient $dS$ at this scaled score?",
        (delta, kept * (d_weight - delta)),
        {
            r"$\Delta$ was not taken off: $dS = P\,(dP - \Delta)$.": (delta, weight * d_weight),
            r"the weight P is missing: $dS = P\,(dP - \Delta)$.": (delta, d_weight - delta),
            r"P is $e^{s - \mathrm{lse}}$: the score's exponential has to be divided by the sum.": (
                delta,
                score * (d_weight - delta),
            ),
            r"the sign is reversed: $dS = P\,(dP - \Delta)$.": (delta, -exact),
        },
        [
            f"$P = e^{{s - \\mathrm{{lse}}}} = {_tex(weight)}$",
            f"$\\Delta = dO \\cdot O = {delta}$ and $dP = dO \\cdot V = {d_weight}$",
            rf"$dS = P\,(dP - \Delta) = {_tex(weight)} \cdot {_signed(d_weight - delta)} = "
            rf"{_tex(exact)}$; in decimals {_rounded((delta, exact))}",
        ],
    )


# --- Bytes and operations ---


@_kind(
    "kv-cache-bytes", level="onsite", minutes=2, labels="cache", unit="GiB (2³⁰ bytes)",
    lesson="1", section="One new query against a cache", topic="kv_cache",
)  # fmt: skip
def _kv_cache_bytes(rng: Random) -> Draft:
    layers, d_head = rng.choice((16, 24, 32, 40, 48, 64, 80)), rng.choice((64, 128))
    kv_heads, group = rng.choice((4, 8, 16)), rng.choice((4, 8))
    T = rng.choice((4, 8, 16, 32, 64, 128)) * KIB
    count = 2 * layers * kv_heads * d_head * T  # keys and values
    answer = count * 2 / GIB
    return _draft(
        f"A model has {layers} layers, {kv_heads * group} heads of queries and {kv_heads} of keys "
        f"and values, each of {d_head} features. How large is the KV cache of one sequence of "
        f"{T:,} tokens, with 2 bytes a number?",
        answer,
        {
            "keys and values are both kept: twice as much.": answer / 2,
            f"the cache has the {kv_heads} heads of keys and values, not the heads of queries.": (
                answer * group
            ),
            "that is one layer: every layer has a cache.": answer / layers,
            "4 bytes a number were counted.": answer * 2,
        },
        [
            f"One token in one layer: 2 (K and V) · {kv_heads} heads · {d_head} · 2 bytes = "
            f"{shown(4 * kv_heads * d_head)} bytes.",
            f"In {layers} layers: {shown(Fraction(4 * kv_heads * d_head * layers, KIB))} KiB a "
            f"token.",
            f"Times {T:,} tokens: {shown(Fraction(4 * kv_heads * d_head * layers * T, GIB))} GiB.",
        ],
    )


@_kind(
    "score-matrix-bytes", level="screen", minutes=1, labels="scores", unit="MiB (2²⁰ bytes)",
    lesson="5", section="1. The wall", topic="complexity",
)  # fmt: skip
def _score_matrix_bytes(rng: Random) -> Draft:
    heads, T = rng.choice((8, 12, 16, 32, 40)), rng.choice((1, 2, 4, 8, 16)) * KIB
    answer = np.empty((0, heads, T, T), np.float16).itemsize * heads * T**2 / MIB
    return _draft(
        f"Plain attention in float16: {heads} heads of 64, one sequence of {T:,} tokens. How much "
        "memory do the score matrices of one layer take?",
        answer,
        {
            "that is one head: each has a matrix of its own.": answer / heads,
            "4 bytes a number were counted; float16 has 2.": 2 * answer,
            "that is T · d for each head, the size of Q: scores are T · T.": answer * 64 / T,
            "that counts numbers: each has 2 bytes.": answer / 2,
        },
        [
            f"One head: {T // KIB}K · {T // KIB}K = {(T // KIB) ** 2:,} · 2²⁰ scores, with 2 bytes "
            f"{shown(2 * (T // KIB) ** 2)} MiB.",
            f"{heads} heads: {shown(2 * heads * (T // KIB) ** 2)} MiB.",
        ],
    )


@_kind(
    "flops-of-scores", level="onsite", minutes=2, labels="operations", unit="GFLOP (10⁹)",
    lesson="5", section="1. The wall", topic="complexity",
)  # fmt: skip
def _flops_of_scores(rng: Random) -> Draft:
    heads, d_k = rng.choice((10, 12, 16, 20, 32)), rng.choice((50, 64, 100, 128))
    thousands = rng.choice((1, 2, 3, 4, 5, 8))
    answer = 2.0 * heads * (thousands * 1000) ** 2 * d_k / 1e9
    exact = Fraction(2 * heads * thousands**2 * d_k, 1000)
    return _draft(
        f"{heads} heads with $d_k = {d_k}$, a sequence of {thousands},000 tokens, no mask. How "
        f"many "
        r"floating-point operations does $QK^\top$ take, a multiplication and an addition counted "
        r"as "
        "two?",
        answer,
        {
            "that counts a multiplication and an addition as one: twice as many.": answer / 2,
            "that is one head.": answer / heads,
            r"the product with V was counted as well: only $QK^\top$ is asked for.": answer * 2,
            "that is linear in T: every query meets every key, so $T^2$.": answer
            / (thousands * 1000),
        },
        [
            f"A score takes {d_k} multiplications and additions: 2 · {d_k} = {2 * d_k} operations.",
            f"There are {heads} · ({thousands},000)² = {heads * thousands**2} · 10⁶ scores.",
            f"{2 * d_k} · {heads * thousands**2} · 10⁶ = {shown(exact)} · 10⁹, so {shown(exact)} "
            f"GFLOP",
        ],
    )


@_kind(
    "bytes-moved", level="expert", minutes=3, labels="plain, tiled", unit="MiB (2²⁰ bytes)",
    lesson="5", section="3. Tiles, and the bytes that move", topic="flash",
)  # fmt: skip
def _bytes_moved(rng: Random) -> Draft:
    T, d = rng.choice((1, 2, 4, 8)) * KIB, rng.choice((64, 128))
    block = rng.choice((32, 64, 128, 256))
    passes, matrix, row = T // block, Fraction(2 * T * T, MIB), Fraction(2 * T * d, MIB)
    reads = {"Q": 1, "K": 1, "V": 1, "O": 1}
    plain = (sum(reads.values()) * T * d + 4 * T * T) * 2 / MIB
    tiled = sum(2 * (2 * block * d + 2 * T * d) for _ in range(passes)) / MIB
    return _draft(
        f"One head, T = {T:,}, d = {d}, 2 bytes a number, no mask. Count the bytes that move "
        "between main memory and the chip. Plain attention makes three passes: it computes the "
        "scores, turns them into weights, and multiplies these by V; scores and weights both go "
        f"through main memory. Tiled attention keeps {block} queries at a time on the chip, with "
        "their output, and reads all keys and values for them. (Leave out the lse.)",
        (plain, tiled),
        {
            "scores and weights are each written and then read: the T × T matrix moves four "
            "times.": (2 * matrix + 4 * row, tiled),
            "tiled attention reads all keys and values again for each block of queries.": (
                plain,
                4 * row,
            ),
            "those are numbers: each has 2 bytes.": (plain / 2, tiled / 2),
            "keys and values are both read again: that counts only one of them.": (
                plain,
                2 * row + passes * row,
            ),
        },
        [
            f"Q, K, V or O is {shown(row)} MiB, the matrix of scores {shown(matrix)} MiB.",
            f"Plain: 4 · {shown(matrix)} + 4 · {shown(row)} = {shown(4 * matrix + 4 * row)} MiB.",
            f"Tiled: Q and O once, K and V in each of {passes} passes: 2 · {shown(row)} + {passes} "
            f"· 2 · {shown(row)} = {shown(2 * row + 2 * passes * row)} MiB.",
            f"Plain {shown(4 * matrix + 4 * row)} MiB, "
            f"tiled {shown(2 * row + 2 * passes * row)} MiB.",
        ],
    )


@_kind(
    "ring-bytes", level="expert", minutes=2, labels="sent by each device", unit="MiB (2²⁰ bytes)",
    lesson="5", section="7. The same merge elsewhere", topic="split_and_ring",
)  # fmt: skip
def _ring_bytes(rng: Random) -> Draft:
    devices, heads = rng.choice((4, 8, 16)), rng.choice((8, 16, 32))
    T, d = rng.choice((8, 16, 32, 64, 128)) * KIB, rng.choice((64, 128))
    block = 2 * heads * (T // devices) * d * 2  # bytes of K and V on one device
    answer = sum(block for _ in range(devices - 1)) / MIB
    return _draft(
        f"Ring attention, forward: {devices} devices share a sequence of {T:,} tokens, {heads} "
        f"heads of {d}, 2 bytes a number. At each step a device passes on the block of K and V "
        f"that it holds. "
        "How much does each device send in one layer?",
        answer,
        {
            f"the last block need not be passed on: {devices - 1} steps, not {devices}.": (
                block * devices / MIB
            ),
            "K and V both travel.": answer / 2,
            "that is a single step.": block / MIB,
            "a block is only this device's share of the sequence.": answer * devices,
        },
        [
            f"A device holds {T // devices:,} tokens: 2 · {heads} · {T // devices:,} · {d} numbers "
            f"of 2 bytes, {shown(Fraction(block, MIB))} MiB.",
            f"It sends {devices - 1} blocks: {shown(Fraction(block * (devices - 1), MIB))} MiB.",
        ],
    )


@_kind(
    "float16-overflow", level="onsite", minutes=2, labels="divided afterwards, q divided first",
    lesson="3", section="5. Numbers that break", topic="numerics",
)  # fmt: skip
def _float16_overflow(rng: Random) -> Draft:
    root, entry = rng.choice((4, 8, 16)), rng.choice((1, 2, 4, 5, 8, 10, 16, 20))
    d_k, largest = root**2, float(np.finfo(np.float16).max)
    raw, scaled = largest / (d_k * entry), largest / (root * entry)
    return _draft(
        f"Scores are stored in float16, whose largest number is about 65,500. $d_k = {d_k}$, every "
        f"entry of k is {entry} and every entry of q is a. How large may a be before a score "
        f"becomes "
        r"inf, if $q \cdot k$ is stored and then divided by $\sqrt{d_k}$, and if q is divided by "
        r"$\sqrt{d_k}$ before the product?",
        (raw, scaled),
        {
            r"the order was exchanged: dividing q first leaves more room.": (scaled, raw),
            r"$q \cdot k$ is a sum of $d_k$ such products.": (
                largest / entry,
                root * largest / entry,
            ),
            r"dividing q first gives a factor $\sqrt{d_k}$ of room, not $d_k$.": (
                raw,
                largest / entry,
            ),
            r"the order matters: dividing what has become inf does not bring it back.": (
                scaled,
                scaled,
            ),
        },
        [
            f"$q \\cdot k = {d_k} \\cdot {entry} \\cdot a = {d_k * entry} a$: at most about "
            f"65,500, so a ≤ {_at_most(raw)}.",
            f"With q divided by {root} first it is ${root * entry} a$, so a ≤ {_at_most(scaled)}.",
            f"So up to {_at_most(raw)} as it is, up to {_at_most(scaled)} with q divided first.",
        ],
    )


# --- Who sees whom ---


def _tiles(T: int, block_q: int, block_k: int) -> tuple[int, int]:
    """(tiles in which somebody sees something, those of them in which somebody does not)."""
    touched = masked = 0
    for first_query in range(0, T, block_q):
        for first_key in range(0, first_query + block_q, block_k):
            touched += 1
            masked += first_key + block_k - 1 > first_query  # its first query, its last key
    return touched, masked


@_kind(
    "visible-keys", level="screen", minutes=1, labels="upper left, lower right", tolerance=0,
    lesson="1", section="One new query against a cache", topic="shapes_and_masks",
)  # fmt: skip
def _visible_keys(rng: Random) -> Draft:
    T_q = rng.randint(2, 8)
    T_k = T_q + rng.randint(2, 12)
    i = rng.randrange(T_q - 1)
    upper, lower = (int(causal_mask(T_q, T_k, corner)[i].sum())
                    for corner in ("upper_left", "lower_right"))  # fmt: skip
    return _draft(
        f"{T_q} new queries meet a cache of {T_k} keys, their own among them, under a causal mask. "
        f"How many keys does query {i} (counted from 0) see, if the mask is aligned to the upper "
        "left, as PyTorch's `is_causal` does it, and if it is aligned to the lower right?",
        (upper, lower),
        {
            "the two corners are in each other's place.": (lower, upper),
            "counted from 0, query i sees its own key too: i + 1 of them.": (upper - 1, lower - 1),
            "the corners differ where there are more keys than queries: at the lower right the "
            "last query sees all keys.": (upper, upper),
            "a causal mask hides something from all but the last query.": (T_k, T_k),
        },
        [
            f"Upper left: {f'keys 0 to {i}' if i else 'key 0 alone'}, that is {upper}.",
            f"Lower right: the last query sees all {T_k}; query {i} is {T_q - 1 - i} before it, "
            f"and sees {lower}.",
            f"{upper} against {lower}.",
        ],
    )


@_kind(
    "causal-tiles", level="onsite", minutes=2, labels="computed, with a mask", tolerance=0,
    lesson="5", section="3. Tiles, and the bytes that move", topic="flash",
)  # fmt: skip
def _causal_tiles(rng: Random) -> Draft:
    block, n = rng.choice((32, 64, 128)), rng.choice((4, 5, 6, 8, 10, 12, 16, 20))
    T = n * block
    touched, masked = _tiles(T, block, block)
    return _draft(
        f"Causal attention over T = {T:,} in tiles of {block} queries by {block} keys. How many "
        f"tiles "
        "must be computed, and in how many of these must a mask be applied?",
        (touched, masked),
        {
            "that is all tiles: those above the diagonal are skipped.": (n * n, masked),
            "the tiles on the diagonal have to be computed too.": (n * (n - 1) // 2, masked),
            "below the diagonal every query of a tile sees every key: no mask is needed there.": (
                touched,
                touched,
            ),
            "half of all tiles is not quite it: the diagonal is computed whole.": (
                n * n // 2,
                masked,
            ),
        },
        [
            f"{T:,} / {block} = {n} blocks of queries, and as many of keys.",
            f"The first block of queries meets 1 tile, the last {n}: ${n} \\cdot {n + 1} / 2 = "
            f"{touched}$.",
            f"Only the {n} tiles on the diagonal hold a later key: {touched}; {n}",
        ],
    )


@_kind(
    "unequal-tiles", level="expert", minutes=3, labels="computed, with a mask", tolerance=0,
    lesson="5", section="3. Tiles, and the bytes that move", topic="flash",
)  # fmt: skip
def _unequal_tiles(rng: Random) -> Draft:
    block_k, times, n = rng.choice((16, 32, 64)), rng.choice((2, 4)), rng.choice((3, 4, 5, 6, 8))
    block_q, T = times * block_k, n * times * block_k
    touched, masked = _tiles(T, block_q, block_k)
    return _draft(
        f"Causal attention over T = {T:,} in tiles of {block_q} queries by {block_k} keys. How "
        f"many "
        "tiles must be computed, and in how many of these must a mask be applied?",
        (touched, masked),
        {
            "that is all tiles: those above the diagonal are skipped.": (times * n * n, masked),
            f"the diagonal crosses {times} tiles in each row of tiles.": (touched, n),
            f"those are square tiles of {block_q}: here a row has {times} times as many.": (
                n * (n + 1) // 2,
                n,
            ),
            f"those are square tiles of {block_k}: a block of {block_q} queries needs all the keys "
            "that its last query sees.": (times * n * (times * n + 1) // 2, times * n),
            "the tiles that the diagonal crosses have to be computed too.": (
                times * n * (n - 1) // 2,
                masked,
            ),
        },
        [
            f"{n} blocks of queries; number i sees keys up to {block_q} · i, which are {times} · i "
            "blocks of keys.",
            f"${times} \\cdot (1 + \\ldots + {n}) = {times} \\cdot {n * (n + 1) // 2} = {touched}$",
            f"In each row the last {times} cross the diagonal: {times} · {n} = {times * n}.",
            f"{touched} to compute, {times * n} of them with a mask.",
        ],
    )
