"""What can go wrong, in words for the person who has to fix it."""


class DevnetError(Exception):
    """The devnet cannot go on. The text says why and what to do."""


class Interrupted(DevnetError):
    """Somebody asked us to stop."""


class CommandFailed(DevnetError):
    """A command ended with an error."""

    def __init__(self, argv, returncode, stdout, stderr):
        self.argv, self.returncode, self.stdout, self.stderr = argv, returncode, stdout, stderr
        said = (stderr.strip() or stdout.strip() or "it said nothing")[-2000:]
        super().__init__(f"`{' '.join(map(str, argv))}` ended with {returncode}: {said}")


class RpcError(DevnetError):
    """A node answered with an error, or not at all."""
