"""The agent runtime: one protocol between an agent and any user interface."""
