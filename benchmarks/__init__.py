"""Figures against peers, side by side in one run: `make bench`.

Every module here has `run() -> list[Row]`. Numbers on a busy machine swing by a third; the ratio to
a peer measured in the same run is what counts. Nothing here asserts anything.
"""
