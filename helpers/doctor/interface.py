"""How a function wants to be called: which of its parameters is the mask, the scale, and so on."""

from __future__ import annotations

import ast
import inspect
import re
import sys
from collections.abc import Callable
from dataclasses import dataclass, field

_ROLES = {
    "q": ("q", "query", "queries", "query_states"),
    "k": ("k", "key", "keys", "key_states"),
    "v": ("v", "value", "values", "value_states"),
}
_MASK = ("attn_mask", "mask", "attention_mask", "attn_bias", "bias")
_FLOAT_MASK = ("attn_mask", "attn_bias", "bias")
_BOOLEAN_MASK = ("attn_mask", "mask", "attention_mask")
_ANY_MASK = ("mask", "attention_mask")  # names under which people hand booleans, 0 and 1, or floats
_CAUSAL = ("is_causal", "causal", "use_causal_mask")
_SCALE = ("scale", "softmax_scale", "sm_scale", "scaling")
_GQA = ("enable_gqa", "gqa")
_DROPOUT = ("dropout_p", "dropout", "p_dropout", "attn_dropout", "dropout_rate")


class CannotCall(Exception):
    """The function does not take queries, keys and values; the message says why."""


@dataclass(frozen=True)
class Manner:
    """The names of a function's parameters.

    qkv : names to pass q, k and v by; None to pass them by position. mask, causal, scale, gqa :
    names of those parameters, None where there is none. causal_default : what it does unasked.
    boolean_masks, float_masks : which masks to try; mask_numbers : booleans are handed as 0 and 1;
    strict_masks : the name promises that all of them are read. needed : parameters that have no
    default, with what to pass unless a probe passes more.
    """

    qkv: tuple[str, str, str] | None = None
    mask: str | None = None
    causal: str | None = None
    scale: str | None = None
    gqa: str | None = None
    causal_default: bool = False
    boolean_masks: bool = False
    float_masks: bool = False
    mask_numbers: bool = False
    strict_masks: bool = True
    needed: dict[str, object] = field(default_factory=dict)

    @property
    def needs_scale(self) -> bool:
        return self.scale in self.needed


def read(fn: Callable) -> Manner:
    """The manner of `fn`. Raises CannotCall if three arrays are not what it takes."""
    signature = _signature(fn)
    if signature is None:
        return Manner()
    parameters = [
        parameter
        for parameter in signature.parameters.values()
        if parameter.kind not in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD)
    ]
    any_number = any(p.kind == p.VAR_POSITIONAL for p in signature.parameters.values())
    names = [parameter.name for parameter in parameters]
    qkv = _by_name(parameters)
    first = list(qkv) if qkv else names[:3]
    if len(first) < 3 and not any_number:
        raise CannotCall(
            f"It takes {len(first)} argument{'s' * (len(first) != 1)}, where queries, keys and "
            "values are three."
        )
    others = {p.name: p for p in parameters if p.name not in first}
    found = {
        role: next((name for name in known if name in others), None)
        for role, known in (
            ("mask", _MASK),
            ("causal", _CAUSAL),
            ("scale", _SCALE),
            ("gqa", _GQA),
            ("dropout", _DROPOUT),
        )
    }
    unasked = {"mask": None, "causal": False, "scale": None, "gqa": False, "dropout": 0.0}
    needed = {
        found[role]: value
        for role, value in unasked.items()
        if found[role] and others[found[role]].default is inspect.Parameter.empty
    }
    for name, parameter in others.items():
        if parameter.default is inspect.Parameter.empty and name not in needed:
            raise CannotCall(f"It also needs `{name}`, which the doctor does not know.")
    causal = others.get(found["causal"])
    return Manner(
        qkv=qkv,
        mask=found["mask"],
        causal=found["causal"],
        scale=found["scale"],
        gqa=found["gqa"],
        causal_default=causal is not None and causal.default is True,
        boolean_masks=found["mask"] in _BOOLEAN_MASK,
        float_masks=found["mask"] in _FLOAT_MASK,
        strict_masks=found["mask"] not in _ANY_MASK,
        needed=needed,
    )


def _by_name(parameters) -> tuple[str, str, str] | None:
    """Names for q, k, v where their order is another (Keras has value before key), or where they
    must be named."""
    first = parameters[:3]
    roles = {
        role: parameter.name
        for parameter in parameters
        for role, names in _ROLES.items()
        if parameter.name.lower() in names
        and (parameter in first or parameter.kind == parameter.KEYWORD_ONLY)
    }
    if len(roles) < 3 or any(p.kind == p.POSITIONAL_ONLY for p in first):
        return None
    named = (roles["q"], roles["k"], roles["v"])
    by_position = tuple(p.name for p in first if p.kind != p.KEYWORD_ONLY)
    return None if by_position == named else named


def _signature(fn: Callable) -> inspect.Signature | None:
    torch = sys.modules.get("torch")
    if torch is not None and isinstance(fn, torch.nn.Module):
        fn = fn.forward
    try:
        return inspect.signature(fn)
    except (TypeError, ValueError):
        return _documented(fn)


def _documented(fn: Callable) -> inspect.Signature | None:
    """The signature that a built-in function's documentation begins with, as torch's do."""
    match = re.match(r"\s*\w+(\([^()]*\))\s*->", getattr(fn, "__doc__", None) or "")
    try:
        arguments = ast.parse(f"def f{match[1]}: pass").body[0].args if match else None
    except SyntaxError:
        return None
    if arguments is None:
        return None
    names = [argument.arg for argument in arguments.args]
    defaults = [inspect.Parameter.empty] * (len(names) - len(arguments.defaults))
    defaults += [ast.literal_eval(default) for default in arguments.defaults]
    kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
    return inspect.Signature(
        [inspect.Parameter(name, kind, default=d) for name, d in zip(names, defaults)]
    )
