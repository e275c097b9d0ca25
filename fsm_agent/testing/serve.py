"""The server as a program of its own: what `fsm-agent serve-model` runs."""

import asyncio
import contextlib
import signal
from collections.abc import Callable
from pathlib import Path

from fsm_agent.testing.script_file import ScriptFile, load_script
from fsm_agent.testing.server import MessagesServer

__all__ = ["serve", "serve_until"]


def serve(script_file: str | Path, port: int = 0, *, say: Callable[[str], None] = print) -> None:
    """Serve a script file until interrupted. Says one line: the URL. `ValueError` when the file is no script."""
    path = Path(script_file)
    loaded = load_script(path)
    with contextlib.suppress(KeyboardInterrupt):
        asyncio.run(_serve(loaded, path.parent, port, say))


async def _serve(loaded: ScriptFile, folder: Path, port: int, say: Callable[[str], None]) -> None:
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    with contextlib.suppress(NotImplementedError):  # Windows has no signal handlers on the loop
        for number in (signal.SIGINT, signal.SIGTERM):
            loop.add_signal_handler(number, stop.set)
    await serve_until(stop, loaded, folder, port, say)


async def serve_until(
    stop: asyncio.Event, loaded: ScriptFile, folder: Path, port: int, say: Callable[[str], None]
) -> None:
    """Serve until the event is set."""
    server = MessagesServer(
        loaded.items(folder),
        strict=False,
        settings=loaded.api_settings(),
        chunking=loaded.chunking,
        port=port,
        keep=1000,
    )
    async with server:
        say(f"Messages API on {server.url}")
        await stop.wait()
