"""What can be wrong with a simulated run as a whole. The messages say which task waits for what, and where."""


class SimulationError(Exception):
    """The program under simulation did not run to a clean end."""


class Deadlock(SimulationError):  # noqa: N818
    """Nothing is ready, no timer is set, nobody outside can speak, and the program has not ended."""


class Livelock(SimulationError):  # noqa: N818
    """The program was still going after the largest number of steps."""


class OutOfTime(SimulationError):  # noqa: N818
    """The program was still going when the virtual clock had to pass `max_time`."""


class LeftBehind(SimulationError):  # noqa: N818
    """The program ended, but a task, a timer, an asynchronous generator, a socket or an executor job of it did not."""


class BackgroundFailure(SimulationError):  # noqa: N818
    """The program ended, but the loop's exception handler was called; the first exception is the cause of this one."""
