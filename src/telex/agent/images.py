"""Images: their types, and how an input with images is stored.

The bytes of an image are stored by their SHA-256, apart from conversations and events, which have
only its reference, as in `image:5d41…`. Nothing here decodes an image.
"""

from __future__ import annotations

import base64
import binascii
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import msgspec
from msgspec import Raw

from telex.agent.conversation import IMAGE, message_text, user_message
from telex.agent.limits import AGENT_IMAGE_BYTES, AGENT_INPUT_IMAGES
from telex.agent.messages import ImagePart, TextPart, UserMessage
from telex.agent.protocol.runs import (
    ImageInputPart,
    ImageUrl,
    PartsInput,
    TextInput,
    TextInputPart,
)
from telex.processes.shielded import run_in_thread
from telex.wire.limits import MIB

if TYPE_CHECKING:
    import os
    from collections.abc import Awaitable, Callable, Sequence

    from telex.agent.content_store import ContentStore

REFERENCE: Final = "image:"
"""The beginning of a reference; the SHA-256 follows."""
_TYPES: Final = {
    b"\x89PNG\r\n\x1a\n": "image/png",
    b"\xff\xd8\xff": "image/jpeg",
    b"GIF87a": "image/gif",
    b"GIF89a": "image/gif",
}
IMAGE_TYPES: Final = ("image/png", "image/jpeg", "image/webp", "image/gif")
_KNOWN: Final = "PNG, JPEG, GIF or WebP"


class ImageRefused(Exception):
    """An image cannot be used; the message says why."""


def image_type(content: bytes) -> str | None:
    """Return the type of an image that every browser and model takes, by its first bytes."""
    if content.startswith(b"RIFF") and content[8:12] == b"WEBP":
        return "image/webp"
    return next((kind for magic, kind in _TYPES.items() if content.startswith(magic)), None)


def check_image(content: bytes, name: str) -> str:
    """Return the type of an image. Raises `ImageRefused` for anything else, and for a large one."""
    if len(content) > AGENT_IMAGE_BYTES:
        raise ImageRefused(
            f"{name} has more than {AGENT_IMAGE_BYTES // MIB} MiB; make the image smaller"
        )
    if (kind := image_type(content)) is None:
        raise ImageRefused(f"{name} is not an image of the type {_KNOWN}")
    return kind


def data_url(content: bytes) -> str:
    kind = image_type(content) or "application/octet-stream"
    return f"data:{kind};base64,{base64.b64encode(content).decode()}"


def save_image(content: bytes, name: str, images: ContentStore) -> ImagePart:
    """Store an image. Blocks. Raises `ImageRefused`."""
    kind = check_image(content, name)
    return ImagePart(REFERENCE + images.save(content), kind)


def image_loader(images: ContentStore) -> Callable[[str], Awaitable[bytes]]:
    """Return the function by which a model loads images. It raises `FileNotFoundError`."""

    async def load(reference: str) -> bytes:
        sha256 = reference.removeprefix(REFERENCE)
        content = await run_in_thread(lambda _: images.load(sha256))
        if content is None:
            raise FileNotFoundError(2, "it is not stored any more", reference)
        return content

    return load


def parts_input(text: str, images: Sequence[str | os.PathLike[str] | bytes]) -> PartsInput:
    """Return an input with images, as a client sends it. Blocks. Raises `OSError`."""
    shown = [ImageInputPart(ImageUrl(_url(image))) for image in images]
    return PartsInput([TextInputPart(text), *shown] if text else [*shown])


def _url(image: str | os.PathLike[str] | bytes) -> str:
    if isinstance(image, bytes):
        return data_url(image)
    if isinstance(image, str) and image.startswith(("data:", "https://")):
        return image
    with open(image, "rb") as file:
        return data_url(file.read(AGENT_IMAGE_BYTES + 1))  # the runtime refuses a larger one


@dataclass(frozen=True, slots=True)
class StoredInput:
    """The input of a run, with its images stored."""

    input: bytes
    """JSON as received, with references in place of `data:` URLs."""
    message: UserMessage

    @property
    def text(self) -> str:
        """The input as lists and replays show it."""
        return message_text(self.message, IMAGE)

    @property
    def has_images(self) -> bool:
        return any(isinstance(part, ImagePart) for part in self.message.parts)


def read_input(raw: bytes, images: ContentStore) -> StoredInput:
    """Read an input, and store its images. Blocks. Raises `ImageRefused` and
    `msgspec.DecodeError`."""
    given = msgspec.json.decode(raw, type=TextInput | PartsInput)
    if isinstance(given, TextInput):
        return StoredInput(raw, user_message(given.text))
    count = sum(isinstance(part, ImageInputPart) for part in given.parts)
    if count > AGENT_INPUT_IMAGES:
        raise ImageRefused(f"the input has {count} images; one may have {AGENT_INPUT_IMAGES}")
    # All are checked before the first is stored.
    contents = [_content(part, number) for number, part in enumerate(given.parts, start=1)]
    parts = tuple(
        _message_part(part, content, images)
        for part, content in zip(given.parts, contents, strict=True)
    )
    return StoredInput(_with_references(raw, parts), UserMessage(parts))


def _content(part: TextInputPart | ImageInputPart, number: int) -> bytes:
    """Return the bytes of an image that came with the input; empty for everything else."""
    if isinstance(part, TextInputPart) or part.image_url.url.startswith("https://"):
        return b""
    name, url = f"part {number} of the input", part.image_url.url
    if not url.startswith("data:"):
        raise ImageRefused(f"{name}: the URL of an image begins with data: or https://")
    return decode_data_url(url, name)


def decode_data_url(url: str, name: str) -> bytes:
    """Return the image of a `data:` URL. Raises `ImageRefused`."""
    head, _, data = url.partition(",")
    if not head.lower().endswith(";base64"):
        raise ImageRefused(f"{name}: the data: URL must be in base64")
    try:
        content = base64.b64decode(data, validate=True)
    except (binascii.Error, ValueError) as error:
        raise ImageRefused(f"{name}: the data: URL is not base64: {error}") from error
    check_image(content, name)
    return content


def _message_part(
    part: TextInputPart | ImageInputPart, content: bytes, images: ContentStore
) -> TextPart | ImagePart:
    if isinstance(part, TextInputPart):
        return TextPart(part.text)
    given = part.image_url
    if not content:
        return ImagePart(given.url, given.media_type or "", given.detail)
    return msgspec.structs.replace(save_image(content, "the image", images), detail=given.detail)


def _with_references(raw: bytes, read: tuple[TextPart | ImagePart, ...]) -> bytes:
    """Return the input with the references of its images. All other members stay as they are."""
    members = msgspec.json.decode(raw, type=dict[str, Raw])
    parts = msgspec.json.decode(members["parts"], type=list[dict[str, Raw]])
    for part, known in zip(parts, read, strict=True):
        if isinstance(known, ImagePart):
            image = msgspec.json.decode(part["image_url"], type=dict[str, Raw])
            image["url"] = Raw(msgspec.json.encode(known.reference))
            part["image_url"] = Raw(msgspec.json.encode(image))
    return msgspec.json.encode({**members, "parts": parts})
