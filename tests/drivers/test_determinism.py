"""The same script and the same outcomes give the same requests, history and trace, byte for byte."""

from __future__ import annotations

import asyncio
import itertools
import json
import os
import random
import subprocess
import sys
from pathlib import Path

from fsm_agent import AgentMachine, Deps, LoopLimits, tool
from fsm_agent.testing import ApiError, Item, Reply, ScriptedModel, text, thinking, tool_use
from fsm_agent.testing.simulation import RandomChoices, simulate

SCRIPT: list[Item] = [
    Reply(
        thinking("hm"),
        text("I look."),
        tool_use("look", {"place": "a"}, id="t1"),
        tool_use("look", {"place": "b"}, id="t2"),
        tool_use("change", {"place": "a"}, id="t3"),
        tool_use("look", {"place": "c"}, id="t4"),
    ),
    ApiError(500, "api_error"),
    Reply(tool_use("change", {"place": "d"}, id="t5"), tool_use("nothing", {}, id="t6")),
    Reply("Half of ", stop="max_tokens"),
    Reply("Half of ", stop="max_tokens"),
    Reply("it."),
]


def one_run(seed: int) -> tuple[list[bytes], str, tuple[str, ...]]:
    """Tools take a drawn time, and the order in which the event loop wakes tasks is drawn too."""
    chance = random.Random(seed)

    @tool(read_only=True)
    async def look(place: str) -> str:
        """Look at a place."""
        await asyncio.sleep(chance.random() * 50)
        return f"seen {place}"

    @tool
    async def change(place: str) -> dict[str, object]:
        """Change a place."""
        await asyncio.sleep(chance.random() * 50)
        return {"changed": place, "kinds": sorted({"x", "y", "z"})}

    model = ScriptedModel(SCRIPT)
    machine = AgentMachine(
        "claude-sonnet-4-5",
        tools=[look, change],
        system="Be brief.",
        limits=LoopLimits(max_turns=9),
        deps=Deps(call_model=model, random=chance, uuid=lambda: "run"),
        strict=True,
    )

    async def program() -> tuple[str, tuple[str, ...]]:
        result = await machine.run("go")
        assert result.reason == "completed"
        assert result.text == "Half of it."
        return json.dumps(result.messages), result.trace

    messages, trace = simulate(program, choices=RandomChoices(seed)).result
    return model.raw_calls, messages, trace


def test_a_hundred_runs_with_random_tool_delays_are_one() -> None:
    first = one_run(0)
    assert all(one_run(seed) == first for seed in range(1, 100))


def test_each_request_begins_as_the_one_before() -> None:
    """But for the number of output tokens, and as long as nothing is edited: what the prompt cache lives on."""
    requests, _, _ = one_run(1)
    messages = [request[request.index(b'"messages":') :].removesuffix(b"]}") for request in requests]
    heads = {request[request.index(b',"stream"') : request.index(b'"messages":')] for request in requests}
    assert len(heads) == 1
    for before, after in itertools.pairwise(messages):
        assert after.startswith(before)


def test_the_hash_seed_of_the_process_does_not_matter() -> None:
    code = "from tests.drivers.test_determinism import one_run; print(one_run(3))"
    root = Path(__file__).parent.parent.parent
    seen = {
        subprocess.run(
            [sys.executable, "-c", code],
            cwd=root,
            env={**os.environ, "PYTHONHASHSEED": seed, "PYTHONPATH": str(root)},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed in ("0", "1", "2")
    }
    assert len(seen) == 1
