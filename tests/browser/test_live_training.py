"""A model trains, and the figure follows while the cell still runs."""

import re

from lab import START_RUN
from playwright.sync_api import expect

SETUP = """
from helpers.explorers import LiveRuns
from helpers.training import TrainConfig, train_together
config = TrainConfig(d_head=16, heads=2, context=32, batch=4, steps=400, measure_every=20)
"""
TRAIN = """
live = LiveRuns(["with scale", "no scale"], config.steps, {"bigram": 2.4})
display(live)
logs = train_together([config, config.but(scale="none")], on_measure=live.note)
print("trained", [log.config.scale for log in logs])
"""


def test_live_runs(lab, lab_server):
    path = lab_server.write_notebook("my-lessons/LiveRuns.ipynb", SETUP.strip(), TRAIN.strip())
    lab.open(path)
    lab.page.evaluate(START_RUN)
    steps = lab.page.get_by_text(re.compile(r"^\d+ of 400 steps$"))
    expect(steps).to_have_count(2, timeout=120_000)
    early = steps.first.inner_text()
    picture = lab.page.locator(".ex-picture svg")
    lines = picture.locator("path").count()
    assert lab.page.evaluate("window.testRun") == "running"
    expect(steps.first).not_to_have_text(early, timeout=60_000)
    assert lab.page.evaluate("window.testRun") == "running"
    lab._wait("() => window.testRun !== 'running'", timeout=180_000)
    expect(lab.page.get_by_text("400 of 400 steps")).to_have_count(2)
    expect(picture).to_contain_text("no scale")
    expect(picture).to_contain_text("bigram")
    assert picture.locator("path").count() >= lines
    expect(lab.output_of("live")).to_contain_text("trained ['1/√d', 'none']")
    lab.assert_quiet()
