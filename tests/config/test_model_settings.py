"""The tables `[models.NAME]`: what is read, and what is refused with which words."""

from __future__ import annotations

import pytest

from telex.config.errors import ConfigError, UnknownSetting
from telex.config.layers import (
    Origin,
    Source,
    from_environment,
    from_file,
    from_flags,
    merge,
    settings_of,
)
from telex.config.model_settings import KeySource, ModelCosts, ModelSection

USER = Origin(Source.USER, "config.toml")
CANARY = "sk-canary-9f8e7d6c5b4a39281706"


def models_of(*texts: str) -> dict[str, ModelSection]:
    return settings_of(merge(from_file(text.encode(), USER) for text in texts)).models


def test_a_table_has_all_that_a_model_needs() -> None:
    found = models_of("""
        [models.work]
        dialect = "messages"
        base_url = "https://models.example.com/v1"
        model = "large"
        key = { command = "pass show work" }
        context_window = 200_000
        costs = { input = 3, output = 15.5 }
        effort = "high"
    """)
    assert found == {
        "work": ModelSection(
            dialect="messages",
            base_url="https://models.example.com/v1",
            model="large",
            key=KeySource(command="pass show work"),
            context_window=200_000,
            costs=ModelCosts(input=3, output=15.5),
            effort="high",
        )
    }


def test_the_tables_of_all_files_are_joined_and_the_stronger_wins_by_name() -> None:
    user = '[models.a]\nmodel = "one"\n[models.b]\nmodel = "two"'
    project = '[models.b]\nmodel = "three"'
    assert {name: one.model for name, one in models_of(user, project).items()} == {
        "a": "one",
        "b": "three",
    }


@pytest.mark.parametrize(
    ("table", "words"),
    [
        ('base_uri = "http://x"', "models.m: unknown member base_uri. Did you mean base_url?"),
        ("contextwindow = 5", "Did you mean context_window?"),
        ('key = { variable = "X" }', "models.m.key: unknown member variable. It may have env"),
        ("costs = { inputs = 1 }", "models.m.costs: unknown member inputs. Did you mean input?"),
        (f'key = "{CANARY}"', "telex agent login m"),
        ('key = { env = "A", command = "b" }', "models.m.key must be"),
        ("key = {}", "models.m.key must be"),
        ("key = { env = 5 }", "models.m.key must be"),
        ('dialect = "gemini"', "models.m.dialect: Invalid enum value 'gemini'"),
        ("context_window = 0", "models.m.context_window: Expected `int` >= 1"),
        ("costs = { input = -1 }", "models.m.costs.input: Expected `float` >= 0"),
        ('base_url = "localhost:8080"', "models.m.base_url must begin with http:// or https://"),
        ('base_url = "http://me:secret@x/v1"', "must have no user, no password"),
        ('base_url = "http://x/v1?key=secret"', "must have no user, no password and no query"),
        ('base_url = "http://[x"', "models.m.base_url is not a URL"),
    ],
)
def test_a_mistake_in_a_table_is_named(table: str, words: str) -> None:
    with pytest.raises(ConfigError) as refused:
        models_of(f"[models.m]\n{table}")
    assert words in str(refused.value)
    assert CANARY not in str(refused.value)
    assert "secret" not in str(refused.value)


@pytest.mark.parametrize(
    "text", ["models = 1", "models.m = 1", '[models."a b"]\nmodel = "x"', "[[models]]"]
)
def test_other_shapes_are_no_models(text: str) -> None:
    with pytest.raises(ConfigError, match="models"):
        models_of(text)


def test_only_a_file_can_have_models() -> None:
    assert from_environment({"TELEX_MODELS": "x"}).given == {}
    with pytest.raises(UnknownSetting, match="only be set in a file"):
        from_flags([("models", "x")])
