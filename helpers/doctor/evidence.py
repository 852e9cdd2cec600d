"""The evidence in lines: what went wrong how often, the errors, the input that shows it."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from helpers.doctor.catalogue import Disease
from helpers.doctor.conventions import arrange
from helpers.doctor.naming import errors_against, tolerance
from helpers.doctor.patient import Patient, Seen
from helpers.doctor.signs import effective_scale

_NEIGHBOURS = 3  # candidates shown beside the named ones
RIGHT = "right"


def plainest_wrong(seen: Sequence[Seen]) -> Seen:
    """The wrong input that shows best: with numbers to compare if there is one, and with few axes
    of length 1, where candidates look alike."""
    wrong = [one for one in seen if not one.right]
    comparable = [one for one in wrong if one.answer.kind == "array"]
    return min(comparable or wrong, key=lambda one: one.plainness)


def counted(seen: Sequence[Seen]) -> str:
    """How often it goes wrong, and how."""
    wrong = [one for one in seen if not one.right]
    how_often = "every input" if len(wrong) == len(seen) else f"{len(wrong)} of {len(seen)} inputs"
    if len(seen) == 1:
        how_often = "the one input of this kind"
    raised = [one for one in wrong if one.answer.kind == "raised"]
    if len(raised) == len(wrong):
        return f"It fails on {how_often} with {raised[0].answer.fault}."
    line = f"Wrong on {how_often}."
    if raised:
        line += f" On {len(raised)} of them it fails with {raised[0].answer.fault}."
    return line


def shown(one: Seen, patient: Patient) -> str:
    """The input in words."""
    parts = [f"{name} {np.shape(x)}" for name, x in _arrays(one, patient).items()]
    case = one.case
    said = ["causal"] if case.causal is not None and "causal" not in case.label else []
    said += ["a boolean mask"] if case.mask is not None and case.mask.dtype == bool else []
    said += ["a float mask"] if case.mask is not None and case.mask.dtype != bool else []
    said += ["grouped heads"] if case.asks_gqa else []
    more = f", {', '.join(said)}" if said else ""
    dtype = one.answer.handed
    return f"{case.label}: {', '.join(parts)}{more}; {patient.hands.name}, {dtype}"


def _arrays(one: Seen, patient: Patient) -> dict[str, np.ndarray]:
    layout = patient.conventions.layout
    case = one.case
    return {name: arrange(x, layout) for name, x in (("q", case.q), ("k", case.k), ("v", case.v))}


def inputs(one: Seen, patient: Patient) -> dict[str, object]:
    """The input as NumPy arrays, with the function's other arguments by name."""
    dtype = np.float64 if patient.hands.precision == "float64" else np.float32
    given = {name: x.astype(dtype) for name, x in _arrays(one, patient).items()}
    _, others = patient.arguments(one.case)
    for name, value in others.items():
        tensor = hasattr(value, "detach")
        given[name] = value.detach().cpu().float().numpy() if tensor else value
    if one.case.mask is not None and one.case.mask.dtype == bool:
        given[patient.manner.mask] = np.asarray(given[patient.manner.mask]).astype(bool)
    return given


def failing(one: Seen) -> str:
    """What came back in place of numbers to compare; "" if they can be compared."""
    answer = one.answer
    if answer.kind == "shape":
        return f"The result has the shape {answer.shape}."
    if answer.kind == "other":
        return f"It returned {answer.words}."
    if answer.ended == "left behind":
        return "It could not be stopped, and may go on in the background."
    return ""


def compared(
    one: Seen, named: Sequence[Disease], candidates: Sequence[Disease]
) -> tuple[list[str], dict[str, float]]:
    """(lines, errors): the largest error against the right result and against each candidate."""
    if one.answer.kind != "array":
        return [], {}
    errors = {RIGHT: one.error, **errors_against(one, candidates)}
    names = [disease.id for disease in named if disease.id in errors]
    # Mistakes that make no difference here are as far away as the right result: they say nothing.
    telling = {
        id: error
        for id, error in errors.items()
        if np.isfinite(error) and abs(error - one.error) > 0.001 * one.error
    }
    near = sorted((error, id) for id, error in telling.items() if id not in names)
    listed = [RIGHT, *names, *(id for _, id in near[:_NEIGHBOURS])]
    width = max(18, *map(len, listed)) + 2
    lines = ["Largest error on it, against"]
    for id in listed:
        name = "the right result" if id == RIGHT else id
        shown = number(errors[id])
        if id != RIGHT and errors[id] <= tolerance(one, one.truth.output):
            shown = "agrees" if id in names else "agrees here, but not elsewhere"
        lines.append(f"  {name:{width}} {shown}")
    return lines, errors


def number(error: float) -> str:
    """Two digits, so that it is the same on every machine; nan and inf in words."""
    return "nan or inf" if not np.isfinite(error) else f"{error:.2g}"


def scales(seen: Sequence[Seen]) -> list[str]:
    """The effective scale, where weights show it."""
    lines = []
    for one in seen:
        found = effective_scale(one)
        if found is not None:
            d_k = one.case.q.shape[-1]
            right = f"{one.case.scale:.3g} is right"
            lines.append(f"Effective scale for d_k = {d_k}: {found:.3g}, where {right}.")
    return lines


def difference(one: Seen) -> np.ndarray | None:
    """|output − right| in the head where it is largest, (T_q, d_v); nan where the output is."""
    if one.answer.kind != "array":
        return None
    with np.errstate(all="ignore"):
        off = np.abs(one.answer.array - one.truth.output)
    off[~one.truth.judged] = 0
    size = np.where(np.isfinite(off), off, np.inf).max(axis=(-2, -1))
    head = np.unravel_index(np.argmax(size), size.shape)
    return off[head]
