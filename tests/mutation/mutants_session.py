# ruff: noqa: E501 - texts of the library stand here as they are
"""Bugs of the history and of the context pipeline."""

from tests.mutation.mutant import Mutant

SESSION = (
    Mutant(
        "thinking goes to a model that did not make it (a signature kept)",
        "session/history.py",
        "if not self.has_thinking or model is None or self.model is None or self.model == model:",
        "if True:",
    ),
    Mutant(
        "the bytes sent to another model are kept",
        "session/history.py",
        "        if self._encoded_model != model:\n            self._encoded_model = model\n            self._forget_body()\n",
        "",
    ),
    Mutant(
        "an edit leaves the bytes as they were",
        "session/history.py",
        "        self.version += 1\n        self._forget_body()\n",
        "        self.version += 1\n",
    ),
    Mutant(
        "the bytes of a message are sent twice",
        "session/history.py",
        "        self._encoded = len(self._entries)\n",
        "        self._encoded = len(self._entries) - 1\n",
    ),
    Mutant(
        "the size of a replaced part is counted on",
        "session/history.py",
        " - sum(entry.tokens for entry in before)\n",
        "\n",
    ),
    Mutant(
        "open calls include answered ones", "session/history.py", "            answered.update(entry.results)\n", ""
    ),
    Mutant(
        "a loaded history is not mended",
        "session/history.py",
        "mended, more = repaired(read, paused=paused)",
        "mended, more = [m if hasattr(m, 'model') else Message(m, model=None, purpose=None) for m in read], []",
    ),
    Mutant(
        "thinking is switched off after an answer without it",
        "session/history.py",
        "        answered = False\n        for entry in reversed",
        "        answered = True\n        for entry in reversed",
    ),
    Mutant(
        "a part loses its last message",
        "session/history.py",
        "other._entries = self._entries[start:stop]",
        "other._entries = self._entries[start : None if stop is None else stop - 1]",
    ),
    Mutant(
        "too many cache marks are sent",
        "session/history.py",
        "                count -= lost\n",
        "                count -= 10 * lost\n",
    ),
    Mutant(
        "cached marks are counted once only",
        "session/history.py",
        "                self._cache_marks += cache_marks(sent.data)\n",
        "",
    ),
    Mutant(
        "a paused server tool stays when the user has spoken",
        "session/history.py",
        "        if not paused:\n            alone += pairs.ended()\n",
        "",
    ),
    Mutant(
        "no server tool is said to wait",
        "session/history.py",
        "        return bool(pairs.waiting)\n",
        "        return False\n",
    ),
    Mutant(
        "only the last message is looked at for a server tool that waits",
        "session/server_tools.py",
        " and not following.results\n",
        "\n",
    ),
    Mutant(
        "a server tool does not wait for a call of ours",
        "session/server_tools.py",
        "            if not self._calls_ours:\n                alone = self.expired()",
        "            if True:\n                alone = self.expired()",
    ),
    Mutant(
        "a server tool waits for ever",
        "session/server_tools.py",
        "            if not self._calls_ours:\n                alone = self.expired()",
        "            if False:\n                alone = self.expired()",
    ),
    Mutant(
        "a server tool ends at the results of our calls",
        "session/server_tools.py",
        "        return [] if self._calls_ours else self.expired()\n",
        "        return self.expired()\n",
    ),
    Mutant(
        "a server tool's call that comes again is there twice",
        "session/server_tools.py",
        "                    alone.append(self.waiting[name])\n",
        "                    pass\n",
    ),
    Mutant(
        "a server tool's result without a call stays",
        "session/server_tools.py",
        "                    alone.append((index, position))\n",
        "                    pass\n",
    ),
    Mutant(
        "the context is compacted at the whole window",
        "context/view.py",
        "return limits.context_window - min(33_000, limits.context_window // 3)",
        "return limits.context_window",
    ),
    Mutant(
        "what came since the last reply is not counted",
        "context/view.py",
        "        since = self.history.tokens - counted\n",
        "        since = 0\n",
    ),
    Mutant(
        "a stage never sees new messages again",
        "context/view.py",
        "    start = seen if version == history.version else 0\n",
        "    start = seen\n",
    ),
    Mutant(
        "a refill is not noticed",
        "context/pipeline.py",
        "        outcome = ContextOutcome.REFILLED if refilled else ContextOutcome.COMPACTED",
        "        outcome = ContextOutcome.COMPACTED",
    ),
    Mutant(
        "every later compaction is a refill",
        "context/pipeline.py",
        "view.turn - last <= RAPID_REFILL_TURNS",
        "view.turn - last >= 0",
    ),
    Mutant(
        "failures of compaction are never forgotten",
        "context/pipeline.py",
        'failures = failures + 1 if draft.compaction == "failed" else 0',
        'failures = failures + 1 if draft.compaction == "failed" else failures',
    ),
    Mutant(
        "a stage that fails ends the run by exception",
        "context/pipeline.py",
        "            except Exception as error:\n",
        "            except OSError as error:\n",
    ),
    Mutant(
        "a request that cannot fit is sent",
        "context/blocking_check.py",
        "    if size >= blocking_limit(draft.view):",
        "    if size >= 10 * blocking_limit(draft.view):",
    ),
    Mutant(
        "compaction is tried for ever in vain",
        "context/autocompact.py",
        "draft.view.autocompact_failures >= MAX_FAILURES and not full",
        "False",
    ),
    Mutant(
        "a compaction that makes no room is tried",
        "context/autocompact.py",
        "if not cut or not makes_room(draft, cut):",
        "if not cut:",
    ),
    Mutant(
        "the user's prompt is lost in a compaction",
        "context/compaction.py",
        '    return [user_message("\\n".join(parts), "summary"), *kept]',
        '    return [user_message("\\n".join(parts), "summary")]',
    ),
    Mutant(
        "a compaction that makes nothing smaller is made",
        "context/compaction.py",
        "    if after >= before:\n",
        "    if False:\n",
    ),
    Mutant(
        "a summary that is too long is given up",
        "context/compaction.py",
        '        return "head_too_long"\n',
        '        return "failed"\n',
    ),
    Mutant(
        "a history is cut between a call and its result",
        "context/cuts.py",
        "        calls_open = bool(entry.calls)\n",
        "        calls_open = False\n",
    ),
    Mutant(
        "a cut keeps more than it may",
        "context/cuts.py",
        "        if left <= tokens:\n            return cut\n",
        "        if left <= 2 * tokens + 1:\n            return cut\n",
    ),
    Mutant(
        "only the latest word of the user is live",
        "context/cuts.py",
        'while start > 0 and history[found[start]].purpose == "queued":',
        "while False:",
    ),
    Mutant(
        "a digest does not tell how calls were answered",
        "context/collapse.py",
        '    short = _short(text) or "(nothing)"',
        '    short = "(nothing)"',
    ),
    Mutant(
        "a drain that frees nothing is made",
        "context/collapse.py",
        "    if freed < MIN_FREED * history.tokens:\n        return []\n",
        "",
    ),
    Mutant(
        "a result is cut and one character too long",
        "context/tool_result_budget.py",
        "    room = limit - len(notice) - 1\n",
        "    room = limit - len(notice)\n",
    ),
    Mutant(
        "results together may be over budget",
        "context/tool_result_budget.py",
        "    if sum(sizes) <= total:\n        return total\n",
        "    return total\n",
    ),
)
