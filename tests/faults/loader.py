"""One loader for all fault scenarios: a case of `scenarios.json` becomes runs of the real engine.

A case has `id` and, if it is a variant, `case`; `script` (the items of `fsm_agent.testing.script_file`), `tools`,
`hooks` and `permission` in the words of `behaviours.py`, `machine` and `limits`, `history`, and `runs`: what the host
does, one run after the other, each on what the run before left. A run has a `prompt` (null: none) and may be aborted:
`{"on": {"type": ..., field: value}}` when such an event is seen (`nth` of them), `{"after": seconds}`, or `"before"`; a
message may be queued (`send`: `on` and `message`).
`expect` says what must come of it (`expectations.py`). `only` names where it runs: `process`, `wire`, or both.

A long text may be written `{"say": text, "times": n}`, many steps `{"steps": [...], "times": n}`.

Scenarios whose part does not exist yet have no `script` but `waits_for`, the part.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import anthropic

from fsm_agent import AgentMachine, Deps, LoopLimits, RunResult
from fsm_agent.model.transport import SdkTransport
from fsm_agent.testing.invariants import ObservedRun, assert_invariants
from fsm_agent.testing.observed import Exchange, ObservedModel
from fsm_agent.testing.script_file import ScriptItem
from fsm_agent.testing.scripted import ScriptedModel
from fsm_agent.testing.server import MessagesServer
from fsm_agent.testing.simulation import simulate
from tests.faults.behaviours import Seen, make_hooks, make_permission, make_tools
from tests.faults.histories import HISTORIES

FILE = Path(__file__).parent / "scenarios.json"
MODEL, FALLBACK = "claude-sonnet-4-5", "claude-haiku-4-5"
KEYS = {
    *("id", "case", "script", "tools", "hooks", "permission", "machine", "limits", "history", "runs", "expect", "only"),
    *("waits_for", "elsewhere", "leaves_script"),
}


@dataclass(frozen=True)
class Case:
    """A fault scenario, or a variant of one."""

    words: Mapping[str, Any]

    @property
    def name(self) -> str:
        variant = self.words.get("case")
        return f"{self.words['id']}-{variant}" if variant else str(self.words["id"])

    @property
    def runs(self) -> list[Mapping[str, Any]]:
        return list(self.words.get("runs", [{"prompt": "go"}]))

    def script(self) -> list[Any]:
        return [ScriptItem.model_validate(item).item() for item in self.words["script"]]

    def plays_in(self, where: str) -> bool:
        return "script" in self.words and where in self.words.get("only", ["process", "wire"])

    def machine(self, model: ObservedModel, seen: Seen, deps: Mapping[str, Any]) -> AgentMachine:
        words = dict(self.words.get("machine", {}))
        return AgentMachine(
            words.pop("model", MODEL),
            tools=make_tools(self.words.get("tools", {}), seen),
            hooks=make_hooks(self.words.get("hooks", {}), seen),
            can_use_tool=make_permission(self.words.get("permission"), seen),
            limits=LoopLimits(**self.words.get("limits", {})),
            deps=Deps(call_model=model, **deps),
            strict=True,
            **words,
        )


@dataclass
class Played:
    """What came of a case."""

    case: Case
    machine: AgentMachine
    seen: Seen
    exchanges: list[Exchange]
    runs: list[ObservedRun] = field(default_factory=list)
    before: list[list[dict[str, Any]]] = field(default_factory=list)
    """The history that each run began with."""

    @property
    def results(self) -> list[RunResult]:
        return [run.result for run in self.runs]


def written_out(words: Any) -> Any:
    """Without the shorthands: `{"say": text, "times": n}` is a long text, `{"steps": [...], "times": n}` many steps.

    >>> written_out([{"steps": ["ping", {"text": {"say": "a", "times": 3}}], "times": 2}])
    ['ping', {'text': 'aaa'}, 'ping', {'text': 'aaa'}]
    """
    if isinstance(words, list):
        long = [each["steps"] * each["times"] if _keys(each) == {"steps", "times"} else [each] for each in words]
        return [written_out(each) for part in long for each in part]
    if _keys(words) == {"say", "times"}:
        return words["say"] * words["times"]
    return {key: written_out(each) for key, each in words.items()} if isinstance(words, dict) else words


def _keys(words: Any) -> set[str]:
    return set(words) if isinstance(words, dict) else set()


def load() -> list[Case]:
    """All cases of the file, those that wait for a part included."""
    found = [Case(written_out(words)) for words in json.loads(FILE.read_text(encoding="utf-8"))["scenarios"]]
    for case in found:
        assert set(case.words) <= KEYS, f"{case.name} has the unknown keys {set(case.words) - KEYS}"
    names = [case.name for case in found]
    assert len(set(names)) == len(names), "two cases have one name"
    return found


def matches(event: Any, words: Mapping[str, Any]) -> bool:
    """Whether the event has these fields; `text` and `delta` look into a stream event."""
    for name, value in words.items():
        if name == "delta":
            if (getattr(event, "event", {}).get("delta") or {}).get("type") != value:
                return False
        elif name == "text":
            if event.type != "stream_event" or value not in event.text:
                return False
        elif getattr(event, name, None) != value:
            return False
    return True


async def _follow(run: Any, words: Mapping[str, Any], events: list[Any]) -> float | None:
    """Follow a run to its end as its host; when it was aborted."""
    loop = asyncio.get_running_loop()
    abort, send = words.get("abort"), words.get("send")
    aborted: list[float] = []

    def stop() -> None:
        aborted.append(loop.time())
        run.abort("The user pressed escape.")

    timer = loop.call_later(abort["after"], stop) if isinstance(abort, dict) and "after" in abort else None
    if abort == "before":
        stop()
    left = abort.get("nth", 1) if isinstance(abort, dict) else 0
    async with run:
        async for event in run:
            events.append(event)
            if send is not None and matches(event, send["on"]):
                run.send(send["message"])
                send = None
            if isinstance(abort, dict) and "on" in abort and matches(event, abort["on"]):
                left -= 1
                if left == 0:
                    stop()
    if timer is not None:
        timer.cancel()
    return aborted[0] if aborted else None


async def play(
    case: Case, model: ObservedModel, deps: Mapping[str, Any], *, on_run: Callable[[Any], object] = lambda _: None
) -> Played:
    """Play the runs of a case one after the other; `on_run` is handed each before it begins."""
    seen = Seen()
    played = Played(case, case.machine(model, seen, deps), seen, model.exchanges)
    history: Any = HISTORIES[case.words["history"]]() if "history" in case.words else []
    for words in case.runs:
        loop = asyncio.get_running_loop()
        first, events = len(model.exchanges), list[Any]()
        played.before.append(history.messages if isinstance(history, RunResult) else list(history))
        run = played.machine.run(words.get("prompt", "go"), history=history)
        on_run(run)
        aborted_at = await _follow(run, words, events)
        observed = ObservedRun(
            played.machine,
            events,
            run.result,
            model.exchanges[first:],
            aborted_at=aborted_at,
            ended_at=loop.time(),
        )
        played.runs.append(observed)
        history = run.result
    return played


def play_in_process(case: Case) -> Played:
    """On the virtual clock, with nothing left behind; every invariant holds, and the script was served whole."""

    scripted = ScriptedModel(case.script())

    async def program() -> Played:
        return await play(case, ObservedModel(scripted), {})

    played = simulate(program, max_time=36_000).result
    assert scripted.open_streams == 0
    assert not scripted.unexpected, scripted.unexpected
    assert not scripted.refusals, scripted.refusals
    if not case.words.get("leaves_script"):
        scripted.assert_complete()
    for run in played.runs:
        assert_invariants(run)
    assert played.seen.running == []
    return played


async def _no_wait(seconds: float) -> None:
    """Waits are the virtual clock's business; over a real socket a short one is none, a long one an eternity."""
    await (asyncio.Event().wait() if seconds >= 60 else asyncio.sleep(0))


async def play_over_the_wire(case: Case) -> Played:
    """Over the real SDK and a real socket; every invariant holds, and no task is left."""
    tasks = asyncio.all_tasks()
    async with (
        MessagesServer(case.script()) as server,
        anthropic.AsyncAnthropic(base_url=server.url, api_key="test") as client,
    ):
        played = await play(case, ObservedModel(SdkTransport(client)), {"sleep": _no_wait})
        server.assert_no_refusals()
        if not case.words.get("leaves_script"):
            server.assert_complete()
        assert len(server.requests) == len(played.exchanges)
    assert asyncio.all_tasks() == tasks
    for run in played.runs:
        assert_invariants(run)
    assert played.seen.running == []
    return played
