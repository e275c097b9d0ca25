"""What each model accepts, as data.

A profile is made from the model's family and version, since the API's behaviour changes with versions: a model from 4.6
on takes no prefill, one from 4.7 on no sampling parameters, and so on. Numbers that are not public are assumptions and
can be set (`ModelProfile(...)` in `ApiSettings.models`).
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import TypeAlias

__all__ = ["DEFAULT_PROFILE", "KNOWN_MODELS", "ModelProfile", "profile_of"]

Version: TypeAlias = tuple[int, int]

_ALL_EFFORTS = ("high", "low", "max", "medium", "xhigh")


@dataclass(frozen=True, slots=True)
class ModelProfile:
    """The limits and abilities of one model."""

    context_window: int = 200_000
    """Tokens."""
    max_output_tokens: int = 64_000
    efforts: tuple[str, ...] = _ALL_EFFORTS
    """Effort levels, sorted; empty: the model knows no effort."""
    takes_sampling: bool = False
    """`temperature`, `top_p`, `top_k`; up to 4.6 (R049)."""
    takes_temperature_with_top_p: bool = False
    """Both at once; up to 4.0 (R049)."""
    takes_prefill: bool = False
    """A final assistant turn; up to 4.5 (R140)."""
    takes_system_turns: bool = True
    """Role "system" inside `messages`; from 4.8 (R110)."""
    takes_thinking_budget: bool = False
    """`thinking.type` "enabled"; up to 4.6 (R033)."""
    takes_adaptive_thinking: bool = True
    """From 4.6 (R034)."""
    takes_forced_tools: bool = True
    """`tool_choice` "any" and "tool"; not on fable and mythos from 5.1 (R083)."""
    overflow_is_error: bool = False
    """Input plus `max_tokens` above the window is refused; up to 4.1 (R181)."""
    minimum_cache_tokens: int = 1024
    """A shorter prefix is silently not cached."""
    pdf_pages: int = 100


DEFAULT_PROFILE = ModelProfile()
"""For model names that `ApiSettings(accept_unknown_models=True)` lets through: a current model, with a 200k window."""

_NAME = re.compile(r"claude-(opus|sonnet|haiku|fable|mythos)-(\d)(?:-(\d))?(?:-\d{8}|-latest)?")
_OLD_NAME = re.compile(r"claude-(\d)(?:-(\d))?-(opus|sonnet|haiku)(?:-\d{8}|-latest)?")

KNOWN_MODELS: frozenset[str] = frozenset(
    {
        "claude-3-haiku-20240307",
        "claude-3-opus-20240229",
        "claude-3-5-haiku-20241022",
        "claude-3-5-haiku-latest",
        "claude-3-5-sonnet-20240620",
        "claude-3-5-sonnet-20241022",
        "claude-3-5-sonnet-latest",
        "claude-3-7-sonnet-20250219",
        "claude-3-7-sonnet-latest",
        "claude-fable-5",
        "claude-fable-5-1",
        "claude-fable-5-2",
        "claude-haiku-4-5",
        "claude-haiku-4-5-20251001",
        "claude-haiku-5-5",
        "claude-mythos-5",
        "claude-mythos-5-1",
        "claude-mythos-5-2",
        "claude-mythos-preview",
        "claude-opus-4-0",
        "claude-opus-4-1",
        "claude-opus-4-1-20250805",
        "claude-opus-4-20250514",
        "claude-opus-4-5",
        "claude-opus-4-5-20251101",
        "claude-opus-4-6",
        "claude-opus-4-7",
        "claude-opus-4-8",
        "claude-opus-5",
        "claude-opus-5-5",
        "claude-sonnet-4-0",
        "claude-sonnet-4-20250514",
        "claude-sonnet-4-5",
        "claude-sonnet-4-5-20250929",
        "claude-sonnet-4-6",
        "claude-sonnet-5",
        "claude-sonnet-5-5",
    }
)
"""Names that the API serves (the SDK's list, and the older ones of recorded traffic)."""


def profile_of(name: str, models: Mapping[str, ModelProfile] | None = None) -> ModelProfile | None:
    """The profile of a model: from `models`, else by its family and version; `None` for an unknown name.

    >>> profile_of("claude-sonnet-4-5").takes_prefill, profile_of("claude-sonnet-4-6").takes_prefill
    (True, False)
    >>> profile_of("gpt-4") is None
    True
    """
    if models is not None and name in models:
        return models[name]
    return _known_profile(name) if name in KNOWN_MODELS else None


@cache
def _known_profile(name: str) -> ModelProfile | None:
    if name == "claude-mythos-preview":
        return _profile("mythos", (4, 7))
    new = _NAME.fullmatch(name)
    if new is not None:
        return _profile(new[1], (int(new[2]), int(new[3] or 0)))
    old = _OLD_NAME.fullmatch(name)
    return None if old is None else _profile(old[3], (int(old[1]), int(old[2] or 0)))


def _profile(family: str, version: Version) -> ModelProfile:
    million = version >= (4, 6) and family != "haiku"
    return ModelProfile(
        context_window=1_000_000 if million else 200_000,
        max_output_tokens=_max_output_tokens(family, version),
        efforts=_efforts(family, version),
        takes_sampling=version < (4, 7),
        takes_temperature_with_top_p=version < (4, 1),
        takes_prefill=version < (4, 6),
        takes_system_turns=version >= (4, 8),
        takes_thinking_budget=version < (4, 7),
        takes_adaptive_thinking=version >= (4, 6),
        takes_forced_tools=not (family in ("fable", "mythos") and version >= (5, 1)),
        overflow_is_error=version < (4, 5),
        minimum_cache_tokens=4096 if family == "haiku" and version >= (4, 5) else 1024,
        pdf_pages=600 if million else 100,
    )


def _max_output_tokens(family: str, version: Version) -> int:
    if version < (3, 5):
        return 4096
    if version < (3, 7):
        return 8192
    if family == "opus" and version < (4, 5):
        return 32_000
    return 64_000 if version < (4, 6) or family == "haiku" else 128_000


def _efforts(family: str, version: Version) -> tuple[str, ...]:
    if version >= (4, 7):
        return _ALL_EFFORTS
    if version >= (4, 6):
        return ("high", "low", "max", "medium")
    return ("high", "low", "medium") if (family, version) == ("opus", (4, 5)) else ()
