"""Each decision is a line in a file that only this user can access."""

from __future__ import annotations

import json
import os
import stat
from datetime import UTC, datetime
from pathlib import Path

import pytest

from disks import limited
from telex.config.errors import NotPrivate
from telex.config.places import Places
from telex.escapes import limits
from telex.escapes.gate import AuditLog, GateDecision, audit_file
from telex.escapes.policy import RequestOrigin

DENIED = GateDecision(
    "clip:read", RequestOrigin("remote", "ssh", (1, 2)), "clipboard", False, "rule 2"
)


def lines(path: Path) -> list[dict[str, object]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "state" / "logs" / "escapes.jsonl"


def test_a_decision_is_one_line_of_json(path: Path) -> None:
    AuditLog(path)(DENIED)
    (line,) = lines(path)
    told = datetime.fromisoformat(str(line.pop("time")))
    assert abs((datetime.now(UTC) - told).total_seconds()) < 60
    assert line == {
        "command": "clip:read",
        "origin": "remote",
        "program": "ssh",
        "decision": "deny",
        "by": "rule 2",
        "summary": "clipboard",
    }


def test_only_this_user_can_access_the_file_and_its_directory(path: Path) -> None:
    before = os.umask(0)
    try:
        AuditLog(path)(DENIED)
    finally:
        os.umask(before)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700


def test_secrets_are_masked_and_line_ends_are_escaped(path: Path) -> None:
    log = AuditLog(path)
    log(
        GateDecision(
            "clip:write", RequestOrigin("local", "a\nb"), "password=hunter2 \n{}", True, "rule 1"
        )
    )
    (line,) = lines(path)
    assert "hunter2" not in path.read_text()
    assert "[REDACTED]" in str(line["summary"])
    assert line["program"] == "a\nb"


def test_a_long_summary_is_cut_after_it_was_redacted(path: Path) -> None:
    secret = "ghp_" + "a" * 36
    text = "x" * (limits.AUDIT_SUMMARY_CHARS - 10) + " " + secret
    AuditLog(path)(GateDecision("clip:write", RequestOrigin("local"), text, True, "rule 1"))
    (line,) = lines(path)
    assert len(str(line["summary"])) == limits.AUDIT_SUMMARY_CHARS
    assert "ghp" not in path.read_text()


def test_a_full_file_replaces_the_previous_one(path: Path) -> None:
    log, other = AuditLog(path), AuditLog(path)
    path.parent.mkdir(mode=0o700, parents=True)
    old = path.with_name("escapes.jsonl.1")
    old.write_text("older\n")
    path.write_text("x" * (limits.AUDIT_BYTES - 1) + "\n")
    path.chmod(0o600)
    log(DENIED)
    assert not path.exists()
    assert old.stat().st_size > limits.AUDIT_BYTES
    other(DENIED)
    log(DENIED)
    assert len(lines(path)) == 2


def test_a_line_on_a_full_disk_raises_and_leaves_no_partial_line(path: Path) -> None:
    log = AuditLog(path)
    log(DENIED)
    with limited(path.stat().st_size + 40), pytest.raises(OSError, match="No space left"):
        log(DENIED)
    assert len(lines(path)) == 1
    log(DENIED)
    assert len(lines(path)) == 2


@pytest.mark.parametrize("kind", ["link", "open", "pipe"])
def test_a_file_that_others_can_access_is_refused(path: Path, kind: str) -> None:
    path.parent.mkdir(mode=0o700, parents=True)
    target = path.parent / "target"
    target.touch(mode=0o600)
    match kind:
        case "link":
            path.symlink_to(target)
        case "open":
            path.write_text("")
            path.chmod(0o644)
        case "pipe":
            os.mkfifo(path, 0o600)
    with pytest.raises((NotPrivate, OSError)):
        AuditLog(path)(DENIED)
    assert target.read_text() == ""


def test_a_directory_that_others_can_access_is_refused(path: Path) -> None:
    path.parent.mkdir(parents=True)
    path.parent.chmod(0o755)
    with pytest.raises(NotPrivate):
        AuditLog(path)(DENIED)


def test_the_audit_is_in_the_directory_of_logs(tmp_path: Path) -> None:
    places = Places(tmp_path, tmp_path, tmp_path / "state", tmp_path)
    assert audit_file(places) == tmp_path / "state" / "logs" / "escapes.jsonl"
