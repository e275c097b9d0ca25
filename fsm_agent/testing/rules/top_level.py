"""Rules on the top-level fields: types, ranges, unknown keys (R010 to R051).

JSON `null` counts as absent for `metadata`, `inference_geo`, `stop_sequences`, `cache_control` and `container`; for
every other field it is a wrong type (live probe of 31 August 2026). Texts of type errors without a public report are
modelled on those that have one.
"""

from collections.abc import Iterator
from typing import Any

from fsm_agent.testing.rules.refusal import ApiRefusal, refuse
from fsm_agent.testing.rules.request import Request
from fsm_agent.testing.shapes import JsonObject, as_object, is_list, is_object, objects

Refusals = Iterator[ApiRefusal]

KNOWN_KEYS = frozenset(
    [
        "cache_control",
        "container",
        "diagnostics",
        "inference_geo",
        "max_tokens",
        "messages",
        "metadata",
        "model",
        "output_config",
        "service_tier",
        "stop_sequences",
        "stream",
        "system",
        "temperature",
        "thinking",
        "tool_choice",
        "tools",
        "top_k",
        "top_p",
        "speed",
    ]
)
BETA_KEYS: dict[str, tuple[str, ...]] = {
    "billing_policy": ("user-profiles",),
    "compaction": ("compact-",),
    "context_management": ("context-management-", "compact-"),
    "fallback_credit_token": ("fallback-credit-",),
    "fallbacks": ("server-side-fallback-",),
    "mcp_servers": ("mcp-client-",),
    "output_format": ("structured-outputs-",),
    "thread": ("message-threads-",),
}
"""Keys that need a beta header, and the beginnings of the betas that allow them."""


def check_model(request: Request) -> Refusals:
    """R010."""
    if "model" not in request.body:
        yield refuse("R010", "model: Field required")
    elif not isinstance(request.body["model"], str):
        yield refuse("R010", "model: Input should be a valid string")
    elif not request.body["model"]:
        yield refuse("R010", "model: String should have at least 1 character")


def check_max_tokens(request: Request) -> Refusals:
    """R014. Zero is accepted: it fills the prompt cache and generates nothing."""
    value = request.body.get("max_tokens")
    if "max_tokens" not in request.body:
        yield refuse("R014", "max_tokens: Field required")
    elif not isinstance(value, int) or isinstance(value, bool):
        yield refuse("R014", "max_tokens: Input should be a valid integer")
    elif value < 0:
        yield refuse("R014", "max_tokens: must be greater than or equal to 0")


def check_system(request: Request) -> Refusals:
    """R020, R021. An empty string is fine, an empty text block is not."""
    system = request.body.get("system", "")
    if isinstance(system, str):
        return
    if not is_list(system):
        yield refuse("R020", "system: Input should be a valid array")
        return
    for at, block in enumerate(system):
        if not is_object(block):
            yield refuse("R020", f"system.{at}: Input should be a valid dictionary or object to extract fields from")
            return
        if block.get("type") != "text":
            yield refuse("R020", f"system.{at}.type: Input should be 'text'")
        if not isinstance(block.get("text"), str):
            yield refuse("R020", f"system.{at}.text: {_lack(block, 'text', 'string')}")
        for key in block.keys() - {"type", "text", "cache_control", "citations"}:
            yield refuse("R020", f"system.{at}.{key}: Extra inputs are not permitted")
    if any(block.get("text") == "" for block in objects(system)):
        yield refuse("R021", "system: text content blocks must be non-empty")


def _lack(block: JsonObject, key: str, kind: str) -> str:
    return "Field required" if key not in block else f"Input should be a valid {kind}"


def check_output_config(request: Request) -> Refusals:
    """R041: the shape; what the model can do is R040."""
    if "output_config" in request.body and not is_object(request.body["output_config"]):
        yield refuse("R041", "output_config: Input should be a valid dictionary or object to extract fields from")


def check_metadata(request: Request) -> Refusals:
    """R042."""
    metadata = request.body.get("metadata")
    if metadata is None:
        return
    if not is_object(metadata):
        yield refuse("R042", "metadata: Input should be a valid dictionary or object to extract fields from")
        return
    for key in sorted(metadata.keys() - {"user_id"}):
        yield refuse("R042", f"metadata.{key}: Extra inputs are not permitted")


