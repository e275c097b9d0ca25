"""Short ways to call a model in tests."""

import json
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

import anthropic

MODEL = "claude-sonnet-5-5"


@dataclass(frozen=True)
class Call:
    """A request as a scripted model takes it."""

    body: bytes
    model: str = MODEL


def call(content: Any = "hi", **fields: Any) -> Call:
    body = {"model": MODEL, "max_tokens": 1000, "messages": [{"role": "user", "content": content}], **fields}
    return Call(json.dumps(body).encode(), body["model"])


async def events_of(model, request: Call | None = None) -> list[dict[str, Any]]:
    return [event async for event in model(request or call())]


@asynccontextmanager
async def client_of(server, **options: Any) -> AsyncGenerator[anthropic.AsyncAnthropic, None]:
    # Loopback needs no certificates, and reading them takes longer than most tests.
    http = anthropic.DefaultAsyncHttpxClient(verify=False)
    settings: dict[str, Any] = {"base_url": server.url, "api_key": "test", "max_retries": 0, "http_client": http}
    settings |= options
    async with anthropic.AsyncAnthropic(**settings) as client:
        yield client


async def ask(client: Any, content: Any = "hi", **fields: Any) -> Any:
    request = {"model": MODEL, "max_tokens": 1000, "messages": [{"role": "user", "content": content}], **fields}
    return await client.messages.create(**request)


async def stream(client: Any, content: Any = "hi", **fields: Any) -> list[Any]:
    return [event async for event in await ask(client, content, stream=True, **fields)]


def texts(events) -> str:
    """The text of a list of SDK events."""
    return "".join(
        event.delta.text for event in events if event.type == "content_block_delta" and event.delta.type == "text_delta"
    )
