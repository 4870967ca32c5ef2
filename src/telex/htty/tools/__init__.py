"""Implements `telex htty check`, `bridge` and `dump`, for people who write HTTY programs."""
