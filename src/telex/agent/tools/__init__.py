"""The tools of the agent: each with the JSON Schema of its arguments, its limits and its result.

    tool           the types: a tool, its context, its result
    tool_registry  all tools by name; a call, from raw JSON to its result
    file_tools     read, read_line, write, edit, list
    search         search
    shell          shell
    todo           todo
    output_cache   tool_output_cache, tool_output_cache_line, tool_output_cache_grep
    plugins        tools of plugins

The tools check no permission: the caller has done that.
"""
