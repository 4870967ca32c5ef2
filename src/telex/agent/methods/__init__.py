"""The handlers of the protocol's methods: functions of the runtime, the parameters, the connection.

    run_methods      initialize, run.*, ui.context.update
    session_methods  sessions, models, skills, MCP, context.inspect, shell.exec

Those that need permission (tool.call, permission.explain, auth.logout) are with the permissions.
Parameters and results are those of `protocol.METHODS`; `server` puts the two together.
"""
