"""The pictures: colours that everybody can tell apart, text that fits, numbers that are right."""

import itertools
import re
import xml.etree.ElementTree as ET

import numpy as np
import pytest

from helpers.pictures import Matrix, by_hand, equation, svg
from helpers.pictures.by_hand import ByHand
from helpers.pictures.palette import PAPER, ROLES, contrast, ink_on, tint
from helpers.pictures.static import png, size

COLOURED = {name: role for name, role in ROLES.items() if name != "X"}
TOKENS = ("the", "cat", "sat", "on")
Q = np.array([[1, 0, 1, 0], [0, 1, 0, 1], [1, 1, 1, 0]])
K = np.array([[1, 0, 1, 0], [0, 1, 0, 1], [1, 1, 0, 0]])
V = np.array([[1, 0], [0, 1], [1, 1]])


def lesson(**changes):
    return ByHand(**{"tokens": TOKENS[:3], "q": Q, "k": K, "v": V, "row": 2, **changes})


def texts(picture: str) -> list[str]:
    """Every line of text in a picture, as it reads."""
    return ["".join(e.itertext()) for e in ET.fromstring(picture).findall(".//{*}text")]


# ── colours ──────────────────────────────────────────────────────────────────────────────────────

# Machado, Oliveira, Fernandes 2009, severity 1.0, on linear RGB.
VISIONS = {
    "normal": np.eye(3),
    "protanopia": [[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216],
                   [-0.003882, -0.048116, 1.051998]],
    "deuteranopia": [[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413],
                     [-0.011820, 0.042940, 0.968881]],
    "tritanopia": [[1.255528, -0.076749, -0.178779], [-0.078411, 0.930809, 0.147602],
                   [0.004733, 0.691367, 0.303900]],
}  # fmt: skip


def cielab(colour: str, vision: str) -> np.ndarray:
    rgb = np.array([int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)])
    linear = np.where(rgb <= 0.04045, rgb / 12.92, ((rgb + 0.055) / 1.055) ** 2.4)
    seen = np.clip(np.asarray(VISIONS[vision]) @ linear, 0, 1)
    to_xyz = [[0.4124564, 0.3575761, 0.1804375], [0.2126729, 0.7151522, 0.0721750],
              [0.0193339, 0.1191920, 0.9503041]]  # fmt: skip
    xyz = np.array(to_xyz) @ seen / (0.95047, 1.0, 1.08883)
    f = np.where(xyz > 0.008856, np.cbrt(xyz), 7.787 * xyz + 16 / 116)
    return np.array([116 * f[1] - 16, 500 * (f[0] - f[1]), 200 * (f[1] - f[2])])


def ciede2000(one: np.ndarray, two: np.ndarray) -> float:
    """Colour difference (Sharma, Wu, Dalal 2005)."""
    (l1, a1, b1), (l2, a2, b2) = one, two
    c_bar = (np.hypot(a1, b1) + np.hypot(a2, b2)) / 2
    g = 0.5 * (1 - np.sqrt(c_bar**7 / (c_bar**7 + 25**7)))
    a1, a2 = (1 + g) * a1, (1 + g) * a2
    c1, c2 = np.hypot(a1, b1), np.hypot(a2, b2)
    h1, h2 = (np.degrees(np.arctan2(b, a)) % 360 for a, b in ((a1, b1), (a2, b2)))
    dh = (h2 - h1 + 180) % 360 - 180
    big_dh = 2 * np.sqrt(c1 * c2) * np.sin(np.radians(dh / 2))
    l_bar, c_bar = (l1 + l2) / 2, (c1 + c2) / 2
    h_bar = (h1 + h2) / 2 if abs(h1 - h2) <= 180 else (h1 + h2 + 360) / 2
    t = (1 - 0.17 * np.cos(np.radians(h_bar - 30))
         + 0.24 * np.cos(np.radians(2 * h_bar))
         + 0.32 * np.cos(np.radians(3 * h_bar + 6))
         - 0.2 * np.cos(np.radians(4 * h_bar - 63)))  # fmt: skip
    s_l = 1 + 0.015 * (l_bar - 50) ** 2 / np.sqrt(20 + (l_bar - 50) ** 2)
    s_c, s_h = 1 + 0.045 * c_bar, 1 + 0.015 * c_bar * t
    turn = np.radians(60 * np.exp(-(((h_bar - 275) / 25) ** 2)))
    r_t = -2 * np.sqrt(c_bar**7 / (c_bar**7 + 25**7)) * np.sin(turn)
    dl, dc, dh = (l2 - l1) / s_l, (c2 - c1) / s_c, big_dh / s_h
    return float(np.sqrt(dl**2 + dc**2 + dh**2 + r_t * dc * dh))


