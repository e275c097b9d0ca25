"""What can be set about the rules."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from fsm_agent.testing.rules.profiles import DEFAULT_PROFILE, ModelProfile, profile_of
from fsm_agent.testing.tokens import CHARACTERS_PER_TOKEN

__all__ = ["ApiSettings"]


@dataclass(frozen=True, slots=True)
class ApiSettings:
    """How strict the local Messages API is.

    >>> ApiSettings(models={"small": ModelProfile(context_window=1000)}).profile("small").context_window
    1000
    """

    api_keys: frozenset[str] | None = None
    """Keys that are valid; `None`: any key that is not empty."""
    models: Mapping[str, ModelProfile] = field(default_factory=dict[str, ModelProfile], hash=False)
    """Profiles beside, or instead of, those of the known models."""
    accept_unknown_models: bool = False
    """Serve names that the API does not know, with `default_profile` (else 404, R060)."""
    default_profile: ModelProfile = DEFAULT_PROFILE
    context_window: int | None = None
    """Tokens, for all models; `None`: the model's own."""
    characters_per_token: float = CHARACTERS_PER_TOKEN
    unique_ids: Literal["turn", "history"] = "turn"
    """Where tool_use ids must differ (R130). The API accepts the same id in two turns; `history` is stricter."""
    check_signatures: bool = True
    """Refuse thinking that this server did not sign, or signed for another model (R142, R143)."""
    enforce_max_tokens: bool = False
    """Cut a scripted reply that is longer than the request's `max_tokens` (unless the script says how it stops)."""
    image_megabytes: int = 5
    """Limit on the base64 text of an image (R153); 10 has been reported since September 2026."""
    max_body_bytes: int = 32 * 1024 * 1024
    """R001."""
    max_messages: int = 100_000
    """R013."""

    def __post_init__(self) -> None:
        if self.characters_per_token <= 0:
            raise ValueError(f"characters_per_token={self.characters_per_token}: give a number above 0, such as 4.")

    def profile(self, model: str) -> ModelProfile:
        """The profile of a model, `default_profile` when the name is unknown."""
        return profile_of(model, self.models) or self.default_profile

    def knows(self, model: str) -> bool:
        """Whether requests for the model are served at all."""
        return self.accept_unknown_models or profile_of(model, self.models) is not None

    def window(self, model: str, betas: frozenset[str] = frozenset()) -> int:
        """The context window of a model in tokens, widened by the `context-1m` beta where it applies."""
        if self.context_window is not None:
            return self.context_window
        own = self.profile(model).context_window
        wide = any(beta.startswith("context-1m") for beta in betas) and model.startswith("claude-sonnet-4")
        return max(own, 1_000_000) if wide else own
