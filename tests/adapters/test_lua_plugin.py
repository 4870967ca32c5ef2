"""Plugins read from the disk: which files are read, and that no file outside of the directory is.

Every escape is tried twice: with the kernel's path resolution (openat2), and with telex's own.
"""

from __future__ import annotations

import errno
import json
import os
import socket
import stat
import sys
import threading
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from telex.adapters import limits
from telex.adapters.lua_plugin import LuaPlugin, PluginRefused, read_plugin
from telex.adapters.manifest import WHOLE, BadManifest
from telex.processes import openat
from telex.processes.openat import open_beneath

OUTSIDE = "return { stolen = true }"
INSIDE = "return {}"


@pytest.fixture(params=["kernel", "steps"], autouse=True)
def way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    def refuse(_root: int, path: str, *, links: bool = True) -> int:
        raise OSError(errno.ENOSYS, "not here", path)

    if request.param == "steps":
        monkeypatch.setattr(openat, "_by_the_kernel", refuse)
    elif sys.platform != "linux":
        pytest.skip("openat2 is Linux's")
    return str(request.param)


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """A plugin's directory, with foreign files beside it."""
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "main.lua").write_text(OUTSIDE)
    (tmp_path / "main.lua").write_text(OUTSIDE)
    (tmp_path / "plugin" / "lib").mkdir(parents=True)
    (tmp_path / "plugin" / "main.lua").write_text(INSIDE)
    return tmp_path / "plugin"


def write_manifest(directory: Path, entrypoint: str = "main.lua") -> Path:
    path = directory / "manifest.toml"
    spelt = json.dumps(entrypoint)  # JSON strings are also TOML strings
    path.write_text(
        'name = "demo"\nkind = "adapter"\nversion = "1"\nruntime = "lua"\n'
        f'entrypoint = {spelt}\npermissions = ["screen.read"]\n'
    )
    return path


def read(directory: Path, entrypoint: str = "main.lua") -> LuaPlugin:
    return read_plugin(write_manifest(directory, entrypoint))


def refused(directory: Path, entrypoint: str = "main.lua") -> PluginRefused:
    with pytest.raises(PluginRefused) as raised:
        read(directory, entrypoint)
    return raised.value


# Files that are read.


def test_openat2_is_used_where_the_kernel_has_it(home: Path, way: str) -> None:
    root = os.open(home, os.O_RDONLY)
    try:
        if way == "kernel":
            os.close(openat._by_the_kernel(root, "main.lua"))
    finally:
        os.close(root)


def test_every_lua_file_is_read_and_the_plugin_needs_no_disk_afterwards(home: Path) -> None:
    (home / "lib" / "deep").mkdir()
    (home / "lib" / "deep" / "x.lua").write_text("return 'ü'\r\n", newline="")
    (home / "notes.txt").write_text("not Lua")
    plugin = read(home)
    (home / "main.lua").write_text("changed")
    assert plugin.files == {"main.lua": INSIDE, "lib/deep/x.lua": "return 'ü'\r\n"}
    assert (plugin.name, plugin.permissions) == ("demo", {"screen.read"})
    assert (plugin.builtin, plugin.directory) == (False, home)


def test_an_entrypoint_may_have_any_name_and_depth(home: Path) -> None:
    (home / "fixtures").mkdir()
    (home / "fixtures" / "start").write_text("return 1")
    assert read(home, "fixtures/start").files["fixtures/start"] == "return 1"
    assert read(home, "./main.lua").files == {"main.lua": INSIDE}


def test_hidden_files_and_fixtures_are_left_out(home: Path) -> None:
    for place in (".git/a.lua", "fixtures/b.lua", "lib/fixtures/c.lua", ".#main.lua", "._x.lua"):
        (home / place).parent.mkdir(exist_ok=True)
        (home / place).write_bytes(b"\x1b\xff")
    assert list(read(home).files) == ["main.lua"]


