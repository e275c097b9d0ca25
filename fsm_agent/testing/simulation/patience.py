"""How long a simulated loop waits for what is not simulated."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Patience:
    """Real seconds for which the loop listens to the outside world before it goes on without it.

    `io` and `job` hold when a timer is set: the clock jumps to it after that silence. `silence` holds when none is:
    then the run is declared dead. Set `io` above the longest time that a server, a child process or another thread
    needs for an answer; a few milliseconds do when both ends of each socket are in this loop.
    """

    io: float = 0.05
    """While a socket, a child process or a signal is watched, or a thread that the loop did not start is alive."""
    job: float = 1.0
    """While an executor job runs."""
    silence: float = 10.0
    """When nothing but the outside world can wake the program."""
