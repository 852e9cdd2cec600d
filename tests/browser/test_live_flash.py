"""Every control of lesson 5's explorers is moved in a real browser, and the numbers follow."""

import pytest
from playwright.sync_api import expect


@pytest.fixture
def explorer(lab, lab_server):
    def show(name: str):
        path = f"my-lessons/{name}.ipynb"
        lab_server.write_notebook(path, f"from helpers.explorers import {name}", f"{name}()")
        lab.open(path).run_all()
        return lab.output_of(f"{name}()")

    return show


def test_online_softmax(lab, explorer):
    area = explorer("OnlineSoftmax")
    said, picture = area.locator(".ex-said"), area.locator(".ex-picture svg")

    def click(button: str):
        area.get_by_role("button", name=button, exact=True).click()

    def press(slider: str, key: str):
        lab.control(slider, "slider", within=area).press(key)

    expect(said).to_contain_text("Block 1 of 4, keys 1 to 3, scores 0.2, −0.5, 0.6")
    back, forward = (area.get_by_role("button", name=name) for name in ("◀ Back", "Next ▶"))
    expect(back).to_be_disabled()
    forward.click()
    expect(said).to_contain_text("Block 2 of 4")
    expect(picture).to_contain_text("softmax, keys 1–6")
    press("Step", "End")
    expect(said).to_contain_text("Block 4 of 4")
    expect(said).to_contain_text("output (6.096, 2.091)")
    expect(said).to_contain_text("error 0.000")
    expect(forward).to_be_disabled()
    expect(picture).to_contain_text("l   = 0.150 · 4.105 + (0.202 + 0.333 + 1.000) ≈ 2.149")

    click("left out")
    expect(said).to_contain_text("0.150 is left out")
    expect(said).to_contain_text("error 3.085")
    expect(picture).to_contain_text("what came first counts too much")
    for row, error in (("largest first", "0.000"), ("all alike", "0.000")):
        click(row)
        expect(said).to_contain_text("m stays")
        expect(said).to_contain_text(f"error {error}")
    click("large")
    expect(picture).to_contain_text("716")
    click("yes")
    expect(said).to_contain_text("error 0.000")
    back.click()
    expect(said).to_contain_text("Block 3 of 4")
    expect(picture).to_contain_text("(e^716 itself overflows float64)")

    press("Block", "ArrowRight")
    expect(said).to_contain_text("Block 3 of 3, keys 9 to 12")
    press("Block", "End")
    expect(said).to_contain_text("Block 1 of 1, keys 1 to 12")
    expect(forward).to_be_disabled()

    entry = area.get_by_label("Scores", exact=True)
    entry.fill("1, 2, many")
    entry.press("Enter")
    expect(said).to_contain_text("“many” is not a number")
    expect(said).to_contain_text("Block 1 of 1, keys 1 to 12")  # the last good picture stays
    press("Block", "Home")  # everything else goes on
    expect(said).to_contain_text("Block 1 of 12, key 1, scores 711")
    entry.fill("1, 2, 0.5")
    entry.press("Enter")
    expect(said).to_contain_text("Block 1 of 3, key 1, scores 1.0.")
    expect(said).not_to_contain_text("not a number")
    expect(area.get_by_role("button", name="large", exact=True)).to_have_attribute(
        "aria-pressed", "false"
    )
    click("largest last")
    expect(said).to_contain_text("Block 1 of 12, key 1, scores 0.2")
    assert entry.input_value().startswith("0.2, −0.5, 0.6")
    lab.assert_quiet()


def test_tiles(lab, explorer):
    area = explorer("Tiles")
    said, picture = area.locator(".ex-said"), area.locator(".ex-picture svg")

    def click(button: str):
        area.get_by_role("button", name=button, exact=True).click()

    def press(slider: str, *keys: str):
        for key in keys:
            lab.control(slider, "slider", within=area).press(key)

    expect(said).to_contain_text("blocks of 128 queries and 64 keys fit (48 KB); 128 tiles")
    expect(said).to_contain_text("Tile 1 of 128")
    expect(area.get_by_role("button", name="◀ Back")).to_be_disabled()
    click("Next ▶")
    expect(said).to_contain_text("Tile 2 of 128: queries 1–128 meet keys 65–128")
    expect(picture).to_contain_text("← reads 16 KB: K, V")
    press("Tile", "ArrowRight", "ArrowRight")
    expect(said).to_contain_text("Tile 4 of 128")
    click("◀ Back")
    expect(said).to_contain_text("Tile 3 of 128")
    click("To the end")
    expect(said).to_contain_text("Moved so far 2.25 MB of 2.25 MB")
    expect(picture).to_contain_text("2.25 MB of 2.25 MB")
    expect(picture).to_contain_text("writes 16.2 KB: O, lse")
    expect(area.get_by_role("button", name="Next ▶")).to_be_disabled()

    click("causal")
    expect(said).to_contain_text("72 tiles, 56 more skipped as causal")
    expect(picture).to_contain_text("never touched")
    click("keys")
    expect(said).to_contain_text("keys in the outer loop")
    expect(picture).to_contain_text("16 × 8 tiles of 64 × 128")
    click("queries")
    click("none")
    expect(said).to_contain_text("queries in the outer loop")
    expect(picture).not_to_contain_text("never touched")

    press("T", "End")
    expect(said).to_contain_text("The 4096 × 4096 scores would take 32 MB")
    click("128")
    press("Fast memory", "Home")
    expect(said).to_contain_text("16 KB of fast memory: blocks of 16 queries and 16 keys fit")
    expect(said).to_contain_text("less: tiled moves 3.89 times as much")
    expect(picture).to_contain_text("a field drawn is 8 × 8 of them")
    click("To the end")
    expect(said).to_contain_text("Tile 65,536 of 65,536")
    press("Fast memory", "End")
    expect(said).to_contain_text("Tile 512 of 512")
    expect(said).to_contain_text("3.88 times as much as tiled")
    click("32")
    press("T", "Home")
    expect(said).to_contain_text("T = 128, d = 32")
    lab.assert_quiet()
