"""The tables `[models.NAME]` of `config.toml`: which language models there are, and how to reach
them.

    [models.local]
    preset = "ollama"
    model = "qwen3:8b"

    [models.work]
    dialect = "chat"
    base_url = "https://models.example.com/v1"
    model = "large"
    key = { command = "pass show models/work" }

An unknown member is refused, unlike elsewhere in the file: a misspelt `base_url` would send a
conversation to another server. No message quotes a value of `key`.
"""

from __future__ import annotations

import re
from typing import Annotated, Any, Final, Literal

import msgspec
from msgspec import Meta, Struct

from telex.config.errors import UnknownSetting, WrongValue

Tokens = Annotated[int, Meta(ge=1)]
Seconds = Annotated[float, Meta(gt=0)]
Dollars = Annotated[float, Meta(ge=0)]


class KeySource(Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    """Where a key comes from: exactly one of the two."""

    env: Annotated[str, Meta(description="The variable of the environment that has the key.")] = ""
    command: Annotated[
        str,
        Meta(description="A command that prints the key; it runs without a shell."),
    ] = ""


class ModelCosts(Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    """The prices of a model, in US dollars for a million tokens."""

    input: Annotated[Dollars | None, Meta(description="Tokens of the input.")] = None
    output: Annotated[Dollars | None, Meta(description="Tokens of the answer.")] = None
    cached_input: Annotated[
        Dollars | None, Meta(description="Tokens of the input that came from the cache.")
    ] = None
    cache_write: Annotated[
        Dollars | None, Meta(description="Tokens of the input that were put into the cache.")
    ] = None


class ModelSection(Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    """One table `[models.NAME]`."""

    preset: Annotated[
        str,
        Meta(
            description="The provider whose values are the defaults: openai, anthropic, ollama, "
            "llamacpp, vllm, lmstudio or openrouter. By default NAME, if it is one of these."
        ),
    ] = ""
    dialect: Annotated[
        Literal["chat", "responses", "messages"] | None,
        Meta(description="The API of the server: /chat/completions, /responses or /messages."),
    ] = None
    base_url: Annotated[
        str,
        Meta(description="The address in front of that path, as in http://127.0.0.1:8080/v1."),
    ] = ""
    model: Annotated[
        str, Meta(description="The provider's name of the model. By default that of the preset.")
    ] = ""
    key: Annotated[
        KeySource | None,
        Meta(
            description='{ env = "NAME" } or { command = "..." }. By default the key that `telex '
            "agent login NAME` stored, else the variable of the preset."
        ),
    ] = None
    context_window: Annotated[
        Tokens | None, Meta(description="The tokens that the model can read, with its answer.")
    ] = None
    max_output_tokens: Annotated[
        Tokens | None, Meta(description="The longest answer that is asked for, in tokens.")
    ] = None
    reasoning: Annotated[
        bool | None,
        Meta(
            description="Whether the model reasons before it answers. Some servers refuse to be "
            "asked for that."
        ),
    ] = None
    effort: Annotated[
        Literal["none", "low", "medium", "high"] | None,
        Meta(description="How much it reasons."),
    ] = None
    images: Annotated[
        bool | None,
        Meta(
            description="Whether the model sees images. If it is false, an input with images is "
            "refused. By default the server decides."
        ),
    ] = None
    costs: Annotated[
        ModelCosts, Meta(description="Its prices: input, output, cached_input, cache_write.")
    ] = ModelCosts()
    first_seconds: Annotated[
        Seconds | None, Meta(description="How long to wait for the beginning of an answer.")
    ] = None
    silence_seconds: Annotated[
        Seconds | None, Meta(description="How long an answer may pause.")
    ] = None


_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._:/-]{0,99}")


def read_models(value: object, where: str) -> dict[str, ModelSection]:
    """Return the tables by name. Raises `WrongValue` and `UnknownSetting`."""
    if not isinstance(value, dict):
        raise WrongValue(f"{where} must be tables, as in [models.local]")
    return {name: _read(table, f"{where}.{name}", name) for name, table in value.items()}


def _read(table: object, where: str, name: str) -> ModelSection:
    if not _NAME.fullmatch(name):
        raise WrongValue(f"{where}: the name of a model has letters, digits and . _ : / - only")
    if not isinstance(table, dict):
        raise WrongValue(f"{where} must be a table")
    check_members(table, ModelSection, where)
    for member, kind in (("key", KeySource), ("costs", ModelCosts)):
        if isinstance(inner := table.get(member), dict):
            check_members(inner, kind, f"{where}.{member}")
    if "key" in table:
        _check_key(table["key"], where, name)
    try:
        section = msgspec.convert(table, ModelSection)
    except msgspec.ValidationError as error:
        message, _, place = str(error).partition(" - at `$")
        raise WrongValue(f"{where}{place.rstrip('`')}: {message}") from None
    if section.base_url:
        check_url(section.base_url, f"{where}.base_url")
    return section


def check_members(table: dict[str, Any], kind: type[Struct], where: str) -> None:
    """Raise `UnknownSetting`, with the nearest name, for a member that the struct does not have."""
    known = [field.name for field in msgspec.structs.fields(kind)]
    for member in table:
        if member not in known:
            from telex.rpc.nearest import did_you_mean, nearest_names  # needed for a mistake only

            hint = did_you_mean(nearest_names(member, known)) or f"It may have {', '.join(known)}."
            raise UnknownSetting(f"{where}: unknown member {member}. {hint}")


def _check_key(key: object, where: str, name: str) -> None:
    given = [one for one in ("env", "command") if isinstance(key, dict) and key.get(one)]
    if not isinstance(key, dict) or len(given) != 1 or not isinstance(key[given[0]], str):
        raise WrongValue(
            f'{where}.key must be {{ env = "NAME" }} or {{ command = "..." }}; the key itself does '
            f"not belong in this file: telex agent login {name}"
        )


def check_url(url: str, where: str) -> None:
    """Raise `WrongValue`, which does not quote the URL, if it cannot be the address of a server."""
    from urllib.parse import urlsplit  # few configurations have a URL

    try:
        parts = urlsplit(url)
        good = parts.scheme in ("http", "https") and bool(parts.hostname)
    except ValueError:
        raise WrongValue(f"{where} is not a URL") from None
    if not good:
        raise WrongValue(f"{where} must begin with http:// or https://, and name a server")
    if parts.username or parts.password or parts.query or parts.fragment:
        raise WrongValue(f"{where} must have no user, no password and no query")
