"""Hypothesis profiles: `ci`, the default, repeats its examples; `fast` tries few, `fresh` has new seeds each time,
`deep` too, and tries many."""

from hypothesis import HealthCheck, settings

settings.register_profile(
    "ci",
    derandomize=True,
    deadline=None,
    print_blob=True,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.register_profile("fast", settings.get_profile("ci"), max_examples=20)
settings.register_profile("fresh", settings.get_profile("ci"), derandomize=False, database=None)
settings.register_profile(
    "deep",
    max_examples=2_000,
    stateful_step_count=100,
    deadline=None,
    print_blob=True,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile("ci")
