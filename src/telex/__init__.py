"""telex: any terminal program, with an answer back.

The public names are few and loaded when first used, so that `import telex` costs nothing.
`docs/explain/architecture.md` walks through the packages; `docs/explain/words.md` has the words.
"""

from telex.version import __version__

__all__ = ["__version__"]
