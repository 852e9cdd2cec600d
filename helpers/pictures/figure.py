"""A picture as the last line of a cell: shown as PNG, read aloud as words."""

from __future__ import annotations

from dataclasses import dataclass, field

from helpers.pictures.static import png, png_metadata


@dataclass(frozen=True)
class Figure:
    """An SVG string and the words that say what it shows.

    A cell that ends in one shows the picture in every viewer. The words are its `text/plain`,
    which nbval compares, and the alternative text where a viewer has a place for one (nbconvert
    does, JupyterLab does not).
    """

    svg: str = field(repr=False)
    words: str

    def _repr_mimebundle_(self, include=None, exclude=None):
        data = {"image/png": png(self.svg), "text/plain": self.words}
        return data, {"image/png": png_metadata(self.svg) | {"alt": self.words}}