def check_stop_sequences(request: Request) -> Refusals:
    """R043, R044."""
    sequences = request.body.get("stop_sequences")
    if sequences is None:
        return
    if not is_list(sequences):
        yield refuse("R043", "stop_sequences: Input should be a valid array")
        return
    for at, sequence in enumerate(sequences):
        if not isinstance(sequence, str):
            yield refuse("R043", f"stop_sequences.{at}: Input should be a valid string")
        elif not sequence:
            yield refuse("R043", "stop_sequences: each stop sequence must be non-empty")
        elif not sequence.strip():
            yield refuse("R044", "stop_sequences: each stop sequence must contain non-whitespace")


def check_temperature(request: Request) -> Refusals:
    """R045."""
    yield from _fraction(request.body, "temperature", "R045")


def check_top_p(request: Request) -> Refusals:
    """R047."""
    yield from _fraction(request.body, "top_p", "R047")


def _fraction(body: JsonObject, key: str, rule: str) -> Refusals:
    if key in body:
        if not _is_number(body[key]):
            yield refuse(rule, f"{key}: Input should be a valid number")
        elif not 0 <= body[key] <= 1:
            yield refuse(rule, f"{key}: range: 0..1")


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def check_top_k(request: Request) -> Refusals:
    """R046: the type."""
    value = request.body.get("top_k", 0)
    if not isinstance(value, int) or isinstance(value, bool):
        yield refuse("R046", "top_k: Input should be a valid integer")


def check_service_tier(request: Request) -> Refusals:
    """R046: the type."""
    if request.body.get("service_tier", "auto") not in ("auto", "standard_only"):
        yield refuse("R046", "service_tier: Input should be 'auto' or 'standard_only'")


def check_stream(request: Request) -> Refusals:
    """R048: the type."""
    if not isinstance(request.body.get("stream", False), bool):
        yield refuse("R048", "stream: Input should be a valid boolean")


def check_container(request: Request) -> Refusals:
    """R051. A tool that may be called from code execution counts as code execution."""
    if request.body.get("container") is None:
        return
    for tool in objects(request.body.get("tools")):
        callers = tool.get("allowed_callers")
        names: list[object] = [tool.get("type"), *(callers if is_list(callers) else [])]
        if any(str(name).startswith("code_execution_") for name in names):
            return
    text = "container: Container identifier can only be provided when using the code execution tool"
    yield refuse("R051", text)


def check_unknown_keys(request: Request) -> Refusals:
    """R050: a key that nobody knows, or one whose beta header is missing."""
    for key in request.body:
        known = key in KNOWN_KEYS or (key in BETA_KEYS and request.has_beta(*BETA_KEYS[key]))
        if not known:
            yield refuse("R050", f"{key}: Extra inputs are not permitted")


# ---- rules that need the model's profile


def check_known_model(request: Request) -> Refusals:
    """R060."""
    if not request.settings.knows(request.model):
        yield ApiRefusal("R060", f"model: {request.model}", 404, "not_found_error")


def check_output_limit(request: Request) -> Refusals:
    """R015."""
    limit = request.profile.max_output_tokens
    if any(beta.startswith("output-300k") for beta in request.betas):
        limit = max(limit, 300_000)
    asked = request.body.get("max_tokens", 0)
    if asked > limit:
        what = f"which is the maximum allowed number of output tokens for {request.model}"
        yield refuse("R015", f"max_tokens: {asked} > {limit}, {what}")


def check_effort(request: Request) -> Refusals:
    """R040."""
    effort = (as_object(request.body.get("output_config")) or {}).get("effort")
    if effort is None:
        return
    levels = request.profile.efforts
    if not levels:
        yield refuse("R040", "This model does not support the effort parameter.")
    elif effort not in levels:
        supported = ", ".join(levels)
        yield refuse("R040", f"This model does not support effort level '{effort}'. Supported levels: {supported}.")


def check_sampling(request: Request) -> Refusals:
    """R049."""
    given = [name for name in ("temperature", "top_p", "top_k") if name in request.body]
    if given and not request.profile.takes_sampling:
        yield refuse("R049", f"`{given[0]}` is deprecated for this model.")
    both = "temperature" in given and "top_p" in given
    if both and not request.profile.takes_temperature_with_top_p:
        text = "`temperature` and `top_p` cannot both be specified for this model. Please use only one."
        yield refuse("R049", text)
