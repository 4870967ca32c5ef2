"""MCP servers as tools of the agent: the client side, on the official SDK.

The SDK negotiates and speaks the protocol, in both of its eras. Everything that needs an owner is
ours: the server's process and its pipes, its log, deadlines, bounds, restarts, and the permission
for each call. The SDK is an optional dependency and takes more than a second to import, so it is
imported in a thread when the first server starts.

    mcp_tool_source   all servers of one workspace: their tools for the registry, `mcp.list`
    mcp_supervisor    one server: its state, its start, its restarts, its calls
    mcp_connection    one session with it, from the start to the end (imports the SDK)
    mcp_process       its process and pipes, for stdio (imports the SDK)
    mcp_http_client   its HTTP client: headers, tokens, bounds (imports the SDK)
    mcp_streams       the streams of the SDK, with answers that it can read (imports the SDK)
    mcp_oauth         the stored tokens, and the login in the browser (imports the SDK)
    mcp_login         the login of `telex agent mcp login` (imports the SDK)
    mcp_session       the start and the end of a session, as values
    mcp_token_file    the file of the tokens
    mcp_secrets       the values of `env`, `headers` and `token`
    mcp_tool_list     names, descriptions and schemas of its tools, checked (pure)
    mcp_result        the result of a call as a result of a tool (pure)
    mcp_log           its standard error, in a file
"""
