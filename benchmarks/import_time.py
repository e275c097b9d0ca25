"""What `import fsm_agent` costs beside `import pydantic`, and what it leaves for later."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from statistics import median

from benchmarks.rows import Row

__all__ = ["rows"]

TIMES = 7
LATER = ("anthropic", "httpx2", "mcp", "networkx", "rich")
"""What is to be imported only when it is first used."""
_TIMED = "import time; t = time.process_time(); {code}; print(time.process_time() - t)"
_LOADED = "import sys; {code}; print(*(name for name in {names!r} if name in sys.modules))"


def rows() -> Iterator[Row]:
    codes = {
        "pydantic": "import pydantic",
        "fsm_agent": "import fsm_agent",
        "machine": "from fsm_agent import AgentMachine, tool",
        "client": "import anthropic; anthropic.AsyncAnthropic(api_key='none')",
    }
    seconds: dict[str, list[float]] = {name: [] for name in codes}
    for _ in range(TIMES):
        for name, code in codes.items():
            seconds[name].append(float(_output(_TIMED.format(code=code))))
    ms = {name: median(times) * 1_000 for name, times in seconds.items()}
    figures = f"{ms['fsm_agent']:.1f} against {ms['pydantic']:.1f} ms of CPU"
    yield Row("import fsm_agent, against import pydantic", figures, ms["fsm_agent"] / ms["pydantic"], 1.1)
    yield _later("import fsm_agent", 0)
    figures = f"{ms['machine']:.0f} against {ms['client']:.0f} ms of CPU"
    yield Row("AgentMachine and tool, against a client of the SDK", figures, ms["machine"] / ms["client"])
    yield _later(codes["machine"])  # rich comes with structlog, where both are installed


def _later(code: str, most: int | None = None) -> Row:
    loaded = _output(_LOADED.format(code=code, names=LATER)).split()
    figures = f"of {', '.join(LATER)}: {', '.join(loaded) or 'none'}"
    return Row(f"heavy libraries loaded by: {code}", figures, len(loaded), most)


def _output(code: str) -> str:
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.strip()
