"""The prefilter: RE2 searches that find the leads of all rules in one linear pass.

Most text contains no secret, so finding that out must be cheap. One RE2 pattern joins the leads of
all rules, each with the first characters that must follow it; the pattern is wider than the rules.
Only where it matches do the rules themselves look, and most of these matches are dismissed by
`Shape.decide`. Text without invisible characters is searched as it is. From other text the escape
sequences and invisible characters are removed first, because they may stand between any two
characters of a secret.

`Rulebook` is the interface. `scanner` asks it for leads, `stream` for text without secrets.
Patterns are compiled when they are first needed.
"""

from __future__ import annotations

import re
import string
from dataclasses import dataclass, field
from functools import cache, cached_property
from itertools import accumulate
from typing import TYPE_CHECKING, Any, Final

import re2

from telex.redaction import visible
from telex.redaction.rules import (
    FIXED_PARTS,
    LEAD_CHARS,
    RULES,
    SHOWN_CHARS,
    SHOWN_HEX_CHARS,
    SUFFIX_PATTERN,
    SUFFIX_RULES,
    RedactionRule,
    alternatives,
)
from telex.redaction.secret_values import is_hexadecimal, is_jumbled
from telex.redaction.shapes import STRONG_LOOKAHEAD, SuffixShape, at_least

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator

    from telex.redaction.shapes import Verdict

_NEAR_CHARS: Final = 64
"""A marker this close after a lead means that the text was redacted before."""
LITERAL_LEAD: Final = 4
"""The number of characters of a caller's literal that are searched first; a shorter literal is
searched whole."""
_BY_PREFIX: Final[dict[str, list[int]]] = {}
for _number, _rule in enumerate(RULES):
    for _prefix in _rule.prefixes:
        _BY_PREFIX.setdefault(_prefix, []).append(_number)
_HEAD: Final = 2
_BY_HEAD: Final[dict[str, list[str]]] = {}
for _prefix in _BY_PREFIX:
    _BY_HEAD.setdefault(_prefix[:_HEAD], []).append(_prefix)
_FIRST_SUFFIX_RULE: Final = len(RULES) - len(SUFFIX_RULES)
_LEAD_RULES: Final = [
    (number, rule) for number, rule in enumerate(RULES[:_FIRST_SUFFIX_RULE]) if rule.lead
]
_ANY_REST: Final = r"A-Za-z0-9_.~%+/=|:@*$,\-"
"""Any character that may follow a prefix."""
_BEYOND_ASCII: Final = re.compile(r"[^\x00-\x7f]")
_WIDE: Final = re.compile(r"\{([0-9]{1,2}),[0-9]{2}\}")
_ESCAPED_BREAKS: Final = (b"\\n", b"\\r", b"\\t")
_MARK: Final = r"(?:\\[nrt]|[^A-Za-z0-9])"
"""The character before a word. Source code and errors write a line break as `\\n`."""
_SEARCH_BYTES: Final = 64 << 20
"""The memory for the automaton states of one search. RE2 builds states while it reads; when they
exceed this memory it drops all of them and starts again, which makes a search many times slower.
For a few megabytes of source code 32 MB were too little."""


def _options() -> Any:
    options = re2.Options()
    options.log_errors = False
    options.never_capture = True
    options.longest_match = True
    options.max_mem = _SEARCH_BYTES
    options.encoding = re2.Options.Encoding.LATIN1
    return options


def _search(pattern: bytes) -> Any:
    """Compile a pattern that is searched in the bytes of an encoded text."""
    return re2.compile(pattern, _options())


