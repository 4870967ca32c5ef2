"""Why there is no channel, whichever way it was asked for. The sentence says to what, and why."""


class CannotConnect(Exception):
    """There is no channel to be had."""


class NobodyThere(CannotConnect):
    """Nothing answers at that address. Which server it should be, and how it is started, is known
    to who dialled, and not to the transport."""

    exit_code = 5


class NotAdmitted(CannotConnect):
    """Something answers, and refuses us, or is not ours to talk to."""
