"""The examination: meet the function, try it, name what is wrong."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np

from helpers.doctor import interface, naming, report, signs, together
from helpers.doctor.cases import ARGUMENTS, Case, Maker
from helpers.doctor.catalogue import BY_GROUP, Disease
from helpers.doctor.conventions import Conventions
from helpers.doctor.diagnosis import Diagnosis
from helpers.doctor.finding import Finding, found
from helpers.doctor.gradients import wrong_gradient
from helpers.doctor.hands import TorchHands
from helpers.doctor.meeting import meet
from helpers.doctor.patient import Patient, Seen, largest_error
from helpers.doctor.reference import Truth
from helpers.doctor.signs import wrong

_ALIKE = 0.7  # cosine between errors that are no rounding
_OF_MASKS = {disease.id for group in ("mask", "bias") for disease in BY_GROUP[group]} | {"raises"}
_OF_HEADS = {"scale-by-heads"}  # without heads that is no scale at all
_GIVEN = {"causal": "causality", "mask": "a boolean mask", "bias": "a float mask"}
_OVERFLOW = ("OverflowError", "FloatingPointError", "ZeroDivisionError")
_SETTLED = {"dropout-active", "not-deterministic", "reuses-its-output"}  # other calls tell no more


def run(fn: Callable, conventions: Conventions) -> Diagnosis:
    """Examine `fn`."""
    try:
        manner = interface.read(fn)
    except interface.CannotCall as error:
        return report.sick(found("wrong-arguments", (), str(error)))
    patient, first = meet(fn, manner, conventions)
    exam = Exam(patient, first)
    findings = exam.findings()
    if findings:
        return report.sick(findings[0], patient, findings[1:], exam.remarks)
    return report.sound(patient, exam.tried, exam.groups, exam.remarks)


class Exam:
    """One examination. `findings` does it; tried, groups and remarks tell what was done."""

    def __init__(self, patient: Patient, first: Seen):
        self.patient, self.first = patient, first
        self.maker = Maker(patient.conventions, patient.manner, patient.hands.precision)
        self.remarks: list[str] = []
        self.tried: list[Seen] = []
        self.groups: list[str] = []

    def findings(self) -> list[Finding]:
        """What is wrong, most telling first; nothing if nothing is."""
        finding = self._hopeless()
        if finding:
            return [finding]
        finding = self._plain()
        if finding:
            return [finding if finding.ids & _SETTLED else self._later() or finding]
        steps = (
            self._large, self._strides, self._causal, self._masks, self._biases, self._fills,
            self._empty, self._scales, self._gqa,
        )  # fmt: skip
        findings = []
        for step in steps:
            after_masks = step in (self._fills, self._empty)
            if not (after_masks and any(f.ids & _OF_MASKS for f in findings)):
                findings += filter(None, [step()])
        findings += self._pairs()
        findings += filter(None, [self._half()])
        later = self._later()
        if later:
            return [later]
        gradients = None if findings else self._gradients()
        findings += filter(None, (gradients, self._changed()))
        return list({finding.name: finding for finding in reversed(findings)}.values())[::-1]

    # --- Trying ---

    def _see(self, cases: Sequence[Case]) -> list[Seen]:
        """Answers to the cases; a function that does not end is not called again."""
        seen = []
        for case in cases:
            seen.append(self.patient.answer(Truth(case)))
            if seen[-1].answer.kind == "unfinished":
                break
        self.tried += seen
        return seen

    def _group(self, name: str, cases: Sequence[Case]) -> list[Seen]:
        if cases:
            self.groups.append(name)
        return self._see(cases)

    def _differ(self, one: Seen, other: Seen) -> bool:
        """Whether two answers to the same input differ by more than rounding."""
        if one.answer.kind != other.answer.kind:
            return True
        if one.answer.kind != "array":
            return False
        off = largest_error(one.answer.array, other.answer.array, one.truth.judged)
        return off > max(one.bound, naming.tolerance(one, one.truth.output) / 20)

    def _works(self) -> set[str]:
        """The arguments that are right where they are given alone, by the group about them."""
        last = {(one.case.group, one.case.label): one for one in self.tried}.values()
        seen = {group: [one for one in last if one.case.group == group] for group in ARGUMENTS}
        manner = self.maker.manner
        handed = {"mask": manner.boolean_masks, "bias": manner.float_masks}
        return {
            group
            for group, mine in seen.items()
            if handed.get(group, True)
            and any(one.right for one in mine)
            and all(one.right or one.answer.kind == "raised" for one in mine)
        }

    # --- Naming ---

    def _named(self, seen: Sequence[Seen], diseases: Sequence[Disease]) -> Finding | None:
        """The diseases whose references agree on everything."""
        ordered = sorted(seen, key=lambda one: one.plainness)
        alike = naming.agreeing(ordered, diseases)
        return Finding(tuple(alike), tuple(seen), tuple(diseases)) if alike else None

    def _signed(self, seen: Sequence[Seen]) -> str:
        """What signs say. Errors as small as rounding's must also behave like rounding's."""
        id = signs.first(seen)
        if id in signs.OF_ROUNDING and not self._like_rounding(seen):
            return signs.first(seen, without=signs.OF_ROUNDING)
        return id

    def _like_rounding(self, seen: Sequence[Seen]) -> bool:
        """Whether inputs that are 1 % other give errors that are quite other."""
        short = [one for one in seen if one.case.T_k <= signs.SHORT]
        one = max(short, key=lambda one: one.case.entries)
        if one.right:
            return True  # its errors are rounding's
        near = self.patient.answer(Truth(self.maker.nudged(one.case)))
        if near.answer.kind != "array":
            return True
        a, b = ((s.answer.array - s.truth.output)[s.truth.judged].ravel() for s in (one, near))
        return bool(abs(a @ b) < _ALIKE * np.sqrt((a @ a) * (b @ b)))

    def _judged(self, seen: Sequence[Seen], group: str, otherwise: str = "unknown"):
        """A finding among the diseases of a group; None if all is right."""
        bad = wrong(seen)
        if not bad:
            return None
        id = signs.failed(seen)
        if id:
            return found(id, seen)
        finding = self._named(seen, BY_GROUP[group])
        if finding:
            return finding
        kinds = {one.answer.kind for one in bad}
        if group in ("mask", "bias") and kinds == {"raised"}:
            return found("some-masks-refused", seen)
        if "raised" in kinds:
            return found("raises", seen)
        if "shape" in kinds:
            return found("wrong-shape", seen)
        return found(otherwise, seen, candidates=BY_GROUP[group])

    # --- Steps: each returns a Finding or None ---

    def _hopeless(self):
        """Functions that fail in a way about which other inputs tell no more."""
        id = signs.failed([self.first])
        return found(id, [self.first]) if id not in ("", "raises") else None

    def _plain(self):
        """Queries, keys and values alone, the first input twice."""
        again = self.patient.answer(self.first.truth)
        self.groups.append("plain")
        self.tried += [self.first, again]
        if self._differ(self.first, again):
            return self._capricious()
        cases = self.maker.plain()[1:]
        other = self._see(cases[:1])
        memory = self._remembers(again, other[0])
        if memory:
            return memory
        seen = [self.first, *other]
        if other[0].answer.kind != "unfinished":
            seen += self._see(cases[1:])
        if not wrong(seen):
            return None
        conventions = self.patient.conventions
        diseases = BY_GROUP["always-causal" if conventions.causal else "plain"]
        if not conventions.has("H"):
            diseases = tuple(d for d in diseases if d.id not in _OF_HEADS)
        finding = self._named(seen, diseases) or self._flat(seen)
        return finding or found(self._signed(seen), seen, candidates=diseases)

    def _capricious(self):
        shown = self._see([case for case in self.maker.plain() if case.shows_weights])
        id = signs.dropout(shown) or "not-deterministic"
        line = "The same input, twice in a row, gave two different results."
        return found(id, [self.first], line, compare=False)

    def _remembers(self, earlier: Seen, other: Seen):
        """A result that the next call overwrote, or that the next call returned once more."""
        if not earlier.right:
            return None
        now = self.patient.read_again(earlier)
        if now is not None and not np.array_equal(now, earlier.answer.array):
            line = "A first result was right; after the next call it held other numbers."
            return found("reuses-its-output", [earlier], line, compare=False)
        stale = other.answer.kind == "array" and not other.right
        if stale and not self._differ(earlier, other):
            line = "Other numbers of the same shape gave the result of the numbers before."
            return found("depends-on-earlier-calls", [other], line)
        return None

    def _flat(self, seen: Sequence[Seen]):
        """A function for one head of one sequence, handed several."""
        conventions = self.patient.conventions
        fails = all(one.answer.kind in ("raised", "shape") for one in seen)
        if conventions.layout == "TD" or not fails:
            return None
        flat = replace(self.patient, conventions=replace(conventions, layout="TD"))
        maker = Maker(flat.conventions, flat.manner, flat.hands.precision)
        exam = Exam(flat, flat.answer(Truth(maker.first())))
        inner = exam.findings() if exam.first.answer.kind == "array" else None
        if inner is None or (inner and inner[0].name in ("unknown", "raises", "wrong-shape")):
            return None
        line = "On two axes, (T, d), it is right."
        if inner:
            line = f"On two axes, (T, d), it has another disease: {inner[0].name}."
            self.remarks.append(f"{inner[0].name}: {inner[0].diseases[0].sentence}")
        return found("needs-two-axes", seen, line)

    def _large(self):
        seen = self._group("large", self.maker.large())
        faults = [one.answer.fault.name for one in seen if one.answer.kind == "raised"]
        if any(name in _OVERFLOW for name in faults):
            return found("overflows", seen)
        return self._judged(seen, "large", "wrong-on-large-scores")

    def _strides(self):
        seen = self._group("strides", self.maker.strides())
        return found("needs-contiguous", seen) if wrong(seen) else None

    def _causal(self):
        seen = self._group("causal", self.maker.causal())
        refused = _raised(seen)
        if refused and all(one.case.T_q != one.case.T_k for one in refused):
            self.remarks.append(
                "Asked for causality, it refuses queries and keys that differ in number."
            )
            seen = [one for one in seen if one not in refused]
        return self._judged(seen, "causal")

    def _masks(self):
        seen = self._group("mask", self.maker.masks())
        if wrong(seen) and self._reads_masks_otherwise(seen):
            return None
        refused = _raised(seen)
        if refused and len(refused) == len(seen):
            if self.patient.manner.float_masks and not wrong(self._see(self.maker.biases())):
                self._hand_out(boolean_masks=False)
                self.remarks.append(f"It refuses boolean masks: {refused[0].answer.fault}.")
                return None
            return found("raises", seen)
        return self._judged(seen, "mask")

    def _reads_masks_otherwise(self, seen: Sequence[Seen]) -> bool:
        """A parameter `mask` or `attention_mask` may want 0 and 1, or numbers to add."""
        before = self.patient.manner
        if before.strict_masks:
            return False
        if len(_raised(seen)) == len(seen):
            self._hand_out(mask_numbers=True)
            if not wrong(self._see(self.maker.masks())):
                self.remarks.append(f"It takes `{before.mask}` as numbers 0 and 1.")
                return True
        self._hand_out(mask_numbers=False, boolean_masks=False, float_masks=True)
        biases = self._see(self.maker.biases())
        if biases and not wrong(biases):
            self.remarks.append(f"It adds `{before.mask}` to the scores, and takes floats alone.")
            return True
        self._hand_out(boolean_masks=before.boolean_masks, float_masks=before.float_masks)
        return False

    def _hand_out(self, **masks: bool) -> None:
        """Change which masks the function gets."""
        self.patient.manner = replace(self.patient.manner, **masks)
        self.maker.manner = self.patient.manner

    def _biases(self):
        seen = self._group("bias", self.maker.biases())
        refused = _raised(seen)
        if refused and len(refused) == len(seen) and self.patient.manner.boolean_masks:
            self.remarks.append(f"It refuses float masks: {refused[0].answer.fault}.")
            return None
        return self._judged(seen, "bias")

    def _fills(self):
        cases = self.maker.fills(self._works())
        seen = self._group("fill", cases)
        about = [[one for one in seen if (one.case.mask is None) == causal] for causal in (0, 1)]
        found = [self._judged(mine, "fill", "wrong-on-large-scores") for mine in about]
        return next(filter(None, found), None)

    def _empty(self):
        seen = self._group("empty", self.maker.empty())
        refused = _raised(seen)
        if refused:
            self.remarks.append(
                f"It refuses queries that may see no key: {refused[0].answer.fault}."
            )
        return self._judged([one for one in seen if one not in refused], "empty")

    def _scales(self):
        seen = self._group("scale", self.maker.scales())
        refused = [one for one in _raised(seen) if one.case.scale == 0]
        refused = [o for o in refused if o.answer.fault.name in ("ValueError", "AssertionError")]
        if refused:
            self.remarks.append(f"It refuses scale=0: {refused[0].answer.fault}.")
        return self._judged([one for one in seen if one not in refused], "scale")

    def _gqa(self):
        seen = self._group("gqa", self.maker.gqa())
        bad = wrong(seen)
        if bad and all(one.answer.kind in ("raised", "shape") for one in bad):
            return found("gqa-fails", seen)
        return self._judged(seen, "gqa")

    def _pairs(self) -> list[Finding]:
        """Two arguments at once, where each is right alone."""
        seen = self._group("pair", self.maker.pairs(self._works()))
        refused = [one for one in _raised(seen) if together.refused(one)]
        for label in dict.fromkeys(one.case.label for one in refused):
            self.remarks.append(f"It refuses {label}.")
        return together.findings([one for one in seen if one not in refused])

    def _half(self):
        """Half precision, for torch functions that take it; a few inputs."""
        patient = self.patient
        asked = patient.conventions.dtype is not None or patient.hands.precision != "float32"
        if patient.hands.name != "torch" or asked:
            return None
        for precision in ("bfloat16", "float16"):
            finding = self._in_half(precision)
            if finding:
                return finding
        return None

    def _in_half(self, precision: str):
        patient = self.patient
        other = replace(patient, hands=TorchHands(precision, patient.conventions.device))
        maker = Maker(patient.conventions, patient.manner, precision)
        plain = [
            c for c in maker.plain() if (c.T_k in (6, 11) and not c.shows_weights) or c.T_k > 1000
        ]
        asked = {"causal": maker.causal, "mask": maker.masks, "bias": maker.biases}
        works = self._works()
        groups = {"plain": plain}
        for group, make in asked.items():
            if group in works:
                # A short one and a long one for causality, and no length that might be refused.
                cases = make()
                groups[group] = [c for c in cases if c.T_q == c.T_k] or cases[:1]
        for group, cases in groups.items():
            seen = [other.answer(Truth(case)) for case in cases]
            failed = [one for one in seen if one.answer.kind != "array"]
            if failed:
                which = "" if group == "plain" else f" with {_GIVEN[group]}"
                self.remarks.append(f"It takes no {precision}{which}.")
                if group == "plain":
                    break
                continue
            self.tried += seen
            if wrong(seen):
                line = f"In float32 all is right; this is in {precision}."
                return self._named_in_half(seen, group, line)
        return None

    def _named_in_half(self, seen: Sequence[Seen], group: str, line: str) -> Finding:
        conventions = self.patient.conventions
        diseases = BY_GROUP["always-causal" if group == "plain" and conventions.causal else group]
        finding = self._named(seen, diseases)
        if finding:
            return replace(finding, lines=(line,))
        finite = all(np.isfinite(one.answer.array).all() for one in wrong(seen))
        id = "low-precision-accumulation" if finite else "not-finite-in-half-precision"
        return found(id, seen, line, candidates=diseases)

    def _later(self):
        """The first input once more, after all others."""
        if self.tried[-1].answer.kind == "unfinished":
            return None
        last = self.patient.answer(self.first.truth)
        self.tried.append(last)
        if not self._differ(self.first, last):
            return None
        line = "The first input, tried again after all others, gave another result."
        return found("depends-on-earlier-calls", [last], line)

    def _gradients(self):
        conventions = self.patient.conventions
        if self.patient.hands.name != "torch" or not conventions.gradients:
            return None
        self.groups.append("gradients")
        refused = {(one.case.group, one.case.label) for one in wrong(self.tried)}
        cases = [c for c in self.maker.gradients() if (c.group, c.label) not in refused]
        return wrong_gradient(self.patient, cases)

    def _changed(self):
        changed = [one for one in self.tried if one.answer.changed]
        if not changed:
            return None
        names = sorted({name for one in changed for name in one.answer.changed})
        line = f"Changed after a call: {', '.join(names)}."
        return found("changes-its-input", changed[:1], line, compare=False)


def _raised(seen: Sequence[Seen]) -> list[Seen]:
    return [one for one in seen if one.answer.kind == "raised"]
