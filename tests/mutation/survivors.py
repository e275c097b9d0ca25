"""Mutants that are known to survive, and why. `docs/mutation.md` tells the same; a test compares them."""

from collections.abc import Mapping

SURVIVORS: Mapping[str, str] = {
    "what was said of a visit is kept for the next": (
        "Nothing reads what is kept: a sentence is looked up only for an effect of the visit at hand."
    ),
    "calls that the budget forbids get no result": (
        "A second line of defence: the effect that finds the budget spent has answered the calls already."
    ),
    "results are lost when the tools are cancelled": (
        "A second line of defence: an abort takes the results once more when it stops the tools."
    ),
    "an abort is taken for silence": (
        "The abort ends the run all the same, at the next effect; only the moment of a timer could tell the two apart."
    ),
}
