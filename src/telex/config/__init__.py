"""Where things live, one TOML file, and which value wins.

`places` knows the directories and makes private files in them, `settings` is the table of
everything that can be set, `layers` turns files, variables and flags into values with their origin,
and `load` reads the files, a project's only once it is trusted, and joins the layers.

`places.places` and all of `layers` are functions of values: the environment and the text of the
files are passed in. The rest of `places` and `load` touch the disk. Importing these does nothing,
and a directory is made when the first file goes into it.
"""
