"""A picture of ours drawn by matplotlib, element by element: the benchmark's other side."""

import re
import xml.etree.ElementTree as ET

SVG = "{http://www.w3.org/2000/svg}"
POINTS = 72 / 100  # per CSS pixel at 100 dots per inch


def show(picture: str) -> None:
    """Draw the SVG string with pyplot and show it, as a cell of a usual notebook does."""
    import matplotlib.pyplot as plt
    from matplotlib.patches import Circle, FancyBboxPatch

    root = ET.fromstring(picture)
    width, height = map(float, root.get("viewBox").split()[2:])
    figure = plt.figure(figsize=(width / 100, height / 100), dpi=100)
    axes = figure.add_axes((0, 0, 1, 1))
    axes.set(xlim=(0, width), ylim=(height, 0))
    axes.axis("off")
    for element in root.iter():
        number = {k: float(v) for k, v in element.attrib.items() if _is_number(v)}
        paint = {
            "facecolor": element.get("fill", "none"),
            "edgecolor": element.get("stroke", "none"),
        }
        if element.tag == f"{SVG}rect":
            radius = min(number.get("rx", 0), number["width"] / 2, number["height"] / 2)
            style = f"round,pad=0,rounding_size={radius}"
            corner = number.get("x", 0), number.get("y", 0)
            axes.add_patch(
                FancyBboxPatch(corner, number["width"], number["height"], boxstyle=style, **paint)
            )
        elif element.tag == f"{SVG}circle":
            axes.add_patch(Circle((number["cx"], number["cy"]), number["r"], **paint))
        elif element.tag in (f"{SVG}path", f"{SVG}polyline", f"{SVG}polygon", f"{SVG}line"):
            for x, y in _lines(element):
                axes.plot(x, y, color=element.get("stroke") or element.get("fill"))
        elif element.tag == f"{SVG}text":
            axes.text(
                number["x"],
                number["y"],
                "".join(element.itertext()).replace("\u200b", "").replace("$", r"\$"),
                fontsize=number["font-size"] * POINTS,
                color=element.get("fill"),
                ha={"start": "left", "middle": "center", "end": "right"}[
                    element.get("text-anchor")
                ],
                weight=element.get("font-weight", "normal"),
            )
    plt.show()


def _is_number(value: str) -> bool:
    return re.fullmatch(r"-?\d+(\.\d+)?", value) is not None


def _lines(element):
    """The corners of a path (curves become straight), as lists of x and of y."""
    if element.tag == f"{SVG}line":
        a = element.attrib
        yield [float(a["x1"]), float(a["x2"])], [float(a["y1"]), float(a["y2"])]
        return
    if element.get("points"):
        values = list(map(float, re.findall(r"-?\d+(?:\.\d+)?", element.get("points"))))
        yield values[::2], values[1::2]
        return
    xs, ys = [], []
    for command, rest in re.findall(r"([a-zA-Z])([^a-zA-Z]*)", element.get("d")):
        values = list(map(float, re.findall(r"-?\d+(?:\.\d+)?", rest)))
        x, y = (xs[-1], ys[-1]) if xs else (0, 0)
        if command == "M" and xs:
            yield xs, ys
            xs, ys = [], []
        if command in "MLC":
            xs += values[0::2]
            ys += values[1::2]
        elif command in "Hh":
            xs.append(values[0] + (x if command == "h" else 0))
            ys.append(y)
        elif command in "Vv":
            xs.append(x)
            ys.append(values[0] + (y if command == "v" else 0))
        elif command in "lq":
            for dx, dy in zip(values[0::2], values[1::2]):
                xs.append(x + dx)
                ys.append(y + dy)
                if command == "l":
                    x, y = xs[-1], ys[-1]
    if xs:
        yield xs, ys
