"""Every control of the later explorers is moved in a real browser, and the numbers follow."""

import re

from playwright.sync_api import expect


def explorer(lab, lab_server, name: str):
    path = f"my-lessons/{name}.ipynb"
    lab_server.write_notebook(path, f"from helpers.explorers import {name}", f"{name}()")
    lab.open(path).run_all()
    return lab.output_of(f"{name}()")


def number(said, before: str) -> float:
    """The number that follows these words in the explorer's sentence."""
    text = said.inner_text().split(before)[1]
    return float(re.match(r"\s*(−?[\d.]*\d)", text)[1].replace("−", "-"))


def settled(lab, said):
    """Wait until the sentence has stopped changing: a drag is many moves."""
    before = None
    while before != (before := said.inner_text()):
        lab.page.wait_for_timeout(500)


def test_dot_product_spread(lab, lab_server):
    area = explorer(lab, lab_server, "DotProductSpread")
    said, picture = area.locator(".ex-said"), area.locator(".ex-picture svg")

    def press(slider: str, key: str, times: int = 1):
        handle = lab.control(slider, "slider", within=area)
        for _ in range(times):
            handle.press(key)

    def click(button: str):
        area.get_by_role("button", name=button, exact=True).click()

    expect(said).to_contain_text("d_k = 64, scores undivided. Standard deviation: predicted 8.00")
    assert abs(number(said, "measured") - 8) < 0.4
    press("dₖ", "ArrowRight", 2)
    expect(said).to_contain_text("d_k = 256, scores undivided. Standard deviation: predicted 16.0")
    expect(picture).to_contain_text("= 256?")
    click("÷ √dₖ")
    expect(said).to_contain_text("Standard deviation: predicted 1.00")
    click("÷ dₖ")
    expect(said).to_contain_text("Standard deviation: predicted 0.062")
    assert number(said, "entropy") > 0.99
    click("no scale")
    press("dₖ", "ArrowLeft", 2)
    press("std σ", "ArrowRight", 4)
    expect(said).to_contain_text("Standard deviation: predicted 32.0")
    press("std σ", "ArrowLeft", 4)
    press("mean μ", "End")
    expect(said).to_contain_text("predicted 13.9")
    expect(said).to_contain_text("Within a row: predicted 11.3")
    expect(said).to_contain_text("Mean: predicted 64.0")
    press("mean μ", "Home")
    press("q with k: ρ", "ArrowRight", 5)
    expect(said).to_contain_text("Within a row: predicted 6.93")
    click("one key in 8")
    expect(said).to_contain_text("Within a row: predicted 13.3")
    press("q with k: ρ", "Home")
    press("inside a vector: r", "ArrowRight", 4)
    expect(said).to_contain_text("Standard deviation: predicted 15.0")
    press("inside a vector: r", "Home")
    expect(said).to_contain_text("Standard deviation: predicted 8.00")
    for entries in ("uniform", "±1", "heavy tails", "normal"):
        before = said.inner_text()
        click(entries)
        expect(said).not_to_have_text(before)
        expect(said).to_contain_text("Standard deviation: predicted 8.00")
    before = said.inner_text()
    click("New sample")
    expect(said).not_to_have_text(before)
    lab.assert_quiet()


def test_softmax_saturation(lab, lab_server):
    area = explorer(lab, lab_server, "SoftmaxSaturation")
    said, picture = area.locator(".ex-said"), area.locator(".ex-picture svg")
    expect(said).to_contain_text("softmax(1 × [2, 1, 0.5]) = [0.63, 0.23, 0.14]")

    gain = lab.control("gain", "slider", within=area)
    for _ in range(14):
        gain.press("ArrowRight")
    expect(said).to_contain_text("softmax(11.3 × [2, 1, 0.5]) = [1.00, 0.00, 0.00]")
    for _ in range(14):
        gain.press("ArrowLeft")

    # Drag the second score's dot up, as a hand would.
    dot = lab.control("score 2", "slider", within=area)
    box = dot.bounding_box()
    x, y = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2
    lab.page.mouse.move(x, y)
    lab.page.mouse.down()
    lab.page.mouse.move(x, y - 20, steps=5)
    lab.page.mouse.up()
    expect(said).not_to_contain_text("[2, 1, 0.5]")
    settled(lab, said)
    raised = float(re.search(r"\[2, ([\d.]+), 0.5\]", said.inner_text())[1])
    assert 1.5 < raised < 3.5
    expect(picture).to_contain_text(f"{raised:.1f}")
    # The live dot lies on the drawn one.
    circles = picture.locator("circle").nth(1).bounding_box()
    moved = dot.bounding_box()
    assert abs(circles["x"] + circles["width"] / 2 - moved["x"] - moved["width"] / 2) < 2
    assert abs(circles["y"] + circles["height"] / 2 - moved["y"] - moved["height"] / 2) < 3

    count = lab.control("scores", "slider", within=area)
    count.press("End")
    expect(picture.locator("circle")).to_have_count(8)
    expect(lab.control("score 8", "slider", within=area)).to_be_visible()
    count.press("Home")
    expect(picture.locator("circle")).to_have_count(3)

    area.get_by_role("button", name="many random rows").click()
    expect(said).to_contain_text("200 rows of T = 64")
    length = lab.control("T", "slider", within=area)
    length.press("End")
    expect(said).to_contain_text("T = 1024")
    expect(said).to_contain_text("√(2 ln T) = 3.72")
    expect(lab.control("score 1", "slider", within=area)).to_have_count(0)
    area.get_by_role("button", name="these scores").click()
    expect(lab.control("score 1", "slider", within=area)).to_be_visible()
    lab.assert_quiet()
