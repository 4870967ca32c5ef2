"""A language model that is no model: a server on this machine that answers by a Python function.

It streams its answers in the three dialects that telex speaks, so that an agent can be tried and
tested without a provider, and does the same each time:

    def decide(conversation: Conversation) -> Answer:
        if not conversation.results:
            return Answer("Let me look.", [("list", {})])
        return Answer(f"There are these files:\\n{conversation.results[-1]}")

    async with serve(decide) as server:
        print(server.url)  # base_url of a table [models.NAME]
"""

from __future__ import annotations

import asyncio
import json
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable


@dataclass(frozen=True)
class Conversation:
    """What a request contains: the texts of the person, and the results of tools, in order."""

    said: list[str]
    results: list[str]
    tools: list[str]
    dialect: str


@dataclass(frozen=True)
class Answer:
    """A text, and calls of tools by name and arguments; or an error in place of both."""

    text: str = ""
    calls: list[tuple[str, dict[str, Any]]] = field(default_factory=list)
    reasoning: str = ""
    error: str = ""
    input_tokens: int = 100
    output_tokens: int = 10


@dataclass
class ScriptedModel:
    """The server. `requests` are the bodies that it got, `calls` counts them."""

    decide: Callable[[Conversation], Answer]
    url: str = ""
    requests: list[dict[str, Any]] = field(default_factory=list)

    @property
    def calls(self) -> int:
        return len(self.requests)

    async def answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            head = (await reader.readuntil(b"\r\n\r\n")).decode()
            path = head.split()[1]
            [length] = [
                int(line.split(":")[1])
                for line in head.lower().splitlines()
                if line.startswith("content-length:")
            ]
            body = json.loads(await reader.readexactly(length))
            self.requests.append(body)
            dialect = path.rpartition("/")[2]
            conversation = READERS[dialect](body)
            answer = self.decide(conversation)
            if answer.error:
                problem = {"code": "context_length_exceeded", "message": answer.error}
                text = json.dumps({"error": problem}).encode()
                head = f"HTTP/1.1 400 Bad Request\r\nContent-Length: {len(text)}\r\n"
                writer.write(head.encode() + b"Connection: close\r\n\r\n" + text)
                return
            stream = WRITERS[dialect](answer, self.calls)
            writer.write(
                b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\n\r\n"
            )
            for data in stream:
                kind = f"event: {data['type']}\n" if "type" in data else ""
                writer.write(f"{kind}data: {json.dumps(data)}\n\n".encode())
            if dialect == "completions":
                writer.write(b"data: [DONE]\n\n")
            await writer.drain()
        except (ConnectionError, asyncio.IncompleteReadError):
            pass  # the client has left
        finally:
            writer.close()


@asynccontextmanager
async def serve(decide: Callable[[Conversation], Answer]) -> AsyncIterator[ScriptedModel]:
    model = ScriptedModel(decide)
    server = await asyncio.start_server(model.answer, "127.0.0.1", 0)
    model.url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/v1"
    async with server:
        yield model


# The dialect `chat`: /chat/completions.


def read_chat(body: dict[str, Any]) -> Conversation:
    messages = body["messages"]
    said = [_text(one["content"]) for one in messages if one["role"] == "user"]
    results = [_text(one["content"]) for one in messages if one["role"] == "tool"]
    tools = [one["function"]["name"] for one in body.get("tools", [])]
    return Conversation(said, results, tools, "chat")


def write_chat(answer: Answer, number: int) -> list[dict[str, Any]]:
    def chunk(delta: dict[str, Any], finish: str | None = None) -> dict[str, Any]:
        return {"choices": [{"index": 0, "delta": delta, "finish_reason": finish}]}

    chunks = []
    if answer.reasoning:
        chunks.append(chunk({"reasoning_content": answer.reasoning}))
    chunks += [chunk({"content": piece}) for piece in _pieces(answer.text)]
    for index, (name, arguments) in enumerate(answer.calls):
        call = {"index": index, "id": f"call_{number}_{index}", "type": "function"}
        chunks.append(chunk({"tool_calls": [{**call, "function": {"name": name}}]}))
        chunks += [
            chunk({"tool_calls": [{"index": index, "function": {"arguments": piece}}]})
            for piece in _pieces(json.dumps(arguments))
        ]
    chunks.append(chunk({}, "tool_calls" if answer.calls else "stop"))
    usage = {"prompt_tokens": answer.input_tokens, "completion_tokens": answer.output_tokens}
    total = answer.input_tokens + answer.output_tokens
    return [*chunks, {"choices": [], "usage": {**usage, "total_tokens": total}}]


# The dialect `responses`: /responses.


def read_responses(body: dict[str, Any]) -> Conversation:
    items = body["input"]
    said = [_text(one["content"]) for one in items if one.get("role") == "user"]
    results = [_text(one["output"]) for one in items if one.get("type") == "function_call_output"]
    return Conversation(said, results, [one["name"] for one in body.get("tools", [])], "responses")


