"""Directories, the TOML configuration file, and the precedence of values.

`places` knows the directories and makes private files in them. `settings` is the table of all
settings. `layers` turns files, variables and flags into values with their origin. `load` reads the
files, a project's file only once it is trusted, and merges the layers.

`places.places` and all of `layers` are pure functions: the environment and the text of the files
are arguments. The rest of `places` and `load` use the disk. Importing these modules has no effect,
and a directory is created when the first file is written to it.
"""
