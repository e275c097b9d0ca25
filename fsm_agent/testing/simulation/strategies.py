"""Orders of a simulated run, drawn and shrunk by Hypothesis."""

from hypothesis import strategies as st

from fsm_agent.testing.simulation.choices import Schedule

_HORIZONS = (15, 127, 1_023, 8_191)  # nobody knows beforehand how many choice points a program has
_STRETCHES = st.one_of(st.just(1), st.integers(1, 8), st.integers(1, 64), st.integers(1, 512))
_MOST_STRETCHES = 8


@st.composite
def simulation_choices(draw: st.DrawFn) -> Schedule:
    """Schedules for `simulate`; they shrink to few deviations, early ones, and at last to asyncio's own order.

    A schedule is a value: the failing example that Hypothesis prints can be pasted into a test.

    >>> import asyncio
    >>> from hypothesis import given
    >>> from fsm_agent.testing.simulation import simulate, simulation_choices
    >>> async def program():
    ...     return await asyncio.gather(asyncio.sleep(1, "a"), asyncio.sleep(1, "b"))
    >>> @given(choices=simulation_choices())
    ... def test_results_keep_their_order(choices):
    ...     assert simulate(program, choices=choices).result == ["a", "b"]
    >>> test_results_keep_their_order()
    """
    # Stretches of disorder, each given by its length and its *last* choice point: a long one explores densely, and
    # while it shrinks it comes down to the one deviation that matters, wherever in it that was.
    positions = st.integers(0, draw(st.sampled_from(_HORIZONS)))
    stretches = draw(st.lists(st.tuples(_STRETCHES, positions, st.integers(0, 255)), max_size=_MOST_STRETCHES))
    deviations: dict[int, int] = {}
    for length, last, pattern in stretches:
        for position in range(max(0, last - length + 1), last + 1):
            if option := _option(pattern, position):
                deviations[position] = option
    return Schedule(deviations.items())


def _option(pattern: int, position: int) -> int:
    """Pattern 0 always takes the second option, the others one of the first six, as good as at random."""
    return (hash((pattern, position)) >> 16) % 6 if pattern else 1  # hashes of integers are the same everywhere
