"""What can go wrong, in words for the person who has to fix it."""


class BenchError(Exception):
    """The bench cannot go on. The text says why and what to do."""


class ContestantFailed(BenchError):
    """One of those who are measured has ended or taken too long. The others go on."""


class AnotherRuns(BenchError):
    """Another bench measures on this machine."""

    def __init__(self, other):
        super().__init__(f"another bench is running: {other}. Wait for its end, or end it")