@cache
def _prefilter_patterns() -> tuple[str, str]:
    """Return a pattern for leads that count only where a word begins, and one for all other leads.
    Each lead is followed by the characters that must come after it, as far as the text goes. Both
    patterns accept more than the rules do, which keeps their automaton small."""
    words: list[str] = []
    anywhere = [FIXED_PARTS]
    strong = {prefix for rule in RULES for prefix in rule.prefixes if not rule.is_weak}
    for prefixes, patterns in zip(_by_position(strong), (words, anywhere), strict=True):
        patterns.append(f"{alternatives(prefixes)}{at_least(STRONG_LOOKAHEAD, _ANY_REST)}")
    words += [
        f"{alternatives(sorted(rule.prefixes))}{rule.shape.lookahead}"
        for rule in RULES
        if rule.prefixes and rule.is_weak
    ]
    for _, rule in _LEAD_RULES:
        prefilter = rule.prefilter or f"(?:{rule.lead}){rule.shape.lookahead}"
        (words if rule.whole_word else anywhere).append(_loosened(prefilter))
    return "|".join(words), "|".join(anywhere)


def _by_position(prefixes: Iterable[str]) -> tuple[list[str], list[str]]:
    """Separate the prefixes that count where a word begins from those that begin with a mark and
    count anywhere."""
    ordered = sorted(prefixes)
    return (
        [prefix for prefix in ordered if prefix[0].isalnum()],
        [prefix for prefix in ordered if not prefix[0].isalnum()],
    )


def _loosened(pattern: str) -> str:
    """Widen a pattern so that its automaton is smaller: high counts become unbounded, because each
    count is a state; and of a character beyond ASCII only the first byte is compared, because each
    state has an entry for each byte that the patterns distinguish."""
    pattern = _WIDE.sub(lambda count: "*" if count[1] == "0" else "+", pattern)
    return _BEYOND_ASCII.sub(lambda character: _first_byte(character[0].encode()), pattern)


def _first_byte(data: bytes) -> str:
    return rf"\x{data[0]:02x}" + r"[\x80-\xbf]" * (len(data) - 1)


@cache
def _plain_search() -> Any:
    """Compile the search for secrets in UTF-8 text without invisible characters. It also finds the
    first invisible character."""
    words, anywhere = _prefilter_patterns()
    pattern = f"(?:^|{_MARK})(?:{words})|{anywhere}"
    return _search(pattern.encode() + b"|" + visible.INVISIBLE)


@cache
def _bare_search() -> Any:
    """Compile the search for UTF-8 text from which escape sequences were removed, where a word may
    begin anywhere."""
    return _search("|".join(_prefilter_patterns()).encode())


@cache
def _anywhere_search() -> Any:
    """Compile the search for secrets that may begin in the middle of a word."""
    return _search(_prefilter_patterns()[1].encode())


@cache
def _invisible_search() -> Any:
    return _search(visible.INVISIBLE_BEYOND_ASCII)


@cache
def _invisible() -> re.Pattern[bytes]:
    return re.compile(visible.INVISIBLE)


@cache
def _lead_set() -> Any:
    """Compile the set that tells which leads stand at a position, or after the mark at that
    position: the leads of `_LEAD_RULES`, then all prefixes, then the fixed parts of token suffixes.
    """
    leads = re2.Set.MatchSet(_options())
    mark = rf"(?:{_MARK}[\x80-\xbf]*)?"  # with all its bytes in UTF-8
    for _, rule in _LEAD_RULES:
        leads.Add(rf"{mark}(?:{_loosened(rule.lead)})".encode())
    leads.Add(f"{mark}{alternatives(sorted(_BY_PREFIX))}".encode())
    leads.Add(f"{mark}(?:{FIXED_PARTS})".encode())
    leads.Compile()
    return leads


