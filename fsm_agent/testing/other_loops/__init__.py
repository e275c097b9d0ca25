"""Other agent loops under our scenarios: any program that speaks to a Messages API, seen from the server's side.

A loop is given as a `Drive`, an async function of a base URL, a prompt and tools that returns an `Outcome`;
`probe_loop` plays faults on it and prints what holds.

>>> async def drive(base_url, prompt, tools):
...     import anthropic
...     async with anthropic.AsyncAnthropic(base_url=base_url, api_key="test") as client:
...         message = await client.messages.create(
...             model="claude-haiku-4-5", max_tokens=1000, messages=[{"role": "user", "content": prompt}])
...     return Outcome(message.content[0].text, ended=message.stop_reason)
>>> import asyncio
>>> scenarios = {name: WIRE_SCENARIOS[name] for name in ["529 once", "cut inside the text"]}
>>> report = asyncio.run(probe_loop(drive, scenarios=scenarios))
>>> report.faults
["cut inside the text, goal: it ended with max_tokens and the text 'The answer is:'"]
"""

from fsm_agent.testing.other_loops.judging import PROPERTIES, PROPERTY_WORDS, Judgement, Property
from fsm_agent.testing.other_loops.observed import Drive, Observed, Outcome
from fsm_agent.testing.other_loops.probe import Finding, LoopReport, probe_loop, probe_scenario
from fsm_agent.testing.other_loops.scenarios import ANSWER, WIRE_SCENARIOS, WireScenario
from fsm_agent.testing.other_loops.tools import RecordedCall, ToolFunction

__all__ = [
    "ANSWER",
    "PROPERTIES",
    "PROPERTY_WORDS",
    "WIRE_SCENARIOS",
    "Drive",
    "Finding",
    "Judgement",
    "LoopReport",
    "Observed",
    "Outcome",
    "Property",
    "RecordedCall",
    "ToolFunction",
    "WireScenario",
    "probe_loop",
    "probe_scenario",
]
