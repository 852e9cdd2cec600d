"""Two arguments at once: what was refused, and names for what is wrong."""

from __future__ import annotations

from collections.abc import Sequence

from helpers.doctor import signs
from helpers.doctor.cases import Case
from helpers.doctor.catalogue import BESIDE, Disease
from helpers.doctor.catalogue.arguments import DROPPED, PAIRS
from helpers.doctor.finding import Finding, found
from helpers.doctor.naming import agreeing, explains
from helpers.doctor.patient import Seen


def refused(one: Seen) -> bool:
    """Whether an exception says no, and is no accident. A mask together with causality may be
    refused in any way, as torch does; else it takes a statement of the function's own code."""
    if one.case.asks_causal and one.case.mask is not None:
        return True
    fault = one.answer.fault
    return fault.name == "NotImplementedError" or fault.code.lstrip().startswith(
        ("raise ", "assert ")
    )


def findings(seen: Sequence[Seen]) -> list[Finding]:
    """One finding for all pairs that go wrong in the same way."""
    bad = signs.wrong(seen)
    stopped = [one for one in bad if one.answer.kind == "unfinished"]
    if stopped:
        return [found(signs.failed(stopped), stopped)]
    ways: dict[tuple, list[Seen]] = {}
    for one in bad:
        ways.setdefault(_names(one), []).append(one)
    good = [one for one in seen if one.right]
    return [
        Finding(
            diseases, (*mine, *good), candidates(mine[0].case),
            tuple(dict.fromkeys(map(_line, mine))),
        )
        for diseases, mine in ways.items()
    ]  # fmt: skip


def candidates(case: Case) -> tuple[Disease, ...]:
    """What may be wrong with two arguments, both right alone."""
    return (*PAIRS, *(d for argument in case.arguments for d in BESIDE.get(argument, ())))


def _names(one: Seen) -> tuple:
    if one.answer.kind == "raised":
        return found("raises").diseases
    if one.answer.kind != "array":
        return found("wrong-shape" if one.answer.kind == "shape" else "wrong-type").diseases
    return tuple(agreeing([one], candidates(one.case))) or found("wrong-together").diseases


def _line(one: Seen) -> str:
    dropped = _dropped(one)
    if dropped:
        return f"Of {one.case.label}, `{dropped}` has no effect."
    return f"Each alone is right, but not {one.case.label}."


def _dropped(one: Seen) -> str:
    """The argument without which the answer is what came back; its name stands in the label."""
    names = one.case.label.split("`")[1::2]
    for name, group in zip(names, one.case.arguments):
        if any(explains(reference, one) for reference in DROPPED.get(group, ())):
            return name
    return ""
