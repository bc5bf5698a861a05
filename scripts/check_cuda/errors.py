"""What ends the check."""


class Failure(Exception):
    """The kernels do not compile, or not as they have to."""
