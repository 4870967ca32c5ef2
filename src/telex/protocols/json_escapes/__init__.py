"""JSON terminal escapes as data: what each command takes and answers, what each event tells, the
error codes, and the number that says "spoken here".

The spec names the packet and leaves the commands open; these are ours, listed in
`docs/reference/escapes.md`. Rows and columns count from 1, as in ANSI; an integer that is left out
is 1 where it counts something. Members that are not known are ignored. `escapes.catalogue` says
which command has which payload; nothing here knows how one is done.

By theme: `codes`, `values`, `screen`, `styles`, `modes`, `window`, `core`, `extensions`, `events`.
All of it is imported from here.
"""

from __future__ import annotations

from telex.protocols.json_escapes.codes import ATTRIBUTE as ATTRIBUTE
from telex.protocols.json_escapes.codes import ECARGS as ECARGS
from telex.protocols.json_escapes.codes import ECBUSY as ECBUSY
from telex.protocols.json_escapes.codes import ECCANCEL as ECCANCEL
from telex.protocols.json_escapes.codes import ECCLOSED as ECCLOSED
from telex.protocols.json_escapes.codes import ECDENIED as ECDENIED
from telex.protocols.json_escapes.codes import ECINTERNAL as ECINTERNAL
from telex.protocols.json_escapes.codes import ECLIMIT as ECLIMIT
from telex.protocols.json_escapes.codes import ECNOCMD as ECNOCMD
from telex.protocols.json_escapes.codes import ECPARSE as ECPARSE
from telex.protocols.json_escapes.codes import ECPROTO as ECPROTO
from telex.protocols.json_escapes.codes import ECROUTE as ECROUTE
from telex.protocols.json_escapes.codes import ECTIMEOUT as ECTIMEOUT
from telex.protocols.json_escapes.codes import ECUNSUP as ECUNSUP
from telex.protocols.json_escapes.core import Batch as Batch
from telex.protocols.json_escapes.core import BatchItem as BatchItem
from telex.protocols.json_escapes.core import Capability as Capability
from telex.protocols.json_escapes.core import Detected as Detected
from telex.protocols.json_escapes.core import Report as Report
from telex.protocols.json_escapes.core import Reported as Reported
from telex.protocols.json_escapes.core import Subscribe as Subscribe
from telex.protocols.json_escapes.core import Subscribed as Subscribed
from telex.protocols.json_escapes.core import What as What
from telex.protocols.json_escapes.events import Button as Button
from telex.protocols.json_escapes.events import ColorScheme as ColorScheme
from telex.protocols.json_escapes.events import FocusEvent as FocusEvent
from telex.protocols.json_escapes.events import KeyEvent as KeyEvent
from telex.protocols.json_escapes.events import Mod as Mod
from telex.protocols.json_escapes.events import MouseEvent as MouseEvent
from telex.protocols.json_escapes.events import NotificationEvent as NotificationEvent
from telex.protocols.json_escapes.events import PasteEvent as PasteEvent
from telex.protocols.json_escapes.events import ResizeEvent as ResizeEvent
from telex.protocols.json_escapes.events import RevokedEvent as RevokedEvent
from telex.protocols.json_escapes.extensions import ClipRead as ClipRead
from telex.protocols.json_escapes.extensions import ClipText as ClipText
from telex.protocols.json_escapes.extensions import ClipTypes as ClipTypes
from telex.protocols.json_escapes.extensions import ClipWrite as ClipWrite
from telex.protocols.json_escapes.extensions import FileDownload as FileDownload
from telex.protocols.json_escapes.extensions import FileSaved as FileSaved
from telex.protocols.json_escapes.extensions import FileSent as FileSent
from telex.protocols.json_escapes.extensions import FileUpload as FileUpload
from telex.protocols.json_escapes.extensions import ImageDelete as ImageDelete
from telex.protocols.json_escapes.extensions import ImageShow as ImageShow
from telex.protocols.json_escapes.extensions import NotifyClose as NotifyClose
from telex.protocols.json_escapes.extensions import NotifyShow as NotifyShow
from telex.protocols.json_escapes.extensions import Progress as Progress
from telex.protocols.json_escapes.extensions import ShellDone as ShellDone
from telex.protocols.json_escapes.extensions import VarSet as VarSet
from telex.protocols.json_escapes.modes import ANSI_MODES as ANSI_MODES
from telex.protocols.json_escapes.modes import AltScreen as AltScreen
from telex.protocols.json_escapes.modes import Charset as Charset
from telex.protocols.json_escapes.modes import Enabled as Enabled
from telex.protocols.json_escapes.modes import LineAttr as LineAttr
from telex.protocols.json_escapes.modes import Mode as Mode
from telex.protocols.json_escapes.modes import ModeName as ModeName
from telex.protocols.json_escapes.modes import ModeState as ModeState
from telex.protocols.json_escapes.modes import QueryMode as QueryMode
from telex.protocols.json_escapes.modes import Reset as Reset
from telex.protocols.json_escapes.modes import SetMode as SetMode
from telex.protocols.json_escapes.modes import Shift as Shift
from telex.protocols.json_escapes.modes import Tab as Tab
from telex.protocols.json_escapes.modes import TabClear as TabClear
from telex.protocols.json_escapes.screen import Count as Count
from telex.protocols.json_escapes.screen import CursorLine as CursorLine
from telex.protocols.json_escapes.screen import CursorMove as CursorMove
from telex.protocols.json_escapes.screen import CursorSet as CursorSet
from telex.protocols.json_escapes.screen import CursorStyle as CursorStyle
from telex.protocols.json_escapes.screen import Erase as Erase
from telex.protocols.json_escapes.screen import Scroll as Scroll
from telex.protocols.json_escapes.screen import ScrollRegion as ScrollRegion
from telex.protocols.json_escapes.screen import Visible as Visible
from telex.protocols.json_escapes.styles import Background as Background
from telex.protocols.json_escapes.styles import Color as Color
from telex.protocols.json_escapes.styles import Indexed as Indexed
from telex.protocols.json_escapes.styles import PushStyle as PushStyle
from telex.protocols.json_escapes.styles import SetStyle as SetStyle
from telex.protocols.json_escapes.styles import StyleKey as StyleKey
from telex.protocols.json_escapes.styles import StyleKeys as StyleKeys
from telex.protocols.json_escapes.styles import Underline as Underline
from telex.protocols.json_escapes.values import Byte as Byte
from telex.protocols.json_escapes.values import Col as Col
from telex.protocols.json_escapes.values import Extent as Extent
from telex.protocols.json_escapes.values import FileName as FileName
from telex.protocols.json_escapes.values import Hex as Hex
from telex.protocols.json_escapes.values import Nothing as Nothing
from telex.protocols.json_escapes.values import Pixels as Pixels
from telex.protocols.json_escapes.values import Row as Row
from telex.protocols.json_escapes.values import Signed as Signed
from telex.protocols.json_escapes.values import Text as Text
from telex.protocols.json_escapes.values import Times as Times
from telex.protocols.json_escapes.values import Title as Title
from telex.protocols.json_escapes.values import Token as Token
from telex.protocols.json_escapes.values import Uri as Uri
from telex.protocols.json_escapes.window import Cwd as Cwd
from telex.protocols.json_escapes.window import Hyperlink as Hyperlink
from telex.protocols.json_escapes.window import Palette as Palette
from telex.protocols.json_escapes.window import Resize as Resize
from telex.protocols.json_escapes.window import SetTitle as SetTitle
from telex.protocols.json_escapes.window import TitleStack as TitleStack
from telex.protocols.json_escapes.window import Window as Window
from telex.protocols.json_escapes.window import Write as Write
