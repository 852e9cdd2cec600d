"""Show a widget where there is a kernel, and a picture or a page where there is none.

One display object offers several forms of itself (a "mimebundle"): the live widget, a static
`image/png` or `text/html`, and `text/plain`. JupyterLab with a kernel shows the first; GitHub,
nbviewer, VS Code, nbconvert and a notebook that has not run yet show the second; nbval compares the
third, and nbconvert makes it the picture's alternative text.
"""

from __future__ import annotations

import ipywidgets as widgets

from helpers.pictures.static import png, png_metadata


def mimebundle(
    view: widgets.Widget, words: str, *, svg: str | None = None, html: str | None = None
):
    """The forms of one live object, as IPython's `_repr_mimebundle_` returns them.

    view : the widget to show where there is a kernel.
    words : what it shows, in words and numbers (`text/plain`).
    svg : its picture; becomes `image/png`, because JupyterLab refuses `image/svg+xml` in a
        notebook that it does not trust yet, and GitHub and nbviewer paint parts of it black.
    html : its static page, for a live object that is text rather than a picture.

    Returns (data, metadata), both keyed by MIME type.
    """
    data = dict(view._repr_mimebundle_())
    data["text/plain"] = words
    metadata = {}
    if svg is not None:
        data["image/png"] = png(svg)
        metadata["image/png"] = png_metadata(svg) | {"alt": words}
    if html is not None:
        data["text/html"] = html
    return data, metadata
