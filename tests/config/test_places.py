from __future__ import annotations

import contextlib
import os
import shutil
import socket
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from telex.config.errors import BadPlace
from telex.config.limits import SOCKET_PATH_BYTES
from telex.config.places import Bases, find, make_private, places

BASES = Bases(
    config=Path("/home/ada/.config/telex"),
    data=Path("/home/ada/.local/share/telex"),
    state=Path("/home/ada/.local/state/telex"),
    runtime=None,
    temporary=Path("/tmp"),
    user=1000,
)
LOGIN = Bases(BASES.config, BASES.data, BASES.state, Path("/run/user/1000"), BASES.temporary, 1000)


def test_directories_follow_the_platform() -> None:
    here = places({}, BASES)
    assert here.config_file == BASES.config / "config.toml"
    assert (here.adapters, here.plugins) == (BASES.data / "adapters", BASES.data / "plugins")
    assert here.database == BASES.state / "telex.db"
    assert (here.logs, here.recordings) == (BASES.state / "logs", BASES.state / "recordings")


def test_telex_home_puts_everything_into_one_directory() -> None:
    here = places({"TELEX_HOME": "/srv/t", "XDG_RUNTIME_DIR": "/run/user/1000"}, LOGIN)
    assert here.config_file == Path("/srv/t/config.toml")
    assert all(
        path.is_relative_to("/srv/t")
        for path in (here.adapters, here.plugins, here.database, here.logs, here.socket)
    )


def test_a_relative_telex_home_is_refused_by_name() -> None:
    with pytest.raises(BadPlace, match=r"TELEX_HOME must be an absolute path; it is '~/telex'"):
        places({"TELEX_HOME": "~/telex"}, BASES)


def test_an_empty_telex_home_counts_as_unset() -> None:
    assert places({"TELEX_HOME": ""}, BASES) == places({}, BASES)


@pytest.mark.parametrize(
    ("environ", "bases", "expected"),
    [
        ({"XDG_RUNTIME_DIR": "/run/mine"}, LOGIN, "/run/mine/telex/telex.sock"),
        ({}, LOGIN, "/run/user/1000/telex/telex.sock"),
        ({"XDG_RUNTIME_DIR": "relative"}, LOGIN, "/run/user/1000/telex/telex.sock"),
        ({}, BASES, "/tmp/telex-1000/telex.sock"),
    ],
)
def test_the_socket_is_in_the_most_private_directory_available(
    environ: dict[str, str], bases: Bases, expected: str
) -> None:
    assert str(places(environ, bases).socket) == expected


@given(st.text("aé", min_size=1, max_size=200), st.sampled_from(["TELEX_HOME", "XDG_RUNTIME_DIR"]))
def test_the_sockets_path_always_fits(name: str, variable: str) -> None:
    here = places({variable: f"/{name}"}, BASES)
    assert len(os.fsencode(here.socket)) <= SOCKET_PATH_BYTES


def test_two_long_homes_do_not_share_a_socket() -> None:
    one, other = (places({"TELEX_HOME": f"/{'x' * 150}/{n}"}, BASES).socket for n in "12")
    assert one != other


def test_the_socket_of_a_home_that_is_too_long_can_be_bound(tmp_path: Path) -> None:
    here = find({"TELEX_HOME": str(tmp_path / ("long" * 30))})
    with contextlib.ExitStack() as cleanup:
        cleanup.callback(shutil.rmtree, here.runtime)
        make_private(here.runtime)
        server = cleanup.enter_context(socket.socket(socket.AF_UNIX))
        server.bind(os.fspath(here.socket))
        assert here.socket.is_socket()


def test_finding_the_places_creates_no_directory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for variable in ("XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_STATE_HOME", "XDG_RUNTIME_DIR"):
        monkeypatch.setenv(variable, str(tmp_path / variable))
    monkeypatch.delenv("TELEX_HOME", raising=False)
    here = find()
    assert here.config_file == tmp_path / "XDG_CONFIG_HOME" / "telex" / "config.toml"
    assert here.state == tmp_path / "XDG_STATE_HOME" / "telex"
    assert list(tmp_path.iterdir()) == []
