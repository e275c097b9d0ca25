"""Events and results as data: JSON and back, pickled, copied; and the public names in a typed program."""

from __future__ import annotations

import copy
import json
import pickle

from pydantic import TypeAdapter

from fsm_agent import Event, Hooks, Prevent, StopHookInput
from fsm_agent.testing import ApiError, Reply, tool_use
from tests.breaking import user_program
from tests.breaking.agents import machine


async def prevent(_: StopHookInput) -> Prevent:
    return Prevent("Not now.")


async def test_every_event_comes_back_from_json_and_from_a_pickle() -> None:
    script = [Reply(tool_use("echo", {"x": "ü"})), ApiError(529, "overloaded_error"), Reply("done")]
    agent, _ = machine(*script, hooks=Hooks(stop=[prevent]))
    events = [event async for event in agent.run("hi")]
    adapter: TypeAdapter[Event] = TypeAdapter(Event)
    for event in events:
        assert adapter.validate_json(adapter.dump_json(event)) == event
        assert adapter.validate_python(json.loads(event.model_dump_json())) == event
        assert pickle.loads(pickle.dumps(event)) == event
    assert {event.type for event in events} >= {"transition", "stream_event", "progress", "system", "terminal"}


async def test_a_result_can_be_pickled_and_copied_and_gone_on_from() -> None:
    agent, model = machine(Reply(tool_use("echo", {"x": "a"})), Reply("one"), Reply("two"), Reply("three"))
    result = await agent.run("hi")
    for twin in (pickle.loads(pickle.dumps(result)), copy.deepcopy(result)):
        assert twin.messages == result.messages
        assert twin.reason is result.reason
        assert (await agent.run("more", history=twin)).ok
    assert model.calls[-1]["messages"][:4] == json.loads(json.dumps(result.messages))


async def test_a_failure_in_a_result_can_be_pickled() -> None:
    agent, _ = machine(ApiError(401, "authentication_error"))
    result = await agent.run("hi")
    assert pickle.loads(pickle.dumps(result)).error == result.error
    assert result.error.status == 401


async def test_the_typed_program_of_a_user_runs() -> None:
    code, aborted, lines, output = await user_program.main()
    assert (code, aborted, output) == (0, 130, user_program.Weather(town="Oslo", degrees=21))
    assert lines[-2:] == ['completed: {"town": "Oslo", "degrees": 21}', "3"]