def _find_leads(text: str, start: int, found: set[tuple[int, int, int]]) -> bool:
    """Add (end, start, number of the rule) of each lead that starts here or after the mark here. Of
    the leads of `_LEAD_RULES` at one position only the first counts.

    Returns:
        Whether the fixed part of a token suffix starts here.
    """
    numbers = _lead_set().Match(text[start : start + 2 * LEAD_CHARS].encode("utf-8", "replace"))
    if numbers is None:
        return False
    first = text[start]
    stop = start + (1 if first in _ALPHANUMERIC else 3 if first == "\\" else 2)
    numbers.sort()
    for place in range(start, stop):
        for each in numbers:
            if each >= len(_LEAD_RULES):
                break
            number, rule = _LEAD_RULES[each]
            if lead := _compiled(rule.lead).match(text, place):
                found.add((lead.end(), place, number))
                break
        for prefix in _BY_HEAD.get(text[place : place + _HEAD], ()):
            if text.startswith(prefix, place):
                end = place + len(prefix)
                found.update([(end, place, number) for number in _BY_PREFIX[prefix]])
    return bool(numbers[-1] > len(_LEAD_RULES))


_ALPHANUMERIC: Final = frozenset(string.ascii_letters + string.digits)
_INSIDE_WORD: Final = re.compile("(?<=[A-Za-z0-9])[A-Za-z0-9-]")


@cache
def _compiled(lead: str) -> re.Pattern[str]:
    return re.compile(lead, re.ASCII)


def _suffix_word_starts(text: str, begin: int, breaks: Iterable[int], may_end: bool) -> list[int]:
    """Return where a word that is known by its suffix may begin: anywhere if a suffix is in the
    text, else only in the unfinished word at its end."""
    if not may_end:
        if not ends_in_long_word(text):
            return []
        begin = max(
            begin, len(text.rstrip(_WORD_CHARACTERS)), len(text) - SHOWN_CHARS - SuffixShape.most
        )
    starts = [each.start() for each in WORD_START.finditer(text, begin)]
    return starts + [each for each in breaks if each >= begin and text[each - 1 : each].isalnum()]


def ends_in_long_word(text: str) -> bool:
    """Whether the word at the end of the text is long enough to have a known suffix."""
    return _WORD.match(text, len(text) - SHOWN_HEX_CHARS) is not None


def _suffix_word_at(text: str, start: int) -> tuple[int, int, int] | None:
    """Return the lead of a word that may have a known suffix: the end of its shown part, its start
    and the number of its rule.

    None if the word is complete and has no known suffix.
    """
    word = _WORD.match(text, start)
    if word is None or (word.end() < len(text) and not _whole_suffix_word().fullmatch(word[0])):
        return None
    for number, is_likely in enumerate((is_hexadecimal, is_jumbled), _FIRST_SUFFIX_RULE):
        begun = _compiled(RULES[number].lead).match(word[0])
        if begun and is_likely(begun[0]):
            return start + begun.end(), start, number
    return None


_WORD: Final = re.compile(rf"[A-Za-z0-9+/=_\-]{{{SHOWN_HEX_CHARS},{SuffixShape.most}}}+")


WORD_START: Final = re.compile(r"(?<![A-Za-z0-9])[A-Za-z0-9]")
_WORD_CHARACTERS: Final = string.ascii_letters + string.digits + "+/=_-"


@cache
def _whole_suffix_word() -> re.Pattern[str]:
    return re.compile(SUFFIX_PATTERN)


def _literal_search(literals: tuple[str, ...]) -> Any:
    """Compile the search for the beginnings of these literals, with escape sequences anywhere in
    them."""
    leads = {text[:LITERAL_LEAD].encode("utf-8", "replace") for text in literals}
    return _search(b"|".join(map(visible.with_sequences_between, sorted(leads))))


