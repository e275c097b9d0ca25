# ruff: noqa: E501 - texts of the library stand here as they are
"""Bugs of the effects, of the hand-over of events, and of the stop hooks."""

from tests.mutation.mutant import Mutant

EFFECTS = (
    Mutant(
        "requests are not counted",
        "loop/effects/asking.py",
        "    conversation.requests += 1\n",
        "    conversation.requests += purpose == 'turn'\n",
    ),
    Mutant(
        "stream events of a reply are not told",
        "loop/effects/asking.py",
        "        self.reply.shown = True\n        await",
        "        self.reply.shown = True\n        if event.get('type') != 'content_block_delta' or 'text' in str(event.get('delta')):\n          await",
    ),
    Mutant("the mark 'shown' is forgotten", "loop/effects/asking.py", "        self.reply.shown = True\n", ""),
    Mutant(
        "calls never start while the reply streams",
        "loop/effects/asking.py",
        "on_block=self.batch.offer",
        "on_block=None",
    ),
    Mutant(
        "results over budget enter the history whole",
        "loop/effects/asking.py",
        "        visit.limits,\n        visit.conversation.machine.result_store,\n",
        "        visit.limits.model_copy(update={'tool_result_max_chars': 10**9, 'message_results_max_chars': 10**9}),\n        visit.conversation.machine.result_store,\n",
    ),
    Mutant(
        "the failure of the request before is kept", "loop/effects/calling.py", "    conversation.failure = None\n", ""
    ),
    Mutant(
        "the spend limit is not looked at before a request",
        "loop/effects/calling.py",
        "    if spent:\n        return Outcome(ResponseOutcome.BUDGET_SPENT, spent)\n    conversation",
        "    conversation",
    ),
    Mutant(
        "calls run though their reply spent the budget",
        "loop/effects/calling.py",
        "        if spent:\n            outcome, detail",
        "        if False:\n            outcome, detail",
    ),
    Mutant(
        "early tools outlive a failed reply",
        "loop/effects/calling.py",
        "    else:\n        await turn.batch.discard()\n",
        "",
    ),
    Mutant(
        "early tools outlive an abort of the stream",
        "loop/effects/calling.py",
        "        await turn.batch.discard()\n        raise",
        "        raise",
    ),
    Mutant(
        "usage of a failed request is lost",
        "loop/effects/calling.py",
        "    finally:\n        _account(visit, turn)\n    conversation.failure",
        "    finally:\n        pass\n    if not turn.call.failure:\n        _account(visit, turn)\n    conversation.failure",
    ),
    Mutant(
        "the output limit is not raised",
        "loop/effects/calling.py",
        "wanted = limits.escalated_max_output_tokens if escalated else",
        "wanted = limits.max_output_tokens if escalated else",
    ),
    Mutant(
        "max_tokens above the model's own",
        "loop/effects/calling.py",
        "return min(wanted, visit.conversation.machine.output_ceiling(visit.conversation.model))",
        "return wanted",
    ),
    Mutant(
        "stop hooks are not told that they objected before",
        "loop/effects/ending.py",
        'stop_hook_active="stop_hook_active" in',
        'stop_hook_active="stop_hook" in',
    ),
    Mutant(
        "stop hooks do not see the last message",
        "loop/effects/ending.py",
        "[*conversation.history.messages, conversation.reply.assembler.message()]",
        "[*conversation.history.messages]",
    ),
    Mutant(
        "the token budget check is off",
        "loop/effects/ending.py",
        "if used >= NEARLY_ALL * wanted:",
        "if used >= 2 * wanted:",
    ),
    Mutant(
        "continuations with little output never end",
        "loop/effects/ending.py",
        "if len(conversation.continuation_outputs) >= 2 and",
        "if False and",
    ),
    Mutant(
        "an output that was cut is validated without its beginning",
        "loop/effects/ending.py",
        "dict.fromkeys([conversation.answer.with_(text), text])",
        "[text]",
    ),
    Mutant(
        "the system prompt is made anew each turn",
        "loop/effects/preparing.py",
        "    if conversation.system is not None:\n        return None\n",
        "",
    ),
    Mutant(
        "usage of a summary is lost",
        "loop/effects/preparing.py",
        "        conversation.count(call.reply.usage, conversation.model)",
        "        pass",
    ),
    Mutant(
        "compactions in vain are not counted",
        "loop/effects/preparing.py",
        "    conversation.autocompact_failures = plan.autocompact_failures\n",
        "",
    ),
    Mutant(
        "waits get shorter",
        "loop/effects/repairing.py",
        "previous = conversation.last_wait if retry else 0.0",
        "previous = 0.0",
    ),
    Mutant("a wait is told and not waited", "loop/effects/repairing.py", "    await visit.deps.sleep(delay)\n", ""),
    Mutant(
        "every wait is a first one",
        "loop/effects/repairing.py",
        "waiting.delay(retry, conversation",
        "waiting.delay(0, conversation",
    ),
    Mutant(
        "a summary is never asked for a shorter head",
        "loop/effects/repairing.py",
        'attempt=_count(visit, "compact_attempts")',
        "attempt=0",
    ),
    Mutant(
        "results are lost when the tools are cancelled",
        "loop/effects/running.py",
        "    finally:\n        _take_results(visit, batch)\n    await",
        "    finally:\n        pass\n    _take_results(visit, batch)\n    await",
    ),
    Mutant(
        "a cancelled run does not wait for its tools",
        "tools/batch.py",
        "            await _stopped(self._running())\n            raise",
        "            [slot.task.cancel() for slot in self._running() if slot.task]\n            raise",
    ),
    Mutant(
        "the notices of tools come late",
        "loop/effects/running.py",
        "conversation.calls, meanwhile=partial(emit_notices, visit)",
        "conversation.calls",
    ),
    Mutant(
        "the consumer is not waited for",
        "loop/channel.py",
        "            delivery.set_result(event)\n        await self._demand()",
        "            delivery.set_result(event)",
    ),
    Mutant(
        "events that nobody fetched are dropped",
        "loop/channel.py",
        "        self._ready.extend(rest)\n",
        "        self._ready.extend(rest[:1] + rest[2:])\n",
    ),
    Mutant(
        "the events of a row in another order", "loop/channel.py", "self._ready.popleft() if", "self._ready.pop() if"
    ),
    Mutant(
        "a closed run waits for a consumer for ever",
        "loop/channel.py",
        "        self._answer(None)\n        self._wake()",
        "        self._answer(None)",
    ),
    Mutant(
        "a dropped run goes on", "loop/run.py", "        loop.call_soon_threadsafe(self._driver.close)", "        pass"
    ),
    Mutant(
        "a stop hook that fails blocks",
        "loop/hooks.py",
        '"block" if reasons else "pass"',
        '"block" if reasons or problems else "pass"',
    ),
    Mutant(
        "only the last objection of the stop hooks is told",
        "loop/hooks.py",
        "                reasons.append(mended_text(reason))",
        "                reasons[:] = [mended_text(reason)]",
    ),
)
