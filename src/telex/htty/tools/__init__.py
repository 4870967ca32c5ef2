"""What `telex htty check`, `bridge` and `dump` do, for people who write or debug HTTY programs."""
