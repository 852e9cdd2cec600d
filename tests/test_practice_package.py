"""The package as a whole: cheap to import, and the same in every run."""

import subprocess
import sys

import pytest

from helpers.practice import Drill, check, hint, predict, quiz, solution


def test_importing_it_is_cheap():
    code = (
        "import sys; import helpers.practice;"
        "print([m for m in ('torch', 'matplotlib', 'pandas', 'PIL') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"


DISPLAYS = [
    lambda: predict("1.1"),
    lambda: quiz("1"),
    lambda: hint("1.1"),
    lambda: solution("1.1"),
    lambda: predict("2.8"),
    lambda: solution("2.4"),
    lambda: Drill(3),
    lambda: check("1.1", lambda q, k: None),
    lambda: check("1.3", lambda q, k, v: q @ k),
    lambda: check("2.2", lambda d_k, mean, std: (d_k, d_k)),
    lambda: check("2.4", lambda q, k, heads: [q @ k.T] * heads),
]


@pytest.mark.parametrize("make", DISPLAYS)
def test_two_runs_give_the_same_output(make):
    def shown():
        bundle = make()._repr_mimebundle_()
        data = bundle[0] if isinstance(bundle, tuple) else bundle
        return {mime: text for mime, text in data.items() if mime.startswith("text/")}

    first, second = shown(), shown()
    assert first == second
    assert set(first) == {"text/plain", "text/html"}


@pytest.mark.parametrize("make", DISPLAYS[:7])
def test_a_live_display_offers_the_widget_too(make):
    data, _ = make()._repr_mimebundle_()
    assert "application/vnd.jupyter.widget-view+json" in data
