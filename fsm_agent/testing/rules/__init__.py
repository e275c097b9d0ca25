"""The rules by which the Messages API judges a request, with its statuses and texts.

`validate` tries the rules in the order in which the API tries them and returns the first refusal. `STAGES` is that
order as data; a rule is found by its id (`R134`) in the docstring of the function that checks it. They are known from
recorded traffic, live probes and public reports; texts that had to be guessed are marked so where they are.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TypeAlias

from fsm_agent.testing.rules import cache_marks, context, conversation, media, messages, pairing, thinking, tools
from fsm_agent.testing.rules import top_level as top
from fsm_agent.testing.rules.profiles import DEFAULT_PROFILE, KNOWN_MODELS, ModelProfile, profile_of
from fsm_agent.testing.rules.refusal import ApiRefusal
from fsm_agent.testing.rules.request import Request
from fsm_agent.testing.rules.settings import ApiSettings
from fsm_agent.testing.rules.transport import check_headers, check_size, parse_body, unknown_path
from fsm_agent.testing.shapes import JsonObject
from fsm_agent.testing.signatures import SignatureBook

__all__ = [
    "DEFAULT_PROFILE",
    "KNOWN_MODELS",
    "STAGES",
    "STAGES_OF_FIELDS",
    "STAGES_OF_MESSAGES",
    "ApiRefusal",
    "ApiSettings",
    "ModelProfile",
    "check_headers",
    "check_size",
    "parse_body",
    "profile_of",
    "refusals",
    "unknown_path",
    "validate",
]

Check: TypeAlias = Callable[[Request], Iterator[ApiRefusal]]

FIELDS: tuple[Check, ...] = (
    top.check_model,
    tools.check_tool_choice,
    tools.check_tools,
    messages.check_messages,
    media.check_media_types,
    top.check_system,
    thinking.check_thinking,
    top.check_output_config,
    cache_marks.check_cache_control,
    top.check_max_tokens,
    top.check_metadata,
    top.check_stop_sequences,
    top.check_temperature,
    top.check_service_tier,
    top.check_top_k,
    top.check_top_p,
    top.check_stream,
    top.check_container,
    top.check_unknown_keys,
)
"""The order was probed live (31 August 2026); `inference_geo` has no rule."""

CONVERSATION: tuple[Check, ...] = (
    conversation.check_system_turns,
    conversation.check_empty_content,
    conversation.check_roles_of_blocks,
    pairing.check_tool_ids,
    pairing.check_tool_results,
    pairing.check_server_tools,
)

REST: tuple[Check, ...] = (
    top.check_known_model,
    top.check_output_limit,
    top.check_sampling,
    top.check_effort,
    tools.check_forced_choice,
    tools.check_strict_tools,
    thinking.check_thinking_fits,
    conversation.check_final_assistant_turn,
    thinking.check_thinking_blocks,
    thinking.check_signatures,
    cache_marks.check_cache_marks,
    media.check_images,
    media.check_documents,
    context.check_context_window,
)

STAGES: tuple[tuple[Check, ...], ...] = (FIELDS, CONVERSATION, REST)
"""A stage is tried only when the ones before it found nothing, so that its checks may rely on the shape."""

_OF_FIELDS: frozenset[Check] = frozenset((*FIELDS, *REST[:7])) - {
    messages.check_messages,
    media.check_media_types,
    cache_marks.check_cache_control,
}

STAGES_OF_FIELDS, STAGES_OF_MESSAGES = (
    tuple(tuple(check for check in stage if (check in _OF_FIELDS) is of_fields) for stage in STAGES)
    for of_fields in (True, False)
)
"""The two halves of `STAGES`: checks that do not look at the messages, and those that do."""

_NOT_COUNTED = (top.check_max_tokens, top.check_output_limit, context.check_context_window)
"""Checks that a request to count tokens is spared."""


def refusals(
    body: JsonObject,
    headers: Mapping[str, str] | None = None,
    *,
    settings: ApiSettings | None = None,
    signatures: SignatureBook | None = None,
    counting: bool = False,
    tokens: int | None = None,
    stages: Sequence[Sequence[Check]] = STAGES,
) -> Iterator[ApiRefusal]:
    """All that a stage has against a request, in order, ending with the first stage that has something.

    The API itself answers with the first; the others help whoever wrote the request.
    """
    request = Request(body, headers or {}, settings or ApiSettings(), signatures, tokens)
    for stage in stages:
        found = False
        for check in stage:
            if counting and check in _NOT_COUNTED:
                continue
            for refusal in check(request):
                found = True
                yield refusal
            if found:
                return


def validate(
    body: JsonObject,
    headers: Mapping[str, str] | None = None,
    *,
    settings: ApiSettings | None = None,
    signatures: SignatureBook | None = None,
    counting: bool = False,
    tokens: int | None = None,
    stages: Sequence[Sequence[Check]] = STAGES,
) -> ApiRefusal | None:
    """The refusal with which the API would answer a request, or `None` when it would be served.

    `headers` are those of the HTTP request (only `anthropic-beta` matters here; keys, versions and sizes are checked
    by `check_headers` and `check_size`). `signatures` are the thinking signatures issued so far; without them thinking
    is taken on trust. `counting` judges a body for `count_tokens`. `tokens` is the size of the prompt where
    it has been estimated already. `stages` are those to be tried.

    >>> body = {"model": "claude-sonnet-5-5", "max_tokens": 10, "messages": [{"role": "user", "content": "hi"}]}
    >>> validate(body) is None
    True
    >>> print(validate(body | {"messages": []}))
    R012: 400 invalid_request_error: messages: at least one message is required
    """
    found = refusals(
        body, headers, settings=settings, signatures=signatures, counting=counting, tokens=tokens, stages=stages
    )
    return next(found, None)
