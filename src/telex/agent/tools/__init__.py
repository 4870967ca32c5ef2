"""What an agent can do: each tool with the schema of its arguments, its limits, and its answer.

    tool           what a tool is, what it is given, what it gives
    tool_registry  all of them by name; a call from raw JSON to an answer
    file_tools     read, read_line, write, edit, list
    search         search
    shell          shell
    todo           todo
    output_cache   tool_output_cache, and one line or some lines of it
    plugins        those of plugins

Nothing here asks for permission: whoever calls has asked.
"""
