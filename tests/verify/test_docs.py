"""The output on the page about verification is what its examples print."""

import contextlib
import io
import re
from pathlib import Path

import pytest

PAGE = Path(__file__).parents[2] / "docs" / "verification.md"
SHOWN = re.findall(r"^```python\n(.*?)^```\n\n^```text\n(.*?)^```$", PAGE.read_text("utf-8"), re.MULTILINE | re.DOTALL)


@pytest.mark.parametrize(("program", "output"), SHOWN, ids=range(1, len(SHOWN) + 1))
def test_an_example_prints_what_the_page_shows(program, output):
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(program, {})
    assert printed.getvalue() == output


def test_every_example_shows_its_output():
    assert len(SHOWN) == PAGE.read_text("utf-8").count("```python") == 5