def test_colour_difference_is_the_published_one():
    # The first pair of the paper's test data.
    pair = np.array([50, 2.6772, -79.7751]), np.array([50, 0, -82.7485])
    assert ciede2000(*pair) == pytest.approx(2.0425, abs=1e-4)


@pytest.mark.parametrize("vision", VISIONS)
def test_roles_differ_for_every_eye(vision):
    for one, two in itertools.combinations(COLOURED.values(), 2):
        distance = ciede2000(cielab(one.fill, vision), cielab(two.fill, vision))
        assert distance >= 14, f"{one.name} and {two.name} look alike: {distance:.1f}"


@pytest.mark.parametrize("role", ROLES.values(), ids=lambda r: r.name)
def test_text_reads_on_every_tint_and_formulas_on_both_themes(role):
    for amount in np.linspace(0, 1, 101):
        background = tint(role.fill, amount)
        assert contrast(background, ink_on(background)) >= 4.5
    assert contrast(role.fill, PAPER) >= 3.5  # titles are large and bold
    assert min(contrast(role.formula, "#ffffff"), contrast(role.formula, "#111111")) >= 3.5


# ── numbers ──────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("value", "decimals", "printed"),
    [(2, 0, "2"), (-0.5, 1, "−0.5"), (-0.0004, 3, "0.000"), (-np.inf, 3, "−∞"), (np.nan, 1, "NaN"),
     (1234567, 3, "1.23·10⁶"), (-2.5e-7, 2, "0.00"), (99999, 0, "99999")],
)  # fmt: skip
def test_number(value, decimals, printed):
    assert svg.number(value, decimals) == printed


@pytest.mark.parametrize(
    ("values", "decimals"),
    [([1, 2], 0), ([1, 0.5], 1), ([1 / 3], 3), ([12.345], 2), ([123.456], 1), ([-np.inf, 0.25], 2),
     ([], 0)],
)  # fmt: skip
def test_decimals_needed(values, decimals):
    assert svg.decimals_needed(values) == decimals


def test_formula_raises_and_lowers():
    assert "T</tspan>" in svg.formula("Kᵀ", 17)
    assert svg.formula("W_Q", 17).startswith("W<tspan dy=")
    assert svg.formula("a < b", 17) == "a &lt; b"


# ── matrices ─────────────────────────────────────────────────────────────────────────────────────


def test_equation_shows_and_says_every_number():
    figure = equation(Matrix(Q, "Q", rows=TOKENS[:3]), "·", Matrix(K.T, "K", "Kᵀ"), "=",
                      Matrix(Q @ K.T, "scores"))  # fmt: skip
    assert "sat 1 1 1 0" in figure.words
    assert "scores (3 × 3)\n   2 0 1\n   0 2 1\n   2 1 2" in figure.words
    assert [t for t in texts(figure.svg) if t in "·="] == ["·", "="]
    assert figure._repr_mimebundle_()[0].keys() == {"image/png", "text/plain"}


def test_text_shrinks_until_it_fits_its_cell():
    matrix = Matrix([[-135.479]], "scores", cell_width=44)
    width, font = matrix.measure()
    assert width == 44
    assert svg.text_width(matrix.printed()[0][0]) * font <= 40


def test_a_chosen_row_is_outlined_and_bold_and_every_tint_keeps_its_meaning():
    plain, chosen = (equation(Matrix(Q, "Q", chosen_row=row)).svg for row in (None, 1))
    assert chosen.count("<rect") == plain.count("<rect") + 1
    assert chosen.count('font-weight="bold"') == plain.count('font-weight="bold"') + 4
    full = f'fill="{ROLES["Q"].fill}"'
    assert plain.count(f"{full}/>") == chosen.count(f"{full}/>") == int(Q.sum())


def test_a_negative_cell_is_hollow():
    plus, minus = (equation(Matrix([[value]], "Q")).svg for value in (1, -1))
    assert plus.count('stroke="#1f7fbf"') == 0
    assert minus.count('stroke="#1f7fbf"') == 1


def test_scores_and_scaled_scores_share_one_scale_of_tints():
    picture = by_hand.picture(lesson())
    # 2 stands three times among the scores; after the division nothing is as dark.
    assert picture.count(f'fill="{ROLES["scores"].fill}"/>') == 4


# ── attention by hand ────────────────────────────────────────────────────────────────────────────