def write_responses(answer: Answer, number: int) -> list[dict[str, Any]]:
    events: list[dict[str, Any]] = [{"type": "response.created", "response": {"id": "r"}}]
    items: list[dict[str, Any]] = []

    def item(begun: dict[str, Any], deltas: list[dict[str, Any]], done: dict[str, Any]) -> None:
        at = {"output_index": len(items)}
        events.append({"type": "response.output_item.added", **at, "item": begun})
        events.extend({**delta, **at} for delta in deltas)
        events.append({"type": "response.output_item.done", **at, "item": {**begun, **done}})
        items.append({**begun, **done})

    if answer.reasoning:
        summary = [{"type": "summary_text", "text": answer.reasoning}]
        kind = "response.reasoning_summary_text.delta"
        deltas = [{"type": kind, "summary_index": 0, "delta": answer.reasoning}]
        item({"type": "reasoning", "id": "rs", "summary": []}, deltas, {"summary": summary})
    if answer.text:
        begun = {"type": "message", "id": "m", "role": "assistant", "content": []}
        kind = "response.output_text.delta"
        deltas = [
            {"type": kind, "content_index": 0, "delta": piece} for piece in _pieces(answer.text)
        ]
        part = {"type": "output_text", "text": answer.text, "annotations": []}
        item(begun, deltas, {"content": [part]})
    for index, (name, arguments) in enumerate(answer.calls):
        whole = json.dumps(arguments)
        begun = {"type": "function_call", "id": f"fc_{index}", "name": name, "arguments": ""}
        begun["call_id"] = f"call_{number}_{index}"
        kind = "response.function_call_arguments.delta"
        deltas = [{"type": kind, "delta": piece} for piece in _pieces(whole)]
        item(begun, deltas, {"arguments": whole})
    usage = {"input_tokens": answer.input_tokens, "output_tokens": answer.output_tokens}
    usage["total_tokens"] = answer.input_tokens + answer.output_tokens
    done = {"id": "r", "status": "completed", "output": items, "usage": usage}
    return [*events, {"type": "response.completed", "response": done}]


# The dialect `messages`: /messages.


def read_messages(body: dict[str, Any]) -> Conversation:
    said, results = [], []
    for message in body["messages"]:
        content = message["content"]
        blocks = content if isinstance(content, list) else [{"type": "text", "text": content}]
        for block in blocks if message["role"] == "user" else ():
            if block["type"] == "tool_result":
                results.append(_text(block.get("content", "")))
            elif block["type"] == "text":
                said.append(block["text"])
    return Conversation(said, results, [one["name"] for one in body.get("tools", [])], "messages")


def write_messages(answer: Answer, number: int) -> list[dict[str, Any]]:
    usage = {"input_tokens": answer.input_tokens, "output_tokens": 1}
    start = {"id": "m", "type": "message", "role": "assistant", "content": [], "usage": usage}
    events: list[dict[str, Any]] = [{"type": "message_start", "message": start}]
    index = 0

    def block(begun: dict[str, Any], deltas: list[dict[str, Any]]) -> None:
        nonlocal index
        at = {"index": index}
        events.append({"type": "content_block_start", **at, "content_block": begun})
        events.extend({"type": "content_block_delta", **at, "delta": delta} for delta in deltas)
        events.append({"type": "content_block_stop", **at})
        index += 1

    if answer.reasoning:
        deltas = [{"type": "thinking_delta", "thinking": answer.reasoning}]
        deltas.append({"type": "signature_delta", "signature": "c2lnbmVk"})
        block({"type": "thinking", "thinking": "", "signature": ""}, deltas)
    if answer.text:
        deltas = [{"type": "text_delta", "text": piece} for piece in _pieces(answer.text)]
        block({"type": "text", "text": ""}, deltas)
    for place, (name, arguments) in enumerate(answer.calls):
        begun = {"type": "tool_use", "id": f"call_{number}_{place}", "name": name, "input": {}}
        block(
            begun,
            [
                {"type": "input_json_delta", "partial_json": piece}
                for piece in _pieces(json.dumps(arguments))
            ],
        )
    end = {"stop_reason": "tool_use" if answer.calls else "end_turn", "stop_sequence": None}
    usage = {"output_tokens": answer.output_tokens}
    return [
        *events,
        {"type": "message_delta", "delta": end, "usage": usage},
        {"type": "message_stop"},
    ]


READERS = {"completions": read_chat, "responses": read_responses, "messages": read_messages}
WRITERS = {"completions": write_chat, "responses": write_responses, "messages": write_messages}


def _text(content: Any) -> str:
    """The text of a content, which may be a list of parts."""
    if isinstance(content, str):
        return content
    return "".join(part.get("text", "") for part in content)


def _pieces(text: str, size: int = 7) -> list[str]:
    return [text[at : at + size] for at in range(0, len(text), size)]
