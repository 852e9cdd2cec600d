"""A formula as an inline picture: on the baseline, in the text's colour and size, for any TeX."""

import logging
import re
import threading
import xml.etree.ElementTree as ET

import pytest

from helpers.interview.markup import SIGNS
from helpers.pictures.formula import FormulaError, formula

SVG = "{http://www.w3.org/2000/svg}"


def parsed(tex, **options):
    return ET.fromstring(formula(tex, "words", **options))


def ems(tex, what, **options):
    """Its width or height, or how far it reaches below the baseline, in ems of the text around."""
    svg = parsed(tex, **options)
    if what == "depth":
        return -float(re.search(r"vertical-align:(-?[\d.]+)em", svg.get("style"))[1])
    return float(svg.get(what).removesuffix("em"))


@pytest.mark.parametrize("sign", SIGNS)
def test_every_sign_of_the_texts_can_be_drawn(sign, caplog):
    tex = {
        r"\sqrt": r"\sqrt{x}",
        r"\left": r"\left( x \right)",
        r"\right": r"\left[ x \right]",
    }.get(sign, f"a {sign} b")
    with caplog.at_level(logging.WARNING):
        assert "<path" in formula(tex, "words")
    assert caplog.text == "", "mathtext had no such glyph"


@pytest.mark.parametrize(
    "tex",
    [
        r"\operatorname{softmax}\left(\frac{Q K^\top}{\sqrt{d_k}}\right) V",
        r"\mathrm{Var}(q \cdot k) = \sum_{c} \mathrm{E}[q_c^2]\, \mathrm{E}[k_c^2]",
        r"\ell = \sum_j e^{s_j - m}, \quad \mathbf{o} \le 1",
        r"\|q\|^2 \ge \frac{1}{2}",
    ],
)
def test_what_texts_hold_can_be_drawn(tex):
    svg = parsed(tex)
    assert svg.get("role") == "img"
    assert svg.get("aria-label") == "words"
    assert all(path.get("fill") == "currentColor" for path in svg.iter(f"{SVG}path"))


def points(svg):
    """Every point of every outline, the handles of curves too."""
    found = []
    for path in svg.iter(f"{SVG}path"):
        x = y = 0
        for command, rest in re.findall(r"([A-Za-z])([^A-Za-z]*)", path.get("d")):
            numbers = [int(n) for n in re.findall(r"-?\d+", rest)]
            if command in "MLlqc":
                pairs = list(zip(numbers[::2], numbers[1::2], strict=True))
                start = (0, 0) if command in "ML" else (x, y)
                found += [(start[0] + dx, start[1] + dy) for dx, dy in pairs]
                x, y = found[-1]
            elif command in "HV":
                x, y = (numbers[0], y) if command == "H" else (x, numbers[0])
                found.append((x, y))
    return found


@pytest.mark.parametrize("tex", ["f", r"\sqrt{\frac{a}{b}}", r"Q_j^\top", r"\sum_j e^{s_j}"])
def test_nothing_reaches_out_of_the_picture(tex):
    svg = parsed(tex)
    *_, width, height = map(int, svg.get("viewBox").split())
    xs, ys = zip(*points(svg))
    assert min(xs) >= 0
    assert max(xs) <= width
    assert min(ys) >= 0
    assert max(ys) <= height


def test_it_sits_on_the_baseline():
    assert ems("x", "depth") < 0.03, "x ends on the line"
    assert 0.1 < ems("x_j", "depth") < 0.5, "an index hangs below it"
    assert ems(r"\frac{a}{b}", "depth") > 0.2
    assert 0.4 < ems("x", "height") < 0.55, "the x-height of the font"


def test_it_grows_with_its_size_and_with_the_text():
    for what in ("width", "height", "depth"):
        small, large = ems("x_j", what), ems("x_j", what, size=28)
        assert large == pytest.approx(2 * small, abs=0.002)


def test_a_large_fraction_has_letters_of_full_size():
    ratio = ems(r"\frac{a}{b}", "height", size=28) / ems(r"\frac{a}{b}", "height")
    assert ratio > 2.3


def test_letters_are_tinted_one_by_one():
    svg = parsed("Q K", tints=(("Q", "#18689f"),))
    assert {path.get("fill") for path in svg} == {"#18689f", "currentColor"}


def test_words_are_escaped():
    assert ET.fromstring(formula("a < b", 'a < "b" & c')).get("aria-label") == 'a < "b" & c'


@pytest.mark.parametrize("tex", [r"\nonsense{x}", r"\frac{a}", "x^", r"\left( x", "漢", r"\,"])
def test_what_cannot_be_drawn_is_named(tex):
    with pytest.raises(FormulaError, match=re.escape(f"${tex}$")):
        formula(tex, "words")


def test_several_threads_get_the_same_picture():
    texs = [rf"\sqrt{{x_{{{n}}}}} + \sum_j y_j" for n in range(8)]
    alone = [formula(tex, "words") for tex in texs]
    formula.cache_clear()
    found = {}

    def draw(name, order):
        found[name] = {tex: formula(tex, "words") for tex in order}

    threads = [threading.Thread(target=draw, args=(n, texs[:: (-1) ** n])) for n in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == 4
    assert all(pictures == dict(zip(texs, alone)) for pictures in found.values())
