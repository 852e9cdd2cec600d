"""Turn a picture (an SVG string) into a PNG that looks the same on every machine."""

from __future__ import annotations

import importlib.util
import io
import re
from functools import cache
from pathlib import Path

# Sharp on a high-resolution screen, and the largest picture of the series stays under 60 kB.
_PIXELS_PER_UNIT = 1.75
_COLOURS = 128


@cache
def _fonts() -> list[str]:
    """matplotlib's own DejaVu files: present wherever the lessons are installed."""
    # find_spec, because importing matplotlib would cost each kernel some 30 MB.
    package = importlib.util.find_spec("matplotlib").submodule_search_locations[0]
    return sorted(
        str(path) for path in (Path(package) / "mpl-data" / "fonts" / "ttf").glob("DejaVu*.ttf")
    )


def size(svg: str) -> tuple[int, int]:
    """The (width, height) of a picture, in CSS pixels, from its viewBox."""
    match = re.search(r'viewBox="0 0 (\d+(?:\.\d+)?) (\d+(?:\.\d+)?)"', svg)
    if match is None:
        raise ValueError('a picture needs viewBox="0 0 width height" on its <svg> element')
    return round(float(match[1])), round(float(match[2]))


def png(svg: str) -> bytes:
    """The picture as PNG bytes: 1.75 pixels per CSS pixel, 128 colours."""
    import resvg_py
    from PIL import Image

    width, _ = size(svg)
    full = resvg_py.svg_to_bytes(
        svg_string=svg,
        width=round(width * _PIXELS_PER_UNIT),
        font_files=_fonts(),
        skip_system_fonts=True,
        font_family="DejaVu Sans",
        sans_serif_family="DejaVu Sans",
        serif_family="DejaVu Serif",
        monospace_family="DejaVu Sans Mono",
    )
    small = io.BytesIO()
    with Image.open(io.BytesIO(bytes(full))) as image:
        flat = Image.new("RGB", image.size, "white")  # or the rounded corners turn black
        flat.paste(image, mask=image.getchannel("A"))
        flat.quantize(_COLOURS, kmeans=1, dither=Image.Dither.NONE).save(
            small, "PNG", optimize=True
        )
    return small.getvalue()


def png_metadata(svg: str) -> dict[str, int]:
    """The size at which a page should show `png(svg)`, in CSS pixels."""
    width, height = size(svg)
    return {"width": width, "height": height}
