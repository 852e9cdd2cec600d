"""Gradients of a torch function, compared with the analytic ones."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from helpers.doctor.cases import Case
from helpers.doctor.catalogue import CATALOGUE, GRADIENTS, Disease
from helpers.doctor.finding import Finding
from helpers.doctor.patient import Patient
from helpers.doctor.precision import coarser, is_half, rounded
from helpers.doctor.reference import Truth

_CLOSE, _CLOSE_HALF = 5e-3, 1e-1
_NAMES = ("dq", "dk", "dv", "d mask")


@dataclass(frozen=True, eq=False)
class Gradients:
    """What came back for one case. found : (dq, dk, dv), and that of a float mask where it is asked
    for; None for one that is missing."""

    truth: Truth
    manner: str
    kind: str  # "arrays", "missing", "raised", "unfinished"
    found: tuple[np.ndarray | None, ...] = ()
    fault: object = None
    precision: str = "float32"

    @property
    def exact(self):
        return self.truth.gradients

    @property
    def errors(self) -> tuple[float, ...]:
        return tuple(_error(g, e) for g, e in zip(self.found, self.exact, strict=True))

    @property
    def right(self) -> bool:
        if self.kind != "arrays":
            return False
        bounds = self.truth.gradient_bounds(self.precision)
        return all(error <= bound for error, bound in zip(self.errors, bounds, strict=True))


def _error(found: np.ndarray | None, exact: np.ndarray) -> float:
    """Largest error; a missing gradient counts as zeros."""
    found = np.zeros_like(exact) if found is None else found
    if found.shape != exact.shape:
        return np.inf
    with np.errstate(all="ignore"):
        largest = float(np.abs(found - exact).max(initial=0))
    return np.inf if np.isnan(largest) else largest


def wrong_gradient(patient: Patient, cases: Sequence[Case]) -> Finding | None:
    """Compare on all cases, with a contiguous gradient at the output and two that are views.

    Whether a float mask may require a gradient is for the function to say: what it refuses, in
    either pass, is tried without.
    """
    patient.hands.prepare_to_differentiate()
    first, rest = cases[:1], cases[1:]
    seen = [_see(patient, case, "contiguous") for case in first]
    if seen[0].kind == "missing":
        return _found(["gradient-missing"], seen)
    seen += [_see(patient, case, "contiguous") for case in rest]
    if all(one.right for one in seen):
        views = [_see(patient, c, manner) for c in first for manner in ("strided", "expanded")]
        right = all(one.right for one in views)
        return None if right else _found(["gradient-assumes-contiguous"], views)
    named = [d.id for d in GRADIENTS if any(_agrees(reference, seen) for reference in d.references)]
    return _found(named or [_sign(seen)], seen)


def _see(patient: Patient, case: Case, manner: str) -> Gradients:
    precision = patient.hands.precision
    random = np.random.default_rng([patient.conventions.seed, 77, case.T_q])
    above = rounded(random.normal(size=case.output_shape), precision)
    above = np.ones_like(above) if manner == "expanded" else above
    of_mask = case.bias is not None and case.mask is not None
    truth = Truth(case, above, of_mask=of_mask)
    outcome = patient.gradients(truth, manner, of_mask=of_mask)
    if of_mask and outcome.ended == "raised":
        truth = Truth(case, above)
        outcome = patient.gradients(truth, manner)
    if outcome.ended == "raised":
        return Gradients(truth, manner, "raised", fault=outcome.fault)
    if outcome.ended != "returned":
        return Gradients(truth, manner, "unfinished")
    if outcome.value is None:
        return Gradients(truth, manner, "missing")
    found, came = outcome.value
    return Gradients(
        truth, manner, "arrays", found, precision=coarser(precision, came or precision)
    )


def _agrees(reference, seen: Sequence[Gradients]) -> bool:
    telling = False
    for one in seen:
        with np.errstate(all="ignore"):
            try:
                theirs = reference(one.truth.case, one.truth.grad_output)
            except Exception:  # wrong functions may fail in any way
                if one.right:
                    return False
                continue
        if one.kind != "arrays":
            return False
        for found, wrong in zip(one.found, theirs):  # most references leave the mask's open
            if wrong is not None and not _close(found, wrong, one.precision):
                return False
        telling = telling or (not one.right and _tells(one, theirs))
    return telling


def _close(found, wrong, precision: str) -> bool:
    close = _CLOSE_HALF if is_half(precision) else _CLOSE
    return _error(found, wrong) <= close * max(1.0, float(np.abs(wrong).max(initial=0)))


def _tells(one: Gradients, theirs) -> bool:
    """Whether the mistake makes a difference on this case."""
    bounds = one.truth.gradient_bounds(one.precision)
    return any(
        wrong is not None and _error(wrong, right) > bound
        for wrong, right, bound in zip(theirs, one.exact, bounds)
    )


def _sign(seen: Sequence[Gradients]) -> str:
    bad = [one for one in seen if not one.right]
    groups = {one.truth.case.group for one in bad}
    if all(one.kind == "raised" for one in bad):
        return "gradient-raises"
    if all(one.kind == "arrays" and not _finite(one) for one in bad):
        if groups == {"empty"}:
            return "gradient-nan-on-fully-masked-row"
        if groups == {"large"}:
            return "gradient-overflows"
    return "gradient-wrong"


def _finite(one: Gradients) -> bool:
    return all(g is None or np.isfinite(g).all() for g in one.found)


def _named(one: Gradients) -> str:
    *names, last = _NAMES[: len(one.exact)]
    return f"{', '.join(names)} and {last}"


def _found(ids: Sequence[str], seen: Sequence[Gradients]) -> Finding:
    diseases = tuple(CATALOGUE[id] for id in ids)
    return Finding(diseases, lines=_lines(seen, diseases), compare=False)


def _lines(seen: Sequence[Gradients], named: Sequence[Disease]) -> tuple[str, ...]:
    bad = [one for one in seen if not one.right]
    one = min(bad, key=lambda one: one.truth.case.entries)
    case = one.truth.case
    lines = [
        "The output is right.",
        f"Gradients are wrong on {len(bad)} of {len(seen)} inputs; the smallest: {case.label}, "
        f"q {case.q.shape}, k {case.k.shape}, v {case.v.shape}, (B, H, T, d).",
    ]
    if one.kind == "raised":
        lines.append(f"There it fails with {one.fault}.")
    if one.kind == "arrays":
        bounds = one.truth.gradient_bounds(one.precision)
        for name, error, bound in zip(_NAMES, one.errors, bounds):
            shown = f"{error:.2g}" if np.isfinite(error) else "nan or inf"
            shown = "right" if error <= bound else shown
            lines.append(f"  largest error of {name:18} {shown}")
    lines += [f"  {_named(one)} agree with {d.id}" for d in named if d.references]
    return tuple(lines)
