"""Wrong usage of the command line."""


class UsageError(Exception):
    """What was wrong and what to write instead, in whole sentences. The command line shows it and exits with 2."""
