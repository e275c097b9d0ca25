"""Mutants that are known to survive, and why. `docs/mutation.md` tells the same; a test compares them."""

from collections.abc import Mapping

SURVIVORS: Mapping[str, str] = {
    "results are lost when the tools are cancelled": (
        "A second line of defence: what cancels the tools of a run also stops them, which takes the same results once "
        "more; an exception of ours does not, and after it the run has no result at all."
    ),
}
