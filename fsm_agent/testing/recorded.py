"""A model that replays recorded traffic, in process."""

from collections.abc import Sequence
from pathlib import Path

from fsm_agent.testing.recordings import Exchange, load_cassette, recorded_script
from fsm_agent.testing.scripted import ScriptedModel

__all__ = ["RecordedModel"]


class RecordedModel(ScriptedModel):
    """Answers the n-th request with the n-th recorded response.

    Requests are not compared and, unless `validate` says so, not judged: a recording may come from another client.

    >>> RecordedModel([{"response": {"status": 200, "headers": {}, "sse": ""}}]).exchanges[0]["response"]["status"]
    200
    """

    def __init__(self, source: str | Path | Sequence[Exchange], *, validate: bool = False, strict: bool = True) -> None:
        self.exchanges = load_cassette(source) if isinstance(source, str | Path) else list(source)
        super().__init__(recorded_script(self.exchanges), validate=validate, strict=strict)
