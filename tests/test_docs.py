"""What the documentation shows is true: its examples run, its links lead somewhere."""

import asyncio
import doctest
import importlib
import os
import pkgutil
import re
import sys
from pathlib import Path

import pytest

import fsm_agent
from fsm_agent.testing import MessagesServer, Repeat, Reply

ROOT = Path(__file__).parent.parent
PAGES = [ROOT / "README.md", ROOT / "CHANGELOG.md", *sorted((ROOT / "docs").rglob("*.md"))]
MODULES = sorted(
    module.name
    for module in pkgutil.walk_packages(fsm_agent.__path__, "fsm_agent.")
    if not module.name.endswith(".__main__")  # those run when they are imported
)


def examples(page: Path) -> list[str]:
    return re.findall(r"^```python\n(.*?)^```$", page.read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL)


@pytest.mark.parametrize("name", MODULES)
def test_the_examples_in_docstrings_are_true(name: str):
    assert doctest.testmod(importlib.import_module(name)).failed == 0


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_lead_to_files_that_exist(page: Path):
    links = re.findall(r"\]\(([^)#]+)(?:#[^)]*)?\)", page.read_text(encoding="utf-8"))
    broken = [link for link in links if "://" not in link and not (page.parent / link).exists()]
    assert not broken


@pytest.mark.slow
@pytest.mark.parametrize("page", [page for page in PAGES if examples(page)], ids=lambda page: page.name)
async def test_the_python_examples_of_a_page_run(page: Path):
    async with MessagesServer([Repeat(Reply("It promises a proof."), "always")]) as server:
        environment = os.environ | {"ANTHROPIC_BASE_URL": server.url, "ANTHROPIC_API_KEY": "test"}
        for example in examples(page):
            process = await asyncio.create_subprocess_exec(
                *[sys.executable, "-W", "error", "-c", example],
                cwd=ROOT,
                env=environment,
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.STDOUT,
            )
            output, _ = await process.communicate()
            assert process.returncode == 0, output.decode()
