# ruff: noqa: E501 - texts of the library stand here as they are
"""Bugs of the request, the stream, the reply and the failures."""

from tests.mutation.mutant import Mutant

MODEL = (
    Mutant(
        "the response is not closed", "model/call.py", "            await self._close(stream)\n", "            pass\n"
    ),
    Mutant("pings count as progress", "model/call.py", "progress=not alive_only", "progress=True"),
    Mutant(
        "pings do not count as life",
        "model/call.py",
        "            watch.heard(progress=not alive_only)\n            if alive_only:\n                continue\n",
        "            if alive_only:\n                continue\n            watch.heard(progress=True)\n",
    ),
    Mutant(
        "a slow consumer counts as silence",
        "model/silence.py",
        "        self._since = None\n\n    def __enter__",
        "\n    def __enter__",
    ),
    Mutant("the idle limit is twice as long", "model/silence.py", "self._idle = idle\n", "self._idle = 2 * idle\n"),
    Mutant("the timer of a stream is left running", "model/silence.py", "        self._timer.cancel()\n", ""),
    Mutant("an abort is taken for silence", "model/silence.py", " and not others:", ":"),
    Mutant(
        "an error event of the stream is passed over",
        "model/call.py",
        '            if kind == "error":\n                return classify(event)\n',
        '            if kind == "error":\n                continue\n',
    ),
    Mutant(
        "a failure after the whole message discards it",
        "model/call.py",
        "        if self.reply.finished:\n",
        "        if self.reply.finished and failure is None:\n",
    ),
    Mutant(
        "an early end of the stream is a whole message",
        "model/call.py",
        "        self.failure = failure or _early_end(self.reply)\n        return outcome_of_lost(self.reply, self.failure)",
        "        self.failure = failure or _early_end(self.reply)\n        return outcome_of_lost(self.reply, self.failure) if failure else ResponseOutcome.END_TURN",
    ),
    Mutant(
        "a fresh id is not told to the consumer",
        "model/call.py",
        'if kind == "content_block_start" and self.reply.renamed:',
        "if False:",
    ),
    Mutant(
        "cut JSON is run",
        "model/outcomes.py",
        "        return _R.TOOL_USE if reply.tool_calls else _R.MALFORMED_TOOL_USE",
        "        return _R.TOOL_USE",
    ),
    Mutant(
        "calls of a truncated message are run",
        "model/outcomes.py",
        "    if outcome in (_R.END_TURN, _R.PAUSE_TURN) and reply.tool_calls:",
        "    if reply.tool_calls:",
    ),
    Mutant(
        "calls of a message that ended otherwise are not run",
        "model/outcomes.py",
        "    if outcome in (_R.END_TURN, _R.PAUSE_TURN) and reply.tool_calls:\n        return _R.TOOL_USE\n",
        "",
    ),
    Mutant(
        "a reply with nothing visible completes",
        "model/outcomes.py",
        "    if outcome is _R.END_TURN and not reply.has_visible_output:\n        return _R.EMPTY\n",
        "",
    ),
    Mutant(
        "a cut reply with a complete call is kept",
        "model/outcomes.py",
        "reply.has_complete_text and not reply.tool_calls",
        "reply.has_complete_text",
    ),
    Mutant(
        "what was received of a cut reply is never kept",
        "model/outcomes.py",
        "        return _R.CUT\n",
        "        return failure.outcome\n",
    ),
    Mutant(
        "a repeated tool use id is kept",
        "model/reply.py",
        "while fresh in self._own_ids or fresh in self._known_ids:",
        "while fresh in self._own_ids:",
    ),
    Mutant("two calls of a message with one id", "model/reply.py", "        self._own_ids.add(fresh)\n", ""),
    Mutant(
        "a message that ends inside a call is whole",
        "model/reply.py",
        "        if reason in _WHOLE_STOPS and any(",
        "        if False and any(",
    ),
    Mutant(
        "the text of a block that was not closed is lost",
        "model/reply.py",
        '            if (block.complete or block.kind == "text") and',
        "            if block.complete and",
    ),
    Mutant(
        "a client tool use stays in a cut reply",
        "model/reply.py",
        " and not block.is_client_call and _fit(block)",
        " and _fit(block)",
    ),
    Mutant(
        "unsigned thinking is sent back",
        "model/reply.py",
        '        return bool(block.wire["signature"])',
        "        return True",
    ),
    Mutant(
        "thinking ends a message",
        "model/reply.py",
        "    while end and blocks[end - 1].kind in _THINKING:",
        "    while False and blocks[end - 1].kind in _THINKING:",
    ),
    Mutant(
        "blank texts are sent back",
        "model/reply.py",
        "        return bool(block.text.strip())\n",
        "        return True\n",
    ),
    Mutant(
        "output tokens of the first event are kept",
        "model/reply.py",
        "Usage.from_wire({**self._first_usage, **final})",
        "Usage.from_wire({**final, **self._first_usage})",
    ),
    Mutant(
        "server tool results without a call are kept",
        "model/reply.py",
        "block.answers not in waiting and (block.answers in seen or not self._awaited(block.answers))",
        "False",
    ),
    Mutant(
        "cached tokens are not counted",
        "model/usage.py",
        "cache_read_input_tokens=self.cache_read_input_tokens + other.cache_read_input_tokens",
        "cache_read_input_tokens=self.cache_read_input_tokens",
    ),
    Mutant(
        "retry-after is ignored",
        "model/backoff.py",
        "    return max(drawn, asked * (1 + _SPREAD * fraction))",
        "    return drawn",
    ),
    Mutant(
        "retry-after above the cap is shortened",
        "model/backoff.py",
        "        return None\n    return max(drawn, ",
        "        return limits.retry_after_cap\n    return max(drawn, ",
    ),
    Mutant(
        "the backoff has no cap",
        "model/backoff.py",
        "min(limits.backoff_cap, limits.backoff_base * 2.0 ** min(max(retry, 0), _MOST_DOUBLINGS))",
        "limits.backoff_base * 2.0 ** min(max(retry, 0), _MOST_DOUBLINGS)",
    ),
    Mutant(
        "the backoff does not grow",
        "model/backoff.py",
        "limits.backoff_base * 2.0 ** min(max(retry, 0), _MOST_DOUBLINGS)",
        "limits.backoff_base",
    ),
    Mutant(
        "milliseconds are taken for seconds",
        "model/retry_after.py",
        "return milliseconds / 1000",
        "return milliseconds",
    ),
    Mutant(
        "x-should-retry is ignored",
        "model/classify.py",
        "    if told is False and outcome in",
        "    if False and outcome in",
    ),
    Mutant(
        "a rate limit is overload",
        "model/classify.py",
        '"rate_limit_error": _R.RETRYABLE',
        '"rate_limit_error": _R.FATAL',
    ),
    Mutant(
        "overload inside a stream is fatal",
        "model/classify.py",
        '"overloaded_error": _R.OVERLOADED',
        '"overloaded_error": _R.FATAL',
    ),
    Mutant(
        "a 529 is like any other",
        "model/classify.py",
        "    if error.status == 529 and outcome is _R.RETRYABLE:\n        return _R.OVERLOADED\n",
        "",
    ),
    Mutant(
        "an overflow is a bad request",
        "model/classify.py",
        "    if _TOO_LONG.search(error.message):\n        return _R.PROMPT_TOO_LONG\n",
        "",
    ),
    Mutant(
        "a refused image is a bad request",
        "model/classify.py",
        "    if _MEDIA.search(error.message):\n        return _R.MEDIA_REJECTED\n",
        "",
    ),
)