@dataclass(frozen=True, slots=True)
class Rulebook:
    """The rules together with a caller's literals and marker. A redactor's scanners share one."""

    marker: str
    literals: tuple[str, ...] = ()
    _literal_search: Any = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        search = _literal_search(self.literals) if self.literals else None
        object.__setattr__(self, "_literal_search", search)

    def clear_until(self, text: str, breaks: Collection[int] = (), seen: int = 0) -> int:
        """Return how many characters at the beginning contain no secret.

        A secret that begins near the end and is too short to be recognised does not count. The text
        has no control strings in it. Words begin also at `breaks`, where escape sequences were
        removed. Leads that end in the first `seen` characters do not count.
        """
        plain = None if breaks else self.plain_until(text, seen)
        if plain is not None:
            return plain
        whole, text = len(text), text[: visible.end_of_finished(text)]
        data = text.encode("utf-8", "replace")
        clear = self._before_literal(data, whole)
        past = len(text[:seen].encode("utf-8", "replace"))
        marked = _with_nuls(data)
        bare = marked.replace(b"\0", b"")
        counts = _WordStarts(bare, marked, text, breaks)
        matches = _matches(_bare_search(), bare, past, counts=counts)
        at = self._first_secret(matches, bare.decode(), bare)
        if at is None:
            return clear
        return min(clear, visible.offset_of(visible.split(text)[0], _line_before(bare, at)))

    def plain_until(self, text: str, seen: int = 0) -> int | None:
        """Return the same as `clear_until` for text without `breaks`; None if an invisible
        character comes before the first secret."""
        data = text.encode("utf-8", "replace")
        past = seen if len(data) == len(text) else len(text[:seen].encode("utf-8", "replace"))
        at = self._first_secret(_matches(_plain_search(), data, past), text, data)
        if at is not None and _invisible().match(data, at):
            return None
        clear = self._before_literal(data, len(text))
        return clear if at is None else min(clear, _line_before(data, at))

    def _before_literal(self, data: bytes, whole: int) -> int:
        """Return the number of characters before the line of the first literal, or `whole`."""
        literal = self._literal_search.search(data) if self._literal_search else None
        return whole if literal is None else _line_before(data, literal.start())

    def decide(self, rule: RedactionRule, text: str, position: int) -> Verdict | None:
        """Decide as `Shape.decide` does; None if a marker is near, because the text was redacted
        before."""
        verdict = rule.shape.decide(text, position)
        if verdict is None or verdict[0] < verdict[1] or not self.marker:
            return verdict
        is_near = text.find(self.marker, position, position + _NEAR_CHARS) >= 0
        return None if is_near else verdict

    def _first_secret(self, matches: Iterable[int], text: str, data: bytes) -> int | None:
        """Return the first match that cannot be dismissed, or the first invisible character.

        Dismissed matches in the same line are included, because a scanner must read the line from
        there.
        """
        line, counted, place = -1, 0, 0
        for start in matches:
            if line < 0 or data.find(b"\n", line, start) >= 0:
                line = start
            if _invisible().match(data, start):
                return start
            here = _character_at(data, start)
            place += _count(data[counted:here])
            counted = here
            if not self._is_dismissed(text, place):
                return line
        return None

    def _is_dismissed(self, text: str, place: int) -> bool:
        """Whether the shapes of all leads at a match decide at once that no secret follows."""
        leads: set[tuple[int, int, int]] = set()
        if _find_leads(text, place, leads):
            return False
        for end, _, number in leads:
            verdict = self.decide(RULES[number], text, end)
            if verdict is None or verdict[0] < verdict[1]:
                return False
        return bool(leads)

    def leads(
        self, text: str, begin: int, after: int, breaks: Iterable[int] = ()
    ) -> list[tuple[int, int, RedactionRule]]:
        """Return (end, start, rule) of each lead that starts at `begin` or later and ends past
        `after`.

        Words begin also at `breaks`.
        """
        found: set[tuple[int, int, int]] = set()
        may_end = False
        for start in self.starts(text, begin, after):
            may_end |= _find_leads(text, start, found)
        for start in breaks:
            if start >= begin and _INSIDE_WORD.match(text, start):
                _find_leads(text, start, found)
        for start in _suffix_word_starts(text, begin, breaks, may_end):
            if word := _suffix_word_at(text, start):
                found.add(word)
        return [
            (end, start, RULES[number])
            for end, start, number in sorted(found)
            if end > after and start >= begin
        ]

    def may_end_in_suffix_word(self, text: str, breaks: Iterable[int]) -> bool:
        """Whether the text ends in an unfinished word that may have a known suffix."""
        starts = _suffix_word_starts(text, 0, breaks, may_end=False)
        return any(_suffix_word_at(text, start) for start in starts)

    def starts(self, text: str, begin: int, after: int) -> Iterator[int]:
        """Yield the positions in visible text where a lead may start, or the mark before it. The
        lead ends past `after`. No lead to a secret is missed; a few positions have none."""
        data = text.encode("utf-8", "replace")
        if len(data) == len(text):
            return _matches(_plain_search(), data, after, max(0, begin - 2))
        at, past = (len(text[:each].encode("utf-8", "replace")) for each in (begin, after))
        matches = _matches(_plain_search(), data, past, max(0, at - 2))
        return (_count(data[: _character_at(data, start)]) for start in matches)


