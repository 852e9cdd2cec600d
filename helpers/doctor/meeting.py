"""Find out whether a function takes NumPy arrays or torch tensors, and of which dtype."""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Callable, Iterator

from helpers.doctor.cases import Maker
from helpers.doctor.conventions import Conventions
from helpers.doctor.hands import NumPyHands, TorchHands, is_tensor
from helpers.doctor.interface import Manner
from helpers.doctor.patient import Patient, Seen
from helpers.doctor.reference import Truth


def meet(fn: Callable, manner: Manner, conventions: Conventions) -> tuple[Patient, Seen]:
    """The function with inputs that it takes, and its answer to the first case.

    NumPy first; torch if that raises, or gives a tensor, and torch is there: a function that uses
    torch has imported it. If nothing works, the most likely try is returned.
    """
    if "torch" in _names(fn) and importlib.util.find_spec("torch"):
        importlib.import_module("torch")  # not under the watchdog, which would cut a first import
    tried = []
    for framework, precision in _attempts(conventions):
        if framework == "numpy":
            hands = NumPyHands(precision)
        else:
            hands = TorchHands(precision, conventions.device)
        patient = Patient(fn, manner, conventions, hands)
        first = patient.answer(Truth(Maker(conventions, manner, precision).first()))
        tried.append((patient, first))
        prefers_tensors = conventions.framework is None and is_tensor(first.answer.raw)
        if first.answer.kind != "raised" and not (framework == "numpy" and prefers_tensors):
            return patient, first
    worked = [pair for pair in tried if pair[1].answer.kind != "raised"]
    meant = [pair for pair in tried if pair[0].hands.name == "torch" and _mentions_torch(fn)]
    return (worked or meant or tried)[0]


def _attempts(conventions: Conventions) -> Iterator[tuple[str, str]]:
    """Frameworks and dtypes, most likely first."""
    frameworks = [conventions.framework] if conventions.framework else ["numpy", "torch"]
    if conventions.device is not None or conventions.dtype == "bfloat16":
        frameworks = ["torch"]
    named = conventions.framework or frameworks == ["torch"]
    dtypes = {"numpy": ["float32", "float64"], "torch": ["float32", "float16", "bfloat16"]}
    for framework in frameworks:
        for dtype in [conventions.dtype] if conventions.dtype else dtypes[framework]:
            if framework == "numpy" or named or sys.modules.get("torch"):
                yield framework, dtype


def _mentions_torch(fn: Callable) -> bool:
    """Whether the function's code uses a name that is torch or a module of it."""
    known = getattr(getattr(fn, "forward", fn), "__globals__", {})
    modules = [str(getattr(known.get(name), "__name__", "")) for name in _names(fn)]
    return any(module.split(".")[0] == "torch" for module in modules)


def _names(fn: Callable) -> tuple[str, ...]:
    """What the function's code calls by name, modules that it imports among it."""
    code = getattr(getattr(fn, "forward", fn), "__code__", None)
    return getattr(code, "co_names", ())
