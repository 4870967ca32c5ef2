"""The binding of libghostty-vt: the only file that imports pyghostty.

The API of the library is young, so the layout of a cell and the bits of a row are queried from the
library and never assumed. Importing this module fails with a build whose cells we cannot read. Used
by `emulator` and `key_encoder`.
"""

from __future__ import annotations

import json
from typing import Any, Final

from _cffi_backend import new_array_type
from pyghostty._ffi import check, ffi, lib, union_fn
from pyghostty.core import init_sized as sized
from pyghostty.core import read_buf

from telex.terminal.packed_rows import BitField, CellLayout

__all__ = [
    "GRAPHEME",
    "LAYOUT",
    "STYLED",
    "WRAP",
    "UnreadableLibrary",
    "check",
    "ffi",
    "lib",
    "read_buf",
    "sized",
    "string",
    "union_fn",
]


class UnreadableLibrary(ImportError):
    """The cell layout of this build of libghostty-vt is not supported."""


_POINTED: Final = """
    bool uint8_t uint16_t uint32_t uint64_t size_t void char GhosttyTerminal GhosttyTerminalData
    GhosttyTerminalModeConfig GhosttyColorRgb GhosttyString GhosttyRenderState
    GhosttyRenderStateRowIterator GhosttyRenderStateRowCells GhosttyRenderStateDirty
    GhosttyRenderStateRowData GhosttyCellsView GhosttyRow GhosttyStyle GhosttySelection
    GhosttyFormatter GhosttyFormatterTerminalOptions GhosttyPointS GhosttyKeyEncoder GhosttyKeyEvent
    GhosttyMouseEncoder GhosttyMouseEvent GhosttyMouseEncoderSize GhosttyMousePosition
"""
_NAMED: Final = """
    uintptr_t GhosttyTerminalWritePtyFn GhosttyTerminalSizeFn GhosttyTerminalDeviceAttributesFn
    GhosttyTerminalColorSchemeFn GhosttyTerminalXtversionFn GhosttyTerminalBellFn
    GhosttyTerminalClipboardWriteFn
"""
_IN_ROWS: Final = "uint8_t uint32_t char GhosttyTerminalData GhosttyRenderStateRowData"


def _learn_types() -> None:
    """Let cffi parse all types that we use at once, and cache them by name.

    For each type requested by name, cffi parses the library's 200 typedefs again. That took 8 ms
    each, a third of a second before the first screen. The cache (`_parsed_types`) is private to
    cffi; if cffi ever drops it, parsing is slow again but still correct.
    """
    types = [*(f"{name}*" for name in _POINTED.split()), *_NAMED.split()]
    members = "".join(f"{name} t{at};" for at, name in enumerate(types))
    ffi.cdef(f"typedef struct {{ {members} }} TelexTypes;")
    known = getattr(ffi, "_parsed_types", {})
    for name, (_, member) in zip(types, ffi.typeof("TelexTypes").fields, strict=True):
        known[name] = (member.type, False)
    for name in _IN_ROWS.split():
        known[f"{name}[]"] = (new_array_type(known[f"{name}*"][0], None), False)


_learn_types()


def _read_layout() -> CellLayout:
    types = json.loads(ffi.string(lib.ghostty_type_json()))
    bits = types["types"]["GhosttyCell"]["bits"]

    def place(name: str) -> BitField:
        return BitField(bits[name]["lsb"], bits[name]["width"])

    content = place("content")
    point = bits["content"]["arms"]["CODEPOINT"]["bits"]["codepoint"]
    layout = CellLayout(
        tag=place("content_tag"),
        content=content,
        codepoint=BitField(content.lsb + point["lsb"], point["width"]),
        style=place("style_id"),
        wide=place("wide"),
    )
    if types["abi"]["endian"] != "little" or not layout.readable:
        raise UnreadableLibrary(
            "libghostty-vt has a cell layout that telex cannot read: install the version of "
            "pyghostty that telex requires"
        )
    return layout


def _row_bit(name: str) -> int:
    """Return the bit of a packed row that a flag reads. Found by trying each bit alone."""
    answer = ffi.new("bool*")
    key = getattr(lib, f"GHOSTTY_ROW_DATA_{name}")
    found = 0
    for bit in range(64):
        check(lib.ghostty_row_get(1 << bit, key, answer), name)
        found |= answer[0] << bit
    return found


LAYOUT: Final = _read_layout()
WRAP, STYLED, GRAPHEME = (_row_bit(name) for name in ("WRAP", "STYLED", "GRAPHEME"))


def string(text: Any) -> bytes:
    """Return a copy of the bytes that a `GhosttyString` points to."""
    return bytes(ffi.buffer(text.ptr, text.len))
