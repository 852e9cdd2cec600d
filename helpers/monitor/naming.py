"""What the layers and the models are called."""

from __future__ import annotations

import weakref
from collections import Counter


class Names:
    """Names of the modules inside the outermost one that is running."""

    def __init__(self):
        self._inside: dict[int, str] = {}  # id of a module -> its name in the outermost
        self._times = Counter()  # name -> attentions in this pass of the outermost
        self._models: list[tuple[weakref.ref, str]] = []

    def label(self, root, leaf, suffix: str) -> tuple[str, str]:
        """Name of the model `root`; qualified name in it of `leaf`, with "#2" at its second time
        in one pass."""
        if not self._inside:
            self._inside = {id(module): name for name, module in root.named_modules()}
        name = self._inside.get(id(leaf), class_name(leaf)).replace("_orig_mod.", "")
        name = (name + suffix).lstrip(".") or class_name(leaf)
        self._times[name] += 1
        again = f" #{self._times[name]}" if self._times[name] > 1 else ""
        return self._model(root), name + again

    def pass_ends(self) -> None:
        self._inside.clear()
        self._times.clear()

    def _model(self, root) -> str:
        for known, name in self._models:
            if known() is root:
                return name
        name = class_name(root)
        same = sum(other.split(" (")[0] == name for _, other in self._models)
        name += f" ({same + 1})" if same else ""
        self._models.append((weakref.ref(root), name))
        return name


def class_name(module) -> str:
    """As written in the code, also of a module that was compiled."""
    inner = getattr(module, "_orig_mod", module)
    return getattr(inner, "original_name", type(inner).__name__)
