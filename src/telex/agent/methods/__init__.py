"""What each method of the protocol does: functions of the runtime, the parameters, and who asked.

    running       initialize, runs, ui.context.update
    attaching     run.attach
    sessions      sessions, models
    surroundings  skills, MCP, context.inspect, shell.exec
    permitting    tool.call, permission.explain, auth.logout

Parameters and results are those of `protocols.agent_ui.METHODS`; `server` puts the two together.
"""
