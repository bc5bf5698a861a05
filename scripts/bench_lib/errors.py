"""What can go wrong, in words for the person who has to fix it."""


class BenchError(Exception):
    """The bench cannot go on. The text says why and what to do."""


class ContestantFailed(BenchError):
    """One of those who are measured has ended or taken too long. The others go on."""