_AFTER_MARK: Final = re.compile(rb"(?<=[^A-Za-z0-9\\])[A-Za-z0-9]")
"""The first character of a word. A match that began at the mark before it is the same match."""


class _WordStarts:
    """A predicate for matches in text from which escape sequences were removed.

    A word may begin where a sequence stood, so the search finds leads in the middle of words too. A
    match counts if a word begins there, or if its lead needs no word.
    """

    def __init__(self, bare: bytes, marked: bytes, text: str, breaks: Iterable[int]) -> None:
        self._bare = bare
        self._with_nuls = marked
        self._text = text
        self._breaks = breaks

    @cached_property
    def _begins(self) -> set[int]:
        before = (len(self._text[:each].encode("utf-8", "replace")) for each in self._breaks)
        return {*before, *accumulate(map(len, self._with_nuls.split(b"\0")))}

    def __call__(self, start: int) -> bool:
        return (
            _opens_word(self._bare, start)
            or start in self._begins
            or _anywhere_search().match(self._bare, start) is not None
        )


def _matches(
    search: Any,
    data: bytes,
    past: int,
    at: int = 0,
    counts: Callable[[int], bool] | None = None,
) -> Iterator[int]:
    """Yield the start of each match that ends past `past` and that `counts` accepts. A match right
    after a mark that was yielded is left out."""
    while (found := search.search(data, at)) is not None:
        start, end = found.span()
        at = start + 1
        if end > past and (counts is None or counts(start)):
            yield start
            if _AFTER_MARK.match(data, at):
                at += 1


def _opens_word(data: bytes, start: int) -> bool:
    """Whether a word may begin here: see `Scanner._opens_word`."""
    inside = data[start - 1 : start].isalnum() if start else False
    here = data[start : start + 1]
    return not (inside and (here.isalnum() or here == b"-")) or (
        data[max(0, start - 2) : start] in _ESCAPED_BREAKS
    )


def _character_at(data: bytes, at: int) -> int:
    """Return the first byte of the UTF-8 character to which the byte at a position belongs."""
    while at < len(data) and data[at] & 0xC0 == 0x80:
        at -= 1
    return at


def _count(data: bytes) -> int:
    """Return the number of characters in UTF-8 text."""
    return len(data) if data.isascii() else len(data.decode())


def _with_nuls(data: bytes) -> bytes:
    """Return UTF-8 text with a NUL in the place of each sequence and invisible character."""
    data = visible.with_nuls(data)
    if data.isascii() or _invisible_search().search(data) is None:
        return data
    return visible.with_nuls_beyond_ascii(data)


def _line_before(data: bytes, position: int) -> int:
    """Return the number of characters before the line of a position, or before the last part of a
    long line."""
    start = max(data.rfind(b"\n", 0, position) + 1, position - LEAD_CHARS)
    return _count(data[: _character_at(data, start)])
