"""Where things live, one TOML file, and which value wins.

`places` says where, `private` keeps it ours alone, `settings` is the table of everything that can
be set, `layers` turns files, variables and flags into values that remember where they came from,
`project` finds a project's file and knows whether it is trusted, and `load` joins them.

What decides (`places.places`, all of `layers`) is a function of values: the environment and the
text of the files are passed in. What touches the world is `private`, `project`, `load` and
`places.find`. Nothing happens at import, and no directory is made before something goes into it.
"""
