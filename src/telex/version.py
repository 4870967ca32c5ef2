"""The version, once: read by the build, by `telex --version` and by children's TELEX variable."""

__version__ = "0.1.0.dev0"
