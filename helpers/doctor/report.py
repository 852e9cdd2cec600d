"""A finding, or that there is none, in words."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from helpers.doctor import evidence
from helpers.doctor.catalogue.scale import SCALE
from helpers.doctor.diagnosis import Diagnosis
from helpers.doctor.finding import Finding
from helpers.doctor.patient import Patient, Seen
from helpers.doctor.precision import is_half

# Group of cases -> what it looks at.
LOOKED_AT = {
    "plain": "short, long and odd lengths, heads and batches",
    "large": "scores that overflow",
    "strides": "views",
    "causal": "causality on request",
    "mask": "boolean masks",
    "bias": "float masks",
    "fill": "masks and causality among large scores",
    "empty": "rows that see no key",
    "scale": "a given scale",
    "gqa": "grouped heads",
    "pair": "two arguments at once",
    "gradients": "gradients",
}


def sick(
    finding: Finding,
    patient: Patient | None = None,
    others: Sequence[Finding] = (),
    remarks: Sequence[str] = (),
) -> Diagnosis:
    """The first finding with its evidence; the others by name."""
    diseases, seen = finding.diseases, finding.seen
    lines, shown = [], {}
    wrong = [one for one in seen if not one.right]
    if wrong and finding.compare:
        one = evidence.plainest_wrong(seen)
        lines.append(evidence.counted(seen))
        lines.append(f"An input that shows it: {evidence.shown(one, patient)}.")
        lines += filter(None, [evidence.failing(one)])
        compared, errors = evidence.compared(one, diseases, finding.candidates)
        lines += compared
        if finding.ids & {disease.id for disease in SCALE}:
            lines += evidence.scales(seen)
        shown = {"errors": errors, "difference": evidence.difference(one)}
        shown["inputs"] = evidence.inputs(one, patient)
    elif seen:
        lines.append(f"Input: {evidence.shown(seen[0], patient)}.")
        shown = {"inputs": evidence.inputs(seen[0], patient)}
    lines += [*finding.lines, *(disease.tells for disease in diseases)]
    several = "One of these; no input can tell them apart: " if len(diseases) > 1 else ""
    also = [f"{other.name}: {other.diseases[0].sentence}" for other in others]
    return Diagnosis(
        sound=False,
        name=finding.name,
        sentence=several + _joined(disease.sentence for disease in diseases),
        evidence="\n".join(lines),
        fix=_joined(disease.fix for disease in diseases),
        links=tuple(dict.fromkeys(disease.link for disease in diseases)),
        remarks=(*also, *remarks),
        **shown,
    )


def sound(
    patient: Patient, tried: Sequence[Seen], groups: Sequence[str], remarks: Sequence[str]
) -> Diagnosis:
    """What was looked at without finding anything."""
    halves = sorted({one.answer.precision for one in tried if is_half(one.answer.precision)})
    dtypes = ", ".join(dict.fromkeys([patient.hands.precision, *halves]))
    looked = [words for group, words in LOOKED_AT.items() if group in groups]
    missing = [words for group, words in LOOKED_AT.items() if group not in groups]
    lines = [
        f"Right on {len(tried)} inputs ({patient.hands.name}; {dtypes}; {patient.conventions}).",
        f"Looked at: {'; '.join(looked)}.",
    ]
    if missing:
        lines.append(f"Not looked at, as it takes no such thing: {'; '.join(missing)}.")
    return Diagnosis(
        sound=True,
        name="sound",
        evidence="\n".join(lines),
        sentence="Nothing is wrong with this function, as far as the doctor can see.",
        remarks=tuple(remarks),
    )


def _joined(sentences: Iterable[str]) -> str:
    return " Or: ".join(dict.fromkeys(sentences))