def test_the_picture_shows_the_lessons_numbers():
    shown = texts(by_hand.picture(lesson()))
    for number in ("0.384", "0.233", "0.767", "0.616", "0.506", "0.814", "38 %", "23 %"):
        assert number in shown
    assert any("0.384·1 + 0.233·0 + 0.384·1 ≈ 0.767" in line for line in shown)


@pytest.mark.parametrize(
    ("step", "line"),
    [(1, "1·1 + 1·0 + 1·1 + 0·0 = 2"), (2, "1 ÷ √4 = 0.5"), (3, "2.718 ÷ 7.085 ≈ 0.384"),
     (4, "0.384·0 + 0.233·1 + 0.384·1 ≈ 0.616")],
)  # fmt: skip
def test_each_step_writes_its_arithmetic_out(step, line):
    assert line in " ".join(texts(by_hand.picture(lesson(step=step))))


def test_later_steps_are_hidden():
    shown = texts(by_hand.picture(lesson(step=1)))
    assert "0.384" not in shown
    assert "0.767" not in shown
    assert "2" in shown


@pytest.mark.parametrize(("divisor", "sign"), [("none", ""), ("√d_k", "√4"), ("d_k", "4")])
def test_the_divisor_is_used_and_named(divisor, sign):
    state = lesson(divisor=divisor, step=2)
    assert state.steps.scaled[2, 0] == 2 / {"none": 1, "√d_k": 2, "d_k": 4}[divisor]
    assert (f"÷ {sign}" if sign else "undivided") in by_hand.picture(state)


def test_large_scores_are_exponentiated_after_subtracting_the_largest():
    lines = " ".join(texts(by_hand.picture(lesson(q=9 * Q, divisor="none", step=3))))
    assert "Subtract the largest, 18" in lines
    assert "e0\u200b = 1.000" in lines


@pytest.mark.parametrize("count", [1, 2, 3, 4])
@pytest.mark.parametrize("divisor", by_hand.DIVISORS)
def test_nothing_leaves_the_picture(count, divisor):
    rng = np.random.default_rng(count)
    for _ in range(5):
        q, k, v = (np.round(rng.uniform(-9, 9, (count, n)), 2) for n in (4, 4, 2))
        state = ByHand(TOKENS[:count], q, k, v, divisor, row=count - 1, step=3)
        plan = by_hand.layout(state)
        for block in plan.blocks.values():
            assert block.x >= 0
            assert block.right <= by_hand.WIDTH - 22
            assert block.bottom <= plan.height
        for step in (1, 2, 3, 4):
            picture = by_hand.picture(ByHand(TOKENS[:count], q, k, v, divisor, count - 1, step))
            for element in ET.fromstring(picture).findall(".//{*}text"):
                wide = 0.602 if "Mono" in element.get("font-family") else 0.55
                width = wide * float(element.get("font-size")) * len("".join(element.itertext()))
                share = {"start": 1, "middle": 0.5, "end": 0}[element.get("text-anchor")]
                assert float(element.get("x")) + share * width <= by_hand.WIDTH - 5


def test_the_same_state_gives_the_same_string_and_a_named_picture():
    one, two = by_hand.picture(lesson()), by_hand.picture(lesson())
    assert one == two
    root = ET.fromstring(one)
    assert root.get("role") == "img"
    assert root.find("{*}title").text == "What does “sat” take from each token?"
    assert "weights 0.384, 0.233, 0.384" in root.find("{*}desc").text
    assert not re.search(r"\d\.\d\d+(?=[\"])", re.sub(r">[^<]*<", "", one)), "unrounded coordinate"


# ── static form ──────────────────────────────────────────────────────────────────────────────────


def test_the_png_is_small_and_keeps_the_colours():
    import io

    from PIL import Image

    picture = by_hand.picture(lesson())
    data = png(picture)
    assert data == png(picture)
    assert len(data) <= 60_000
    image = Image.open(io.BytesIO(data)).convert("RGB")
    assert image.width == round(1.75 * size(picture)[0])
    present = {colour for _, colour in image.getcolors(256)}
    for role in COLOURED.values():
        fill = tuple(int(role.fill[i : i + 2], 16) for i in (1, 3, 5))
        assert min(max(abs(a - b) for a, b in zip(fill, c)) for c in present) <= 6, role.name
    assert image.getpixel((0, 0)) == (255, 255, 255)


def test_a_picture_without_a_size_is_refused():
    with pytest.raises(ValueError, match="viewBox"):
        size("<svg/>")
