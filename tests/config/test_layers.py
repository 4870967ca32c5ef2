from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, get_type_hints

import pytest
from hypothesis import given
from hypothesis import strategies as st

from telex.config.errors import BrokenToml, ConfigError, UnknownSetting, Unreadable, WrongValue
from telex.config.layers import (
    EMPTY,
    Layer,
    Origin,
    Source,
    from_environment,
    from_file,
    from_flags,
    merge,
    nearest,
    settings_of,
)
from telex.config.settings import TABLE, Settings

if TYPE_CHECKING:
    from telex.config.layers import Value

USER = Origin(Source.USER, "/c/config.toml")
PROJECT = Origin(Source.PROJECT, "/p/.telex/config.toml")
LEVEL = "one of debug, info, warning, error"


def read(text: str, origin: Origin = USER) -> Layer:
    return from_file(text.encode(), origin)


def value_of(key: str, *layers: Layer) -> Value:
    return next(value for value in merge(layers) if value.setting.key == key)


def test_without_any_source_every_setting_has_its_default() -> None:
    values = merge([])
    assert settings_of(values) == Settings()
    assert {value.origins for value in values} == {(Origin(Source.DEFAULT),)}


def test_the_stronger_source_wins_and_each_value_knows_its_origin() -> None:
    layers = [
        read('[logging]\nlevel = "info"'),
        read('[logging]\nlevel = "error"', PROJECT),
        from_environment({"TELEX_LOGGING_LEVEL": "debug"}),
        from_flags([("logging.level", "warning")]),
    ]
    origins = [USER, PROJECT, Origin(Source.ENVIRONMENT, "TELEX_LOGGING_LEVEL")]
    origins.append(Origin(Source.FLAG, "--set"))
    levels = ["info", "error", "debug", "warning"]
    for strongest in range(4):
        value = value_of("logging.level", *layers[: strongest + 1])
        assert (value.value, value.origins) == (levels[strongest], (origins[strongest],))


def test_a_weaker_source_still_sets_the_keys_that_the_stronger_leaves_out() -> None:
    layers = [read('trace = ["rpc"]'), read('[logging]\nlevel = "error"', PROJECT)]
    settings = settings_of(merge(layers))
    assert (settings.trace, settings.logging.level) == (("rpc",), "error")


def test_secrets_of_all_sources_are_joined() -> None:
    layers = [
        read('[redaction]\nextra_literals = ["mine", "both"]'),
        read('[redaction]\nextra_literals = ["both", "theirs"]', PROJECT),
    ]
    value = value_of("redaction.extra_literals", *layers)
    assert value.value == ("mine", "both", "theirs")
    assert value.origins == (USER, PROJECT)


def test_a_variables_name_follows_from_the_key() -> None:
    assert TABLE["trace"].variable == "TELEX_TRACE"
    assert TABLE["redaction.extra_literals"].variable == "TELEX_REDACTION_EXTRA_LITERALS"


def test_a_list_in_a_variable_has_commas_or_is_toml() -> None:
    for text in ("wire,rpc", " wire , rpc,", '["wire", "rpc"]'):
        given = from_environment({"TELEX_TRACE": text}).given
        assert given["trace"].value == ("wire", "rpc")
    literal = from_flags([("redaction.extra_literals", '["a,b"]')]).given
    assert literal["redaction.extra_literals"].value == ("a,b",)


def test_an_empty_variable_counts_as_unset() -> None:
    assert from_environment({"TELEX_TRACE": "", "TELEX_LOGGING_LEVEL": ""}) == EMPTY


@pytest.mark.parametrize(
    ("text", "key", "meant"),
    [
        ('[logging]\nlevle = "info"', "logging.levle", "logging.level"),
        ('[loging]\nlevel = "info"', "loging.level", "logging.level"),
        ('level = "info"', "level", "logging.level"),
        ("[redaction]\nextra_literal = []", "redaction.extra_literal", "redaction.extra_literals"),
        ("traces = []", "traces", "trace"),
    ],
)
def test_an_unknown_key_is_a_warning_that_names_the_file_the_key_and_the_nearest(
    text: str, key: str, meant: str
) -> None:
    layer = read(text)
    assert layer.warnings == (f"/c/config.toml: unknown key {key}; did you mean {meant}?",)
    assert not layer.given


@pytest.mark.parametrize("text", ["[zebra]", "[zebra]\nstripes = 3", "zebra = 1"])
def test_an_unknown_key_without_a_similar_key_is_a_warning_without_a_suggestion(text: str) -> None:
    (warning,) = read(text).warnings
    assert warning.endswith("; `telex config show` lists all settings")


@pytest.mark.parametrize("text", ["[plugins.x]\ny = 1", '[[permission.rule]]\ntool = "x"'])
def test_sections_that_are_read_elsewhere_give_no_warning(text: str) -> None:
    assert not read(text).warnings


