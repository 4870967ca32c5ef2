"""One answer of a model as each dialect streams it: a reasoning, a text, two tool calls, usage.

`STREAMS` is written after the documents of the providers, with the members that they send and telex
does not read. `RECORDED` has the answers of two servers of others, llmock and aimock, byte by byte.
Tests cut all of them anywhere.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

REASONING = ("I should look ", "at the weather — 天気 — first.")
TEXT = ("Let me ", "look: \u2028 «21 °C»", " 🙂.")
ARGUMENTS = (('{"ci', 'ty": "Pa', 'ris\u2029 é"}'), ('{"city":', ' "Łódź"}'))
NAMES = ("get_weather", "get_weather")
SIGNATURE = "EqQBCgIYAhIkM2UyYWQ="


def sse(data: Any, event: str | None = None) -> bytes:
    text = data if isinstance(data, str) else json.dumps(data, ensure_ascii=False)
    head = f"event: {event}\n" if event else ""
    return f"{head}data: {text}\n\n".encode()


def chat() -> bytes:
    def chunk(delta: dict[str, Any], finish: str | None = None) -> bytes:
        choice = {"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish}
        return sse({"id": "c-1", "object": "chat.completion.chunk", "choices": [choice]})

    pieces = [b": keep-alive\n\n", chunk({"role": "assistant", "content": ""})]
    pieces += [chunk({"reasoning_content": piece}) for piece in REASONING]
    pieces += [chunk({"content": piece}) for piece in TEXT]
    for index, (name, arguments) in enumerate(zip(NAMES, ARGUMENTS, strict=True)):
        begun = {"index": index, "id": f"call_{index}", "type": "function"}
        begun["function"] = {"name": name, "arguments": ""}
        pieces.append(chunk({"tool_calls": [begun]}))
        pieces += [
            chunk({"tool_calls": [{"index": index, "function": {"arguments": piece}}]})
            for piece in arguments
        ]
    pieces.append(chunk({}, "tool_calls"))
    usage = {"prompt_tokens": 100, "completion_tokens": 40, "total_tokens": 140}
    usage["prompt_tokens_details"] = {"cached_tokens": 64, "audio_tokens": 0}  # type: ignore[assignment]  # mixed
    pieces.append(
        sse({"id": "c-1", "object": "chat.completion.chunk", "choices": [], "usage": usage})
    )
    return b"".join([*pieces, sse("[DONE]")])


def responses() -> bytes:
    number = iter(range(10_000))

    def event(kind: str, **members: Any) -> bytes:
        return sse({"type": kind, "sequence_number": next(number), **members}, kind)

    pieces = [
        event("response.created", response={"id": "resp_1", "status": "in_progress"}),
        event("response.in_progress", response={"id": "resp_1", "status": "in_progress"}),
    ]
    reasoning = {"id": "rs_1", "type": "reasoning", "summary": []}
    pieces.append(event("response.output_item.added", output_index=0, item=reasoning))
    pieces += [
        event("response.reasoning_summary_text.delta", output_index=0, summary_index=0, delta=piece)
        for piece in REASONING
    ]
    summary = [{"type": "summary_text", "text": "".join(REASONING)}]
    reasoning = {**reasoning, "summary": summary, "encrypted_content": SIGNATURE}
    pieces.append(event("response.output_item.done", output_index=0, item=reasoning))
    message = {"id": "msg_1", "type": "message", "role": "assistant", "content": []}
    pieces.append(event("response.output_item.added", output_index=1, item=message))
    at = {"output_index": 1, "content_index": 0, "item_id": "msg_1"}
    part = {"type": "output_text", "text": "", "annotations": []}
    pieces.append(event("response.content_part.added", **at, part=part))
    pieces += [event("response.output_text.delta", **at, delta=piece) for piece in TEXT]
    pieces.append(event("response.output_text.done", **at, text="".join(TEXT)))
    whole = {**message, "content": [{**part, "text": "".join(TEXT)}], "status": "completed"}
    pieces.append(event("response.output_item.done", output_index=1, item=whole))
    for index, (name, arguments) in enumerate(zip(NAMES, ARGUMENTS, strict=True)):
        place = {"output_index": 2 + index}
        call = {"id": f"fc_{index}", "type": "function_call", "call_id": f"call_{index}"}
        call |= {"name": name, "arguments": ""}
        pieces.append(event("response.output_item.added", **place, item=call))
        pieces += [
            event("response.function_call_arguments.delta", **place, delta=piece)
            for piece in arguments
        ]
        joined = "".join(arguments)
        pieces.append(event("response.function_call_arguments.done", **place, arguments=joined))
        pieces.append(
            event("response.output_item.done", **place, item={**call, "arguments": joined})
        )
    usage = {"input_tokens": 100, "output_tokens": 40, "total_tokens": 140}
    details = {"input_tokens_details": {"cached_tokens": 64}}
    done = {"id": "resp_1", "status": "completed", "output": [], "usage": {**usage, **details}}
    return b"".join([*pieces, event("response.completed", response=done)])


def messages() -> bytes:
    def event(kind: str, **members: Any) -> bytes:
        return sse({"type": kind, **members}, kind)

    def delta(index: int, kind: str, **members: Any) -> bytes:
        return event("content_block_delta", index=index, delta={"type": kind, **members})

    counts = {"input_tokens": 36, "cache_read_input_tokens": 64, "output_tokens": 1}
    start = {"id": "msg_1", "type": "message", "role": "assistant", "content": [], "usage": counts}
    pieces = [event("message_start", message=start)]
    thinking = {"type": "thinking", "thinking": "", "signature": ""}
    pieces.append(event("content_block_start", index=0, content_block=thinking))
    pieces.append(event("ping"))
    pieces += [delta(0, "thinking_delta", thinking=piece) for piece in REASONING]
    pieces.append(delta(0, "signature_delta", signature=SIGNATURE))
    pieces.append(event("content_block_stop", index=0))
    pieces.append(event("content_block_start", index=1, content_block={"type": "text", "text": ""}))
    pieces += [delta(1, "text_delta", text=piece) for piece in TEXT]
    pieces.append(event("content_block_stop", index=1))
    for index, (name, arguments) in enumerate(zip(NAMES, ARGUMENTS, strict=True)):
        block = {"type": "tool_use", "id": f"call_{index}", "name": name, "input": {}}
        pieces.append(event("content_block_start", index=2 + index, content_block=block))
        pieces += [delta(2 + index, "input_json_delta", partial_json=piece) for piece in arguments]
        pieces.append(event("content_block_stop", index=2 + index))
    end = {"stop_reason": "tool_use", "stop_sequence": None}
    pieces.append(event("message_delta", delta=end, usage={"output_tokens": 40}))
    return b"".join([*pieces, event("message_stop")])


STREAMS = {"chat": chat(), "responses": responses(), "messages": messages()}
RECORDED = {
    f"{file.stem}": file.read_bytes()
    for file in sorted((Path(__file__).parent / "data" / "model_streams").glob("*.sse"))
}
"""By dialect and server: `chat.aimock`."""
ALL_STREAMS = STREAMS | RECORDED
