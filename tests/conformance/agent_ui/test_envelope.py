"""The agent protocol's envelope: clauses that no dialect test shows by itself."""

from __future__ import annotations

from typing import Any

import pytest

from telex.rpc.dialects.json_rpc import JsonRpc
from telex.rpc.messages import Message, Notification, Reply, Request
from telex.rpc.methods import Methods
from telex.rpc.testing import play


@pytest.mark.parametrize(
    ("line", "message"),
    [
        (
            '{"jsonrpc":"2.0","id":"1","method":"initialize","params":{"protocol_version":"0","client":{"name":"codelia-tui","version":"0.0.0"}}}',
            Request("1", "initialize"),
        ),
        (
            '{"jsonrpc":"2.0","id":"1","result":{"protocol_version":"0","server":{"name":"codelia-runtime","version":"0.0.0"}}}',
            Reply("1"),
        ),
        (
            '{"jsonrpc":"2.0","id":"2","method":"run.start","params":{"input":{"type":"text","text":"List TypeScript files"}}}',
            Request("2", "run.start"),
        ),
        ('{"jsonrpc":"2.0","id":"2","result":{"run_id":"run_123"}}', Reply("2")),
        (
            '{"jsonrpc":"2.0","method":"agent.event","params":{"run_id":"run_123","seq":0,"event":{"type":"reasoning","content":"...","timestamp":1730000000000}}}',
            Notification("agent.event"),
        ),
        (
            '{"jsonrpc":"2.0","id":"9","method":"ui.confirm.request","params":{"run_id":"run_123","title":"Run command?","message":"rg -n \\"AgentEvent\\" -S packages"}}',
            Request("9", "ui.confirm.request"),
        ),
        ('{"jsonrpc":"2.0","id":"9","result":{"ok":true}}', Reply("9")),
    ],
)
def test_the_examples_of_the_spec_are_decoded_as_their_message_types(
    line: str, message: Message
) -> None:
    decoded = JsonRpc().decode(line.encode())
    assert type(decoded) is type(message)
    for name in ("id", "method"):
        assert getattr(decoded, name, None) == getattr(message, name, None)
    assert bytes(decoded.data).decode() in line


async def test_unknown_members_of_parameters_reach_a_handler_that_keeps_them() -> None:
    def keep(params: dict[str, Any]) -> dict[str, Any]:
        return params

    methods = Methods()
    methods.add("ui.context.update", keep)
    await play(
        """
        << {"jsonrpc":"2.0","id":"1","method":"ui.context.update","params":{"cwd":"/","extensions":{"x":[1]},"new":{"y":null}}}
        >> {"jsonrpc":"2.0","id":"1","result":{"cwd":"/","extensions":{"x":[1]},"new":{"y":null}}}
        """,
        methods,
        JsonRpc(),
    )
