# ruff: noqa: E501 - texts of the library stand here as they are
"""Bugs of tools: when they start, how they end, what becomes of their results."""

from tests.mutation.mutant import Mutant

TOOLS = (
    Mutant(
        "a result is lost",
        "tools/batch.py",
        "[slot.result or self._without_result(slot) for slot in self._slots]",
        "[slot.result for slot in self._slots if slot.result]",
    ),
    Mutant(
        "results in the order of their end",
        "tools/batch.py",
        "        return self._results\n",
        "        return self._results[::-1]\n",
    ),
    Mutant(
        "a result goes to the wrong id",
        "tools/batch.py",
        "        answers = Answers(call.id)\n",
        "        answers = Answers(self._slots[0].call.id if self._slots else call.id)\n",
    ),
    Mutant(
        "a call that started early starts again",
        "tools/batch.py",
        "early = offered.pop(call.id) if call.id in offered else None",
        "early = None",
    ),
    Mutant(
        "early calls of another message run on",
        "tools/batch.py",
        "        return [slot for slot in offered.values() if slot.stage is Stage.RUNNING]",
        "        return []",
    ),
    Mutant(
        "the batch does not stop what runs when it is cancelled",
        "tools/batch.py",
        "            await _stopped(self._running())\n            raise",
        "            raise",
    ),
    Mutant(
        "what was discarded is not waited for",
        "tools/batch.py",
        "        await _stopped(self._running())\n        self._slots.clear()",
        "        self._slots.clear()",
    ),
    Mutant(
        "a discarded call is not marked so",
        "tools/batch.py",
        "        for slot in self._slots:\n            if slot.performance is not None:\n                slot.performance.discarded = True\n",
        "",
    ),
    Mutant(
        "an aborted batch starts what waits",
        "tools/batch.py",
        "        self._no_more = self._no_more or _ABORTED\n        strays",
        "        strays",
    ),
    Mutant(
        "calls after one that stopped the run are run",
        "tools/batch.py",
        '            self._no_more = self._no_more or "a call before it ended the run"',
        "            pass",
    ),
    Mutant(
        "calls after a deferred one are run",
        "tools/batch.py",
        '            self._no_more = self._no_more or "a call before it waits for a decision"',
        "            pass",
    ),
    Mutant(
        "a hook's stop is not obeyed",
        "tools/batch.py",
        "            return ToolsOutcome.HOOK_STOPPED\n",
        "            return ToolsOutcome.DONE\n",
    ),
    Mutant(
        "a deferral is not obeyed",
        "tools/batch.py",
        "            return ToolsOutcome.DEFERRED\n",
        "            return ToolsOutcome.DONE\n",
    ),
    Mutant(
        "the next call waits for ever",
        "tools/batch.py",
        "        self._start_what_may()\n        self._wake()\n",
        "        self._wake()\n",
    ),
    Mutant("an unsafe tool starts early", "tools/schedule.py", "not (accepted or place.repeatable)", "False"),
    Mutant(
        "an exclusive call starts early", "tools/schedule.py", "if accepted and occupied == 0:", "if occupied == 0:"
    ),
    Mutant(
        "an exclusive call runs beside others", "tools/schedule.py", "if accepted and occupied == 0:", "if accepted:"
    ),
    Mutant(
        "calls start beside an exclusive one",
        "tools/schedule.py",
        "    if any(place.exclusive for place in running):\n        return\n",
        "",
    ),
    Mutant("one call too many at once", "tools/schedule.py", "occupied >= at_once", "occupied > at_once"),
    Mutant(
        "a call overtakes an exclusive one",
        "tools/schedule.py",
        "                yield position\n            return\n",
        "                yield position\n            continue\n",
    ),
    Mutant(
        "a tool has no time limit",
        "tools/performance.py",
        "            ending = await job.within(seconds, grace=self._shared.limits.abort_grace)\n            if",
        "            ending = await job.within(float('inf'), grace=self._shared.limits.abort_grace)\n            if",
    ),
    Mutant(
        "a tool's own time limit is ignored",
        "tools/performance.py",
        "self._tool.timeout or self._shared.limits.tool_timeout",
        "self._shared.limits.tool_timeout",
    ),
    Mutant(
        "an interrupted call has no result",
        "tools/performance.py",
        "                self.result = self._answers.interrupted(self._so_far(job))\n",
        "                self.result = None\n",
    ),
    Mutant(
        "what a tool returned before the abort is lost",
        "tools/performance.py",
        "            if job.stopped or job.ending is None:",
        "            if True:",
    ),
    Mutant(
        "a swallowed cancel of a tool",
        "tools/performance.py",
        "                self.result = self._told(job.ending)\n            raise\n",
        "                self.result = self._told(job.ending)\n",
    ),
    Mutant(
        "the finish of a tool is not told when it was cancelled",
        "tools/performance.py",
        '            self._tell(\n                "finished",',
        '            self.result is None or self.result.status == "interrupted" or self._tell(\n                "finished",',
    ),
    Mutant("a tool's progress is told after its end", "tools/performance.py", "            self._feed.close()\n", ""),
    Mutant(
        "what a tool kept so far is lost", "tools/performance.py", "        self._partial = text\n", "        pass\n"
    ),
    Mutant(
        "a denied call runs",
        "tools/performance.py",
        "            refused = await self._permission()\n",
        "            await self._permission()\n",
    ),
    Mutant(
        "a hook's changed input is not used",
        "tools/performance.py",
        "            self._arguments = self._tool.arguments(self._call.input)\n",
        "            self._tool.arguments(self._call.input)\n",
    ),
    Mutant(
        "a permission that fails is a yes",
        "tools/performance.py",
        "        return Deny(why)\n",
        "        return Allow()\n",
    ),
    Mutant(
        "a note of a hook is lost",
        "tools/performance.py",
        "                    self.result = result.noted(text)",
        "                    pass",
    ),
    Mutant(
        "a tool that ignores its cancellation holds the run",
        "tools/job.py",
        "            await asyncio.wait({self._task}, timeout=grace)\n        except",
        "            await asyncio.wait({self._task})\n        except",
    ),
    Mutant("a tool is not told to stop", "tools/job.py", "        self._task.cancel()\n", ""),
    Mutant(
        "the clean-up of a tool gets no time",
        "tools/job.py",
        "            await asyncio.wait({self._task}, timeout=grace)\n        except",
        "            await asyncio.wait({self._task}, timeout=0)\n        except",
    ),
    Mutant(
        "an exception of a tool goes through the loop",
        "tools/job.py",
        "    except BaseException as fault:",
        "    except OSError as fault:",
    ),
    Mutant(
        "of progress that waits only the newest is told",
        "tools/notices.py",
        "data=merged(older[0].data, notice.data)",
        "data=notice.data",
    ),
    Mutant(
        "each finish of a tool is told as an error",
        "tools/performance.py",
        "is_error=self.result is None or self.result.is_error,",
        "is_error=True,",
    ),
    Mutant(
        "a lone surrogate in a result is kept",
        "tools/content.py",
        "    if not text.isascii():\n",
        "    if False:\n",
    ),
    Mutant("an error of a tool is a success", "tools/result.py", "        if self.is_error:\n", "        if False:\n"),
    Mutant(
        "an interrupted call that may have done something is said to have done nothing",
        "tools/result.py",
        "            if self.read_only\n",
        "            if True\n",
    ),
)
