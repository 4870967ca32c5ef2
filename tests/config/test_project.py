from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

from telex.config import load as config_load
from telex.config.errors import NotPrivate, WrongValue
from telex.config.layers import Origin, Source, from_flags
from telex.config.load import ProjectFile, Trust, load
from telex.config.places import Places

if TYPE_CHECKING:
    from pathlib import Path

LOUD = b'[logging]\nlevel = "debug"\n'


@pytest.fixture
def here(tmp_path: Path) -> Places:
    return Places(*(tmp_path / name for name in ("config", "data", "state", "run")))


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    root = tmp_path / "repository"
    (root / ".git").mkdir(parents=True)
    (root / "src" / "deep").mkdir(parents=True)
    return root


def write(directory: Path, content: bytes = LOUD) -> Path:
    path = directory / ".telex" / "config.toml"
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(content)
    return path


def read(path: Path, here: Places) -> ProjectFile:
    file = config_load.read(path, here.trusted)
    assert file is not None
    return file


def test_the_nearest_file_up_to_the_repositorys_root_is_found(repository: Path) -> None:
    deep = repository / "src" / "deep"
    assert config_load.find(deep) is None
    at_root = write(repository)
    assert config_load.find(deep) == at_root
    nearer = write(repository / "src")
    assert config_load.find(deep) == nearer


def test_the_search_stops_at_the_repositorys_root(repository: Path) -> None:
    write(repository.parent)
    assert config_load.find(repository / "src") is None


def test_outside_a_repository_only_the_directory_itself_is_searched(tmp_path: Path) -> None:
    (tmp_path / "below").mkdir()
    path = write(tmp_path)
    assert config_load.find(tmp_path) == path
    assert config_load.find(tmp_path / "below") is None


def test_a_file_is_trusted_only_after_the_user_trusted_it(repository: Path, here: Places) -> None:
    path = write(repository)
    assert read(path, here).trust is Trust.UNTRUSTED
    config_load.trust(read(path, here), here.trusted)
    assert read(path, here).trust is Trust.TRUSTED
    assert config_load.untrust(path, here.trusted)
    assert read(path, here).trust is Trust.UNTRUSTED
    assert not config_load.untrust(path, here.trusted)


def test_trust_is_for_one_path_and_one_content(repository: Path, here: Places) -> None:
    path = write(repository)
    config_load.trust(read(path, here), here.trusted)
    assert read(write(repository / "src"), here).trust is Trust.UNTRUSTED
    write(repository, LOUD + b"# more\n")
    assert read(path, here).trust is Trust.CHANGED
    write(repository, LOUD)
    assert read(path, here).trust is Trust.TRUSTED


def test_trust_is_for_the_content_that_was_read_not_for_the_current_content(
    repository: Path, here: Places
) -> None:
    path = write(repository)
    seen = read(path, here)
    write(repository, b'[redaction]\nreplacement = ""\n')
    config_load.trust(seen, here.trusted)
    assert read(path, here).trust is Trust.CHANGED


def test_trust_can_be_revoked_after_the_file_was_removed(repository: Path, here: Places) -> None:
    path = write(repository)
    config_load.trust(read(path, here), here.trusted)
    path.unlink()
    assert config_load.untrust(path, here.trusted)


def test_a_record_that_others_could_have_written_is_refused(repository: Path, here: Places) -> None:
    path = write(repository)
    config_load.trust(read(path, here), here.trusted)
    (record,) = here.trusted.iterdir()
    record.chmod(0o666)
    with pytest.raises(NotPrivate):
        read(path, here)


def test_a_corrupt_record_means_untrusted(repository: Path, here: Places) -> None:
    path = write(repository)
    config_load.trust(read(path, here), here.trusted)
    (record,) = here.trusted.iterdir()
    record.write_bytes(b"{")
    assert read(path, here).trust is Trust.UNTRUSTED


def test_an_untrusted_file_changes_nothing_and_is_mentioned(repository: Path, here: Places) -> None:
    path = write(repository, b"this is not even TOML")
    config = load(here, {}, repository)
    assert config.settings.logging.level == "warning"
    (warning,) = config.warnings
    assert warning.startswith(f"{path}: not read, it is not trusted;")
    assert warning.endswith(f"telex config trust {repository}")


def test_a_trusted_file_is_stronger_than_the_users_and_weaker_than_the_environment(
    repository: Path, here: Places
) -> None:
    here.config.mkdir()
    here.config_file.write_bytes(b'[logging]\nlevel = "error"\n')
    path = write(repository)
    assert load(here, {}, repository).settings.logging.level == "error"
    config_load.trust(read(path, here), here.trusted)
    config = load(here, {}, repository / "src")
    assert config.settings.logging.level == "debug"
    origins = {value.setting.key: value.origins for value in config.values}
    assert origins["logging.level"] == (Origin(Source.PROJECT, str(path)),)
    assert config.warnings == ()
    environ = {"TELEX_LOGGING_LEVEL": "info"}
    assert load(here, environ, repository).settings.logging.level == "info"
    flags = from_flags([("logging.level", "warning")])
    assert load(here, environ, repository, flags).settings.logging.level == "warning"


def test_a_changed_file_is_not_read_and_the_warning_says_why(
    repository: Path, here: Places
) -> None:
    path = write(repository)
    config_load.trust(read(path, here), here.trusted)
    write(repository, b'[logging]\nlevel = "info"\n')
    config = load(here, {}, repository)
    assert config.settings.logging.level == "warning"
    assert "it changed since you trusted it" in config.warnings[0]


@pytest.mark.usefixtures("_no_blocking")
def test_a_pipe_in_place_of_the_project_file_stops_nothing(repository: Path, here: Places) -> None:
    (repository / ".telex").mkdir()
    os.mkfifo(repository / ".telex" / "config.toml")
    (warning,) = load(here, {}, repository).warnings
    assert "not a regular file" in warning


def test_the_users_own_file_is_not_a_project_file(tmp_path: Path) -> None:
    home = tmp_path / ".telex"
    write(tmp_path)
    here = Places(home, home / "data", home / "state", home / "run")
    config = load(here, {}, tmp_path)
    assert (config.project_file, config.warnings) == (None, ())
    assert config.settings.logging.level == "debug"


def test_without_any_file_all_settings_are_defaults_and_no_file_is_created(
    tmp_path: Path, here: Places
) -> None:
    config = load(here, {}, tmp_path)
    assert config.settings.logging.level == "warning"
    assert list(tmp_path.iterdir()) == []


def test_a_wrong_value_in_the_users_file_is_raised(tmp_path: Path, here: Places) -> None:
    here.config.mkdir()
    here.config_file.write_bytes(b"trace = 3\n")
    with pytest.raises(WrongValue, match=r"config\.toml: trace must be a list"):
        load(here, {}, tmp_path)


def test_a_removed_working_directory_has_no_project(
    tmp_path: Path, here: Places, monkeypatch: pytest.MonkeyPatch
) -> None:
    gone = tmp_path / "gone"
    gone.mkdir()
    monkeypatch.chdir(gone)
    gone.rmdir()
    assert load(here, {}).project_file is None
