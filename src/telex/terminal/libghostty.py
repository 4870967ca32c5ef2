"""The library libghostty-vt as we bind it: the only file that imports pyghostty.

The library's API is young, so the layout of a cell and the bits of a row are asked of it, never
assumed; a build that we cannot read is refused at import. Used by `emulator` and
`key_encoder`.
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
    """This build of libghostty-vt keeps its cells in a way that we cannot read."""


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
    GhosttyTerminalColorSchemeFn GhosttyTerminalXtversionFn
"""
_IN_ROWS: Final = "uint8_t uint32_t char GhosttyTerminalData GhosttyRenderStateRowData"


def _learn_types() -> None:
    """Have cffi read the types we use all at once, and remember them by name.

    For each type that it is asked for by name it reads the library's 200 typedefs again. That took
    8 ms a time, a third of a second before the first screen was there. What it remembers is its own
    affair (`_parsed_types`); should it ever forget, all is as slow as it was, and no less right.
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
            "libghostty-vt packs its cells in another way than telex can read: install the "
            "version of pyghostty that telex asks for"
        )
    return layout


def _row_bit(name: str) -> int:
    """Which bit of a packed row says so. Found by asking about each bit alone."""
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
    """What a `GhosttyString` points to, copied."""
    return bytes(ffi.buffer(text.ptr, text.len))
