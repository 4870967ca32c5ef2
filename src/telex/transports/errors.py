"""Why a connection could not be made, for every transport."""


class CannotConnect(Exception):
    """The connection could not be made; the message says to what, and why."""

    __module__ = "telex"


class NoServer(CannotConnect):
    """Nothing listens at that address. The caller adds how to start a server there, since the
    transport does not know which server it should be."""

    __module__ = "telex"

    exit_code = 5


class AccessDenied(CannotConnect):
    """The other end answered, but refused us, or belongs to another user."""

    __module__ = "telex"

    exit_code = 4
