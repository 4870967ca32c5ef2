"""Why there is no channel, whichever way it was asked for. The sentence says to what, and why."""


class CannotConnect(Exception):
    """There is no channel to be had."""


class NobodyThere(CannotConnect):
    """Nothing answers at that address."""


class NotAdmitted(CannotConnect):
    """Something answers, and refuses us, or is not ours to talk to."""
