"""`GET /v1/models`: the models that the server knows, with their limits."""

from fsm_agent.testing.rules import KNOWN_MODELS, ApiSettings
from fsm_agent.testing.shapes import JsonObject

__all__ = ["model_answer"]


def model_answer(name: str, settings: ApiSettings) -> JsonObject | None:
    """The body for one model, or for the list when the name is empty; `None` for an unknown name.

    >>> model_answer("claude-sonnet-4-5", ApiSettings())["max_tokens"]
    64000
    """
    if name:
        return _model(name, settings) if settings.knows(name) else None
    names = sorted({*KNOWN_MODELS, *settings.models})
    return {
        "data": [_model(one, settings) for one in names],
        "has_more": False,
        "first_id": names[0],
        "last_id": names[-1],
    }


def _model(name: str, settings: ApiSettings) -> JsonObject:
    return {
        "type": "model",
        "id": name,
        "display_name": name.replace("-", " ").title(),
        "created_at": "1970-01-01T00:00:00Z",
        "lifecycle": "active",
        "max_input_tokens": settings.window(name),
        "max_tokens": settings.profile(name).max_output_tokens,
    }