def test_a_byte_order_mark_is_no_part_of_the_source(home: Path) -> None:
    (home / "main.lua").write_bytes(b"\xef\xbb\xbfreturn {}")
    assert read(home).files["main.lua"] == "return {}"


def test_a_relative_path_works_too(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_manifest(home)
    monkeypatch.chdir(home)
    assert read_plugin(Path("manifest.toml"), builtin=True).builtin


# Links that stay inside.


@pytest.mark.parametrize(
    ("link", "target", "entrypoint"),
    [
        ("start.lua", "main.lua", "start.lua"),
        ("lib/up.lua", "../main.lua", "lib/up.lua"),
        ("lib/round.lua", "../lib/../main.lua", "lib/round.lua"),
        ("also", "lib", "also/../main.lua"),
        ("here", ".", "here/here/main.lua"),
        ("lib/here", "..", "lib/here/main.lua"),
    ],
)
def test_a_link_to_the_inside_is_followed(
    home: Path, link: str, target: str, entrypoint: str
) -> None:
    (home / link).symlink_to(target)
    root = os.open(home, os.O_RDONLY)
    try:
        with open(open_beneath(root, entrypoint)) as file:
            assert file.read() == INSIDE
    finally:
        os.close(root)
    if ".." not in entrypoint:
        assert read(home, entrypoint).files[entrypoint] == INSIDE


def test_a_linked_directory_is_not_walked_so_that_a_loop_ends(home: Path) -> None:
    (home / "lib" / "x.lua").write_text("return 2")
    (home / "also").symlink_to("lib")
    (home / "lib" / "loop").symlink_to("..")
    (home / "away").symlink_to("../outside")
    assert set(read(home).files) == {"main.lua", "lib/x.lua"}


# Escapes.


def link(name: str, target: str) -> Callable[[Path], None]:
    return lambda home: (home / name).symlink_to(target)


def chain(home: Path) -> None:
    (home / "main2.lua").symlink_to("lib/next.lua")
    (home / "lib" / "next.lua").symlink_to("../last.lua")
    (home / "last.lua").symlink_to("../main.lua")


def chained_directories(home: Path) -> None:
    (home / "one").symlink_to("lib/two")
    (home / "lib" / "two").symlink_to("../..")


def long_chain(home: Path) -> None:
    for n in range(60):
        (home / f"l{n}").symlink_to(f"l{n + 1}")
    (home / "l60").symlink_to("main.lua")


def absolute_inside(home: Path) -> None:
    (home / "abs.lua").symlink_to(home / "main.lua")


def inside_name_outside_place(home: Path) -> None:
    (home / "x.lua").symlink_to("../plugin/main.lua")


def nothing(_home: Path) -> None:
    pass


def fifo(home: Path) -> None:
    os.mkfifo(home / "pipe.lua")


def listening(home: Path) -> None:
    here = os.open(".", os.O_RDONLY)
    os.chdir(home)  # a socket's path must be short
    try:
        with socket.socket(socket.AF_UNIX) as listener:
            listener.bind("s.lua")
    finally:
        os.fchdir(here)
        os.close(here)


def directory(home: Path) -> None:
    (home / "dir.lua").mkdir()


WAYS_OUT: list[tuple[str, Callable[[Path], None], str, str]] = [
    ("a link to a file outside", link("x.lua", "../main.lua"), "x.lua", "is outside of"),
    ("a link further out", link("x.lua", "../../../etc/passwd"), "x.lua", "is outside of"),
    ("an absolute link", link("x.lua", "/etc/passwd"), "x.lua", "is outside of"),
    ("an absolute link to the root", link("x", "/"), "x/etc/passwd", "is outside of"),
    ("an absolute link back inside", absolute_inside, "abs.lua", "is outside of"),
    ("out and back in by name", inside_name_outside_place, "x.lua", "is outside of"),
    ("a linked directory outside", link("x", "../outside"), "x/main.lua", "is outside of"),
    ("a linked directory above", link("x", ".."), "x/main.lua", "is outside of"),
    ("above and down again", link("x", ".."), "x/plugin/main.lua", "is outside of"),
    (
        "a link below that leads out",
        link("lib/x.lua", "../../main.lua"),
        "lib/x.lua",
        "is outside of",
    ),
    ("a directory below", link("lib/x", "../../outside"), "lib/x/main.lua", "is outside of"),
    ("dots and slashes", link("x.lua", ".//./lib/.././../main.lua"), "x.lua", "is outside of"),
    ("slashes before dots", link("x.lua", ".//..//main.lua"), "x.lua", "is outside of"),
    ("a chain of links", chain, "main2.lua", "is outside of"),
    ("a chain of directories", chained_directories, "one/main.lua", "is outside of"),
    ("a chain too long", long_chain, "l0", "symbolic links"),
    ("a link to itself", link("x.lua", "x.lua"), "x.lua", "symbolic links"),
    ("a link through itself", link("x", "x/y"), "x/main.lua", "symbolic links"),
    ("our environment", link("x.lua", "/proc/self/environ"), "x.lua", "is outside of"),
    ("our working directory", link("x", "/proc/self/cwd"), "x/main.lua", "is outside of"),
    ("our root", link("x", "/proc/self/root"), "x/etc/passwd", "is outside of"),
    ("our standard input", link("x.lua", "/proc/self/fd/0"), "x.lua", "is outside of"),
    ("our standard input by name", link("x.lua", "/dev/stdin"), "x.lua", "is outside of"),
    ("a device outside", link("x.lua", "/dev/zero"), "x.lua", "is outside of"),
    ("a dangling link", link("x.lua", "missing.lua"), "x.lua", "no such file"),
    ("a dangling link outside", link("x.lua", "../missing.lua"), "x.lua", "is outside of"),
    ("a dangling absolute link", link("x.lua", "/missing.lua"), "x.lua", "is outside of"),
    ("nothing there", nothing, "missing.lua", "no such file"),
    ("nothing in a directory", nothing, "lib/missing.lua", "no such file"),
    ("a directory that is none", nothing, "main.lua/x.lua", "Not a directory"),
    ("a directory", directory, "dir.lua", "not a regular file"),
    ("a linked directory itself", link("x.lua", "lib"), "x.lua", "not a regular file"),
    ("the directory itself", link("x.lua", "."), "x.lua", "not a regular file"),
    ("a pipe nobody writes to", fifo, "pipe.lua", "not a regular file"),
    ("a socket", listening, "s.lua", "not a regular file"),
    ("a name too long", nothing, "ü" * 200, "too long"),
    ("encoded dots", nothing, "%2e%2e/main.lua", "no such file"),
    ("dots that look alike", nothing, "‥/main.lua", "no such file"),
    ("full-width dots", nothing, "．．/main.lua", "no such file"),
    ("a slash that looks alike", nothing, "..∕main.lua", "no such file"),
    ("three dots", nothing, ".../main.lua", "no such file"),
    ("dots with a space", nothing, ".. /main.lua", "no such file"),
    ("somebody's home", nothing, "~/main.lua", "no such file"),
    ("a variable", nothing, "$HOME/main.lua", "no such file"),
    ("an address", nothing, "file:///etc/passwd", "no such file"),
]


@pytest.mark.parametrize(
    ("prepare", "entrypoint", "why"), [pytest.param(*row[1:], id=row[0]) for row in WAYS_OUT]
)
def test_no_path_leaves_the_directory(
    home: Path, prepare: Callable[[Path], None], entrypoint: str, why: str
) -> None:
    prepare(home)
    problem = refused(home, entrypoint)
    assert problem.file == str(home / entrypoint)
    assert why in problem.problem
    assert str(problem) == f"{problem.file}: {problem.problem}"


@pytest.mark.parametrize(
    "entrypoint",
    [
        *("", ".", "./", "lib/", "/", "/etc/passwd", "//etc/passwd", "..", "../main.lua"),
        *("lib/../../main.lua", "./../main.lua", "lib/..", "..\\main.lua", "lib\\..\\x.lua"),
        *(
            "x" * 300,
            "lib/" * 2000 + "x.lua",
            "main.lua\0",
            "main.lua\0/../../main.lua",
            "\0",
            "main.lua\n",
            "main.lua/",
        ),
    ],
)
def test_a_manifest_path_outside_of_the_directory_is_refused(home: Path, entrypoint: str) -> None:
    with pytest.raises(BadManifest) as raised:
        read(home, entrypoint)
    assert [problem.field for problem in raised.value.problems] == ["entrypoint"]
    assert str(home / "manifest.toml") in str(raised.value)


@pytest.mark.parametrize(
    "path", ["", "/", "..", "./..", "lib/../..", "/etc", "main.lua\0b", "lib/./../.."]
)
def test_opening_beneath_relies_on_no_check_before_it(home: Path, path: str) -> None:
    root = os.open(home, os.O_RDONLY)
    try:
        with pytest.raises(OSError):  # noqa: PT011 - by any number
            open_beneath(root, path)
    finally:
        os.close(root)


@pytest.mark.skipif(sys.platform != "linux", reason="/proc is Linux's")
@pytest.mark.parametrize("path", ["cwd", "root/etc/passwd", "exe", "fd/0", "self/root/etc/passwd"])
def test_magic_links_in_proc_are_not_followed(path: str) -> None:
    root = os.open("/proc/self", os.O_RDONLY)
    try:
        with pytest.raises(OSError):  # noqa: PT011 - by any number
            open_beneath(root, path)
    finally:
        os.close(root)


def test_a_link_to_the_outside_is_refused_even_if_it_is_not_required(home: Path) -> None:
    (home / "lib" / "more.lua").symlink_to("../../main.lua")
    assert refused(home).file == str(home / "lib" / "more.lua")


def test_a_device_is_never_read(home: Path) -> None:
    try:
        os.mknod(home / "zero.lua", stat.S_IFCHR | 0o600, os.makedev(1, 5))
    except PermissionError:
        pytest.skip("only root makes devices")
    try:
        problem = refused(home).problem
    finally:
        (home / "zero.lua").unlink()
    assert problem in ("this is not a regular file", os.strerror(errno.EACCES))


# Races.


class Swapping(threading.Thread):
    """Replaces one thing by another at the same path, again and again, in a thread."""

    def __init__(self, place: Path, times: int, make: Callable[[Path, bool], None]) -> None:
        super().__init__()
        self.place, self.times, self.make = place, times, make

    def run(self) -> None:
        for n in range(self.times):
            self.make(self.place, n % 2 == 0)


def swap_file(place: Path, outside: bool) -> None:
    spare = place.with_name(".spare")
    if outside:
        spare.symlink_to("../main.lua")
    else:
        spare.write_text(INSIDE)
    spare.rename(place)


def swap_directory(place: Path, outside: bool) -> None:
    spare = place.with_name(".spare")
    if outside:
        place.rename(spare)
        place.symlink_to("../outside")
    else:
        place.unlink()
        spare.rename(place)


@pytest.mark.counted
@pytest.mark.parametrize("what", ["file", "directory"])
def test_a_file_replaced_by_a_link_during_the_read_never_shows_the_outside(
    home: Path, what: str, counted: Callable[[int, int], int]
) -> None:
    (home / "lib" / "main.lua").write_text(INSIDE)
    place, make = (
        (home / "main.lua", swap_file) if what == "file" else (home / "lib", swap_directory)
    )
    entrypoint = "main.lua" if what == "file" else "lib/main.lua"
    manifest = write_manifest(home, entrypoint)
    swapping = Swapping(place, counted(2000, 20_000), make)
    taken = turned_away = 0
    swapping.start()
    try:
        while swapping.is_alive():
            try:
                assert OUTSIDE not in read_plugin(manifest).files.values()
                taken += 1
            except PluginRefused:
                turned_away += 1
    finally:
        swapping.join()
    assert taken, "it was never there to be read"
    assert turned_away, "the race was never met"


# Both resolutions agree.

_names = st.sampled_from(["a", "b", "c", ".", "..", "a/b", "../c", "b/../..", "a/", "/", "c/.", ""])


@st.composite
def trees(draw: st.DrawFn) -> tuple[list[tuple[str, str]], str]:
    places = st.sampled_from(["a", "b", "c", "a/b", "a/c", "b/c"])
    made = draw(st.lists(st.tuples(places, _names | st.just("+file") | st.just("+dir"))))
    return made, "/".join(draw(st.lists(_names, min_size=1, max_size=4)))


@pytest.mark.skipif(sys.platform != "linux", reason="openat2 is Linux's")
@given(trees())
def test_both_ways_open_the_same_or_nothing(
    tmp_path_factory: pytest.TempPathFactory, tree: tuple[list[tuple[str, str]], str]
) -> None:
    home = tmp_path_factory.mktemp("tree")
    made, path = tree
    for place, what in made:
        make(home / place, what)
    root = os.open(home, os.O_RDONLY)
    try:
        by_steps = opened(openat._by_steps, root, path)
        assert by_steps == opened(KERNEL, root, path)
    finally:
        os.close(root)


def make(place: Path, what: str) -> None:
    """Create an entry, never through a link: `a -> /` would write into the root directory."""
    if place.parent.is_symlink() or not place.parent.is_dir() or os.path.lexists(place):
        return
    if what == "+dir":
        place.mkdir()
    elif what == "+file":
        place.touch()
    elif what:
        place.symlink_to(what)


KERNEL = openat._by_the_kernel


def opened(way: Callable[[int, str], int], root: int, path: str) -> object:
    if not path or path.startswith("/"):
        return None  # refused earlier
    try:
        descriptor = way(root, path)
    except OSError as error:
        return error.errno
    status = os.fstat(descriptor)
    os.close(descriptor)
    return status.st_dev, status.st_ino


# Files that are refused.


def test_bytecode_is_refused_by_name(home: Path) -> None:
    (home / "lib" / "fast.lua").write_bytes(b"\x1bLua\x54\x00\x19\x93\r\n")
    problem = refused(home)
    assert problem.file == str(home / "lib" / "fast.lua")
    assert "bytecode" in problem.problem
    (home / "lib" / "fast.lua").write_bytes(b"\xef\xbb\xbf\x1bLua")
    assert "bytecode" in refused(home).problem


def test_sources_are_utf_8(home: Path) -> None:
    (home / "main.lua").write_bytes(b"return\n  '\xe9'\n")
    assert refused(home).problem == "this is not UTF-8 text (line 2)"


@pytest.mark.parametrize("name", [b"\xff.lua", b"a\nb.lua", b"\x1b[2J.lua"])
def test_a_file_name_that_require_cannot_express_is_refused_with_a_printable_message(
    home: Path, name: bytes
) -> None:
    Path(os.fsdecode(bytes(home) + b"/" + name)).touch()
    problem = refused(home)
    assert "rename it" in problem.problem
    assert str(problem).isprintable()


def test_too_many_files_too_many_bytes_and_too_deep_directories_are_refused(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for limit, value in (("FILES", 3), ("SOURCE_BYTES", 100), ("DEPTH", 2), ("ENTRIES", 8)):
        monkeypatch.setattr(f"telex.adapters.lua_plugin.LUA_{limit}", value)
    (home / "lib" / "two").mkdir()
    (home / "lib" / "b.lua").write_text("b")
    (home / "lib" / "two" / "c.lua").write_text("c" * (100 - 1 - len(INSIDE)))
    assert len(read(home).files) == 3

    (home / "lib" / "two" / "c.lua").write_text("c" * (100 - len(INSIDE)))
    assert "more than 100 bytes" in refused(home).problem
    (home / "lib" / "two" / "c.lua").write_text("c")
    (home / "lib" / "d.lua").write_text("d")
    assert "at most 3 Lua files" in refused(home).problem
    (home / "lib" / "d.lua").unlink()
    (home / "lib" / "two" / "three").mkdir()
    assert refused(home).problem == "is more than 2 directories deep"
    (home / "lib" / "two" / "three").rmdir()
    for n in range(4):
        (home / f"{n}.txt").touch()
    assert "more than 8 files" in refused(home).problem


# The manifest itself.


def test_a_manifest_with_nothing_to_run_is_refused(home: Path) -> None:
    (home / "manifest.toml").write_text('name = "a"\nkind = "macro"\nversion = "1"')
    with pytest.raises(PluginRefused, match='it has no entrypoint; add runtime = "lua"'):
        read_plugin(home / "manifest.toml")


def test_every_problem_of_a_manifest_is_reported_with_the_file(home: Path) -> None:
    (home / "manifest.toml").write_text('kind = "x"')
    with pytest.raises(BadManifest, match=str(home / "manifest.toml")) as raised:
        read_plugin(home / "manifest.toml")
    assert [problem.field for problem in raised.value.problems] == ["name", "kind", "version"]


def test_a_manifest_is_utf_8(home: Path) -> None:
    (home / "manifest.toml").write_bytes(b'name = "a"\n# \xe9')
    with pytest.raises(BadManifest) as raised:
        read_plugin(home / "manifest.toml")
    [problem] = raised.value.problems
    assert (problem.field, problem.problem) == (WHOLE, "this is not UTF-8 text (line 2)")


def test_a_manifest_may_be_linked_inside_and_not_outside(home: Path) -> None:
    write_manifest(home).rename(home / "lib" / "demo.toml")
    (home / "manifest.toml").symlink_to("lib/demo.toml")
    assert read_plugin(home / "manifest.toml").files == {"main.lua": INSIDE}
    (home / "lib" / "demo.toml").rename(home.parent / "demo.toml")
    (home / "manifest.toml").unlink()
    (home / "manifest.toml").symlink_to("../demo.toml")
    with pytest.raises(PluginRefused, match="is outside of"):
        read_plugin(home / "manifest.toml")


def test_a_manifest_is_a_regular_file_of_a_page(home: Path) -> None:
    os.mkfifo(home / "pipe")
    (home / "long").write_bytes(b"#" * (limits.MANIFEST_BYTES + 1))
    for name, why in {"pipe": "not a regular", "lib": "not a regular", "long": "at most"}.items():
        with pytest.raises(PluginRefused, match=why):
            read_plugin(home / name)


@pytest.mark.parametrize(
    "path", ["", ".", "/", "..", "no/such", "main.lua/x", "a\0/b", "b\0", "x" * 5000]
)
def test_a_path_that_is_no_manifest_is_refused(
    home: Path, path: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(home)
    with pytest.raises(PluginRefused) as raised:
        read_plugin(Path(path))
    assert str(raised.value).isprintable()


# Owners.


@pytest.fixture
def closed(home: Path) -> Path:
    write_manifest(home).chmod(0o644)
    for place in (home, home / "lib"):
        place.chmod(0o755)
    (home / "main.lua").chmod(0o644)
    return home / "manifest.toml"


@pytest.mark.parametrize("place", [".", "manifest.toml", "main.lua", "lib"])
def test_files_that_other_users_could_have_written_are_refused(closed: Path, place: str) -> None:
    assert read_plugin(closed, ours=True).name == "demo"
    for mode in (0o020, 0o002):
        (closed.parent / place).chmod(0o755 | mode)
        with pytest.raises(PluginRefused, match="another user could have written this") as raised:
            read_plugin(closed, ours=True)
        assert raised.value.file == str(closed.parent / place)
        assert read_plugin(closed).name == "demo", "whoever names it trusts it"


def test_files_of_another_user_are_refused(closed: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    owner = closed.stat().st_uid
    if owner == 0:
        os.chown(closed, 12345, -1)
    else:
        monkeypatch.setattr(os, "geteuid", lambda: owner + 1)
    with pytest.raises(PluginRefused, match="another user could have written this"):
        read_plugin(closed, ours=True)
