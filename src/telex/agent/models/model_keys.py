"""The keys of language models: where they come from, and the file in which `login` stores them.

A key is never part of a message, a log, an event or a command line. A command that prints one is
started without a shell, and its output is not shown, not even when it fails.

A stored key belongs to the server for which it was stored: a project's table of the same name with
another `base_url` does not get it.
"""

from __future__ import annotations

import shlex
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import msgspec

from telex.agent.limits import MODEL_KEY_BYTES, MODEL_KEY_CACHE_SECONDS, MODEL_KEY_SECONDS
from telex.agent.models.errors import KeyMissing
from telex.config.errors import Unreadable
from telex.config.places import read_file, write_private

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from telex.config.model_settings import KeySource


class BadKey(ValueError):
    """A text that cannot be a key, because HTTP headers cannot carry it."""


class StoredKey(msgspec.Struct, frozen=True):
    """A key, and the server that gets it."""

    key: str
    server: str
    """Scheme, host and port."""


def server_of(base_url: str) -> str:
    """Return the scheme, host and port of a URL."""
    parts = urlsplit(base_url)
    return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}".lower()


class KeyFile:
    """The keys that `telex agent login` stored, by name, in a file that only its user can read."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def names(self) -> tuple[str, ...]:
        return tuple(sorted(self._read()))

    def get(self, name: str) -> StoredKey | None:
        return self._read().get(name)

    def store(self, name: str, key: str, base_url: str) -> None:
        """Keep a key for a server. Raises `BadKey`, `ConfigError` and `OSError`."""
        self._write({**self._read(), name: StoredKey(checked(key), server_of(base_url))})

    def remove(self, name: str | None = None) -> tuple[str, ...]:
        """Forget a key, or all keys; return the names of those that there were."""
        stored = self._read()
        removed = tuple(sorted(one for one in stored if name in (None, one)))
        if removed:
            self._write({one: key for one, key in stored.items() if one not in removed})
        return removed

    def _read(self) -> dict[str, StoredKey]:
        content = read_file(self._path, ours=True)
        if content is None:
            return {}
        try:
            return msgspec.json.decode(content, type=dict[str, StoredKey])
        except (msgspec.DecodeError, UnicodeDecodeError):
            # Not chained: a message of the decoder could quote the file.
            raise Unreadable(
                f"{self._path} is damaged; remove it, and log in again: telex agent login NAME"
            ) from None

    def _write(self, keys: dict[str, StoredKey]) -> None:
        if keys:
            write_private(self._path, msgspec.json.encode(keys))
        else:
            self._path.unlink(missing_ok=True)


def checked(key: str) -> str:
    """Return the key without blanks around it. Raises `BadKey`, which does not quote it."""
    key = key.strip()
    if not key:
        raise BadKey("the key is empty")
    if len(key) > MODEL_KEY_BYTES or not key.isascii() or not key.isprintable() or " " in key:
        raise BadKey(
            f"this is not a key: a key is one word of at most {MODEL_KEY_BYTES} ASCII characters"
        )
    return key


@dataclass(slots=True)
class _Cached:
    key: str
    until: float


class KeyReader:
    """Reads the key of a model when it is called, and keeps the output of a command for a while."""

    def __init__(
        self,
        file: KeyFile,
        environ: Mapping[str, str],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._file = file
        self._environ = environ
        self._clock = clock
        self._printed: dict[str, _Cached] = {}

    def origin(
        self, name: str, source: KeySource | None, preset: str, key_env: str, base_url: str
    ) -> str | None:
        """Return where the key of a model comes from, in words; None if there is none."""
        if source is not None and source.command:
            return "a command"
        if source is not None:
            return source.env if self._environ.get(source.env) else None
        if self._stored(name, preset, base_url):
            return "telex agent login"
        return key_env if key_env and self._environ.get(key_env) else None

    async def read(
        self, name: str, source: KeySource | None, preset: str, key_env: str, base_url: str
    ) -> str:
        """Return the key; empty if the model has none and needs none. Raises `KeyMissing`."""
        if source is not None and source.command:
            return await self._from_command(name, source.command)
        if source is not None:
            return self._from_variable(name, source.env)
        if stored := self._stored(name, preset, base_url):
            return stored
        if (other := self._file.get(name)) is not None and not key_env:
            raise KeyMissing(
                f"the stored key of {name} belongs to {other.server}, and this model is at "
                f"{server_of(base_url)}; to send a key there, run: telex agent login {name}"
            )
        return self._from_variable(preset or name, key_env) if key_env else ""

    def _stored(self, name: str, preset: str, base_url: str) -> str | None:
        """Return the stored key of the model or of its provider, if it belongs to this server."""
        found = (self._file.get(name), self._file.get(preset))
        server = server_of(base_url)
        return next((one.key for one in found if one is not None and one.server == server), None)

    def forget(self) -> None:
        """Forget the output of commands."""
        self._printed.clear()

    def _from_variable(self, name: str, variable: str) -> str:
        found = self._environ.get(variable, "")
        if not found:
            raise KeyMissing(f"{variable} is not set; set it, or run: telex agent login {name}")
        try:
            return checked(found)
        except BadKey as error:
            raise KeyMissing(f"{variable}: {error}") from None

    async def _from_command(self, name: str, command: str) -> str:
        cached = self._printed.get(command)
        if cached is not None and cached.until > self._clock():
            return cached.key
        key = await printed_key(name, command, self._environ)
        self._printed[command] = _Cached(key, self._clock() + MODEL_KEY_CACHE_SECONDS)
        return key


async def printed_key(name: str, command: str, environ: Mapping[str, str]) -> str:
    """Return the first line that a command prints. Raises `KeyMissing`, which quotes no output."""
    from telex.agent.command_runner import run_command
    from telex.processes.spawn import StartFailed

    said = f"the command for the key of {name}"
    try:
        argv = shlex.split(command)
    except ValueError as error:
        raise KeyMissing(f"{said} cannot be read: {error}") from None
    if not argv:
        raise KeyMissing(f"{said} is empty")
    try:
        ended = await run_command(
            argv, env=environ, cwd=Path.home(), seconds=MODEL_KEY_SECONDS, most_bytes=1024 * 1024
        )
    except StartFailed as error:
        raise KeyMissing(f"{said} cannot be started: {error}") from None
    if ended.timed_out:
        raise KeyMissing(f"{said} did not end in {MODEL_KEY_SECONDS} s")
    if ended.exit_code != 0:
        how = ended.signal or f"exit code {ended.exit_code}"
        raise KeyMissing(f"{said} failed ({how}); run it yourself to see why: {argv[0]}")
    try:
        return checked(ended.stdout.partition("\n")[0])
    except BadKey as error:
        raise KeyMissing(f"{said} printed no key: {error}") from None