def test_the_known_keys_beside_an_unknown_one_are_read() -> None:
    layer = read('zebra = 1\n[logging]\nlevel = "info"')
    assert layer.given["logging.level"].value == "info"


def test_an_empty_known_section_gives_no_warning() -> None:
    assert read("[logging]") == Layer({})


@pytest.mark.parametrize(
    ("key", "text", "wanted", "found"),
    [
        ("logging.level", "3", LEVEL, "3"),
        ("logging.level", '"loud"', LEVEL, '"loud"'),
        ("logging.level", "{x = 1}", LEVEL, "a table"),
        ("logging", "true", "a table", "true or false"),
        ("trace", '["wire", "wine"]', "a list, each one of wire, rpc", '["wire", "wine"]'),
        ("redaction.replacement", "2026-01-01", "text", "a date or a time"),
        ("redaction.replacement", f"[{'1,' * 100}]", "text", "a list holding a number"),
    ],
)
def test_a_value_that_does_not_fit_is_an_error_with_file_key_wanted_and_found(
    key: str, text: str, wanted: str, found: str
) -> None:
    with pytest.raises(WrongValue) as caught:
        read(f"{key} = {text}")
    assert str(caught.value) == f"/c/config.toml: {key} must be {wanted}; it is {found}"


@pytest.mark.parametrize(
    ("text", "where"),
    [
        ("[logging]\nlevel =\n", "/c/config.toml:2:8: "),
        ("trace = [", "/c/config.toml:1:10: "),
        ("a = 1\na = 2", "/c/config.toml:2:6: "),
        ("\n\nx", "/c/config.toml:3:2: "),
        ("a = " + "[" * 10_000, "/c/config.toml"),
        ("a = " + "9" * 10_000, "/c/config.toml: "),
    ],
)
def test_broken_toml_is_an_error_with_file_line_and_column(text: str, where: str) -> None:
    with pytest.raises(BrokenToml) as caught:
        read(text)
    assert str(caught.value).startswith(where)
    assert "(at" not in str(caught.value)


def test_a_file_that_is_not_text_is_an_error_with_its_line() -> None:
    with pytest.raises(Unreadable, match=r"/c/config.toml:2: this is not UTF-8 text"):
        from_file(b"# ok\n\xff", USER)


@pytest.mark.parametrize("value", ['"hunter2"', '[1, "hunter2"]', '{hunter2 = "hunter2"}'])
def test_an_error_never_quotes_a_secret(value: str) -> None:
    with pytest.raises(WrongValue) as caught:
        read(f"[redaction]\nextra_literals = {value}")
    texts = [str(caught.value), repr(caught.value.__cause__)]
    assert not any("hunter2" in text for text in texts)
    assert caught.value.__suppress_context__


def test_a_secret_list_broken_in_a_variable_is_not_quoted_either() -> None:
    with pytest.raises(WrongValue, match="TELEX_REDACTION_EXTRA_LITERALS must be") as caught:
        from_environment({"TELEX_REDACTION_EXTRA_LITERALS": "['hunter2"})
    assert "hunter2" not in str(caught.value)


def test_a_wrong_variable_is_an_error_that_names_it() -> None:
    with pytest.raises(WrongValue, match=r"^TELEX_LOGGING_LEVEL must be one of .* it is \"loud\"$"):
        from_environment({"TELEX_LOGGING_LEVEL": "loud"})


def test_a_misspelt_variable_is_a_warning_and_an_unrelated_variable_is_ignored() -> None:
    strangers = ("PATH", "TELEX", "TELEX_HOME", "TELEX_SOCKET", "TELEX_TOKEN", "TELEX_TREE")
    environ = dict.fromkeys((*strangers, "TELEX_LOGING_LEVEL"), "info")
    (warning,) = from_environment(environ).warnings
    assert warning == "unknown variable TELEX_LOGING_LEVEL; did you mean TELEX_LOGGING_LEVEL?"


def test_an_unknown_flag_is_an_error_with_the_nearest() -> None:
    with pytest.raises(UnknownSetting) as caught:
        from_flags([("logging.levle", "info")])
    assert str(caught.value) == "unknown setting logging.levle; did you mean logging.level?"


@given(st.sampled_from(sorted(TABLE)), st.data())
def test_a_key_with_one_wrong_letter_is_always_recognised(key: str, data: st.DataObject) -> None:
    at = data.draw(st.integers(0, len(key) - 1))
    assert nearest(key[:at] + "q" + key[at + 1 :], TABLE) == key


@given(st.binary(max_size=60))
def test_any_file_content_is_read_or_refused_with_a_config_error(content: bytes) -> None:
    with contextlib.suppress(ConfigError):
        from_file(content, USER)


def test_every_setting_has_a_description_and_its_default_fits_its_type() -> None:
    for setting in TABLE.values():
        assert setting.description.endswith(".")
        assert setting.expected
    assert set(get_type_hints(Settings)) == {key.partition(".")[0] for key in TABLE}
    assert settings_of(merge([])) == Settings()
