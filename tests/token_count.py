"""A count of tokens without a tokenizer's data, which would have to be downloaded.

Words, numbers, signs and blanks are told apart as the tokenizers of language models do, and each
piece is counted rather too high: a word has a token for six letters, signs one for three. On text
of terminals it is well above a quarter of the bytes, the usual rule of thumb.
"""

from __future__ import annotations

import re
from math import ceil

_PIECE = re.compile(r" ?[A-Za-z]+| ?\d{1,3}|\s*\n|\s+(?=\S)|\s+| ?[^\sA-Za-z\d]+")


def count_tokens(text: str) -> int:
    return max(sum(map(_tokens, _PIECE.findall(text))), len(text.encode()) // 4)


def _tokens(piece: str) -> int:
    body = piece.strip()
    if not body or body.isdecimal():
        return 1
    if body.isascii():
        return ceil(len(body) / (6 if body.isalpha() else 3))
    return ceil(len(body) / 4) if len(set(body)) < 3 else len(body)  # a line, or other scripts
