"""What an agent can do: each tool with the schema of its arguments, its limits, and its answer.

    tool       what a tool is, what it is given, what it gives
    registry   all of them by name; a call from raw JSON to an answer
    builtin    ours, in order
    reading    read, read_line
    listing    list
    searching  search
    changing   write, edit, and what they would change
    shell      shell
    todo       todo
    cached     tool_output_cache, and one line or some lines of it
    plugged    those of plugins

Nothing here asks for permission: whoever calls has asked.
"""
