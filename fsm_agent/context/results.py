"""Where the whole text of an over-long tool result goes."""

import hashlib
import re
import shutil
import tempfile
import weakref
from pathlib import Path

from fsm_agent.log import logger

_UNSAFE = re.compile(r"[^a-zA-Z0-9_-]")


class ResultStore:
    """A directory of files, one for each result that was cut, named by the id of its call.

    It is made when the first file is written. Left out, it is a new directory for temporary files, which is removed
    when the store is collected, closed, or the program ends; a directory of yours is never removed.

    >>> store = ResultStore()
    >>> path = store.save("toolu_1", "the whole text")
    >>> path.name, path.read_text()
    ('toolu_1.txt', 'the whole text')
    >>> store.close()
    >>> path.exists()
    False
    """

    def __init__(self, directory: Path | str | None = None) -> None:
        self._given = None if directory is None else Path(directory)
        self._made: Path | None = None
        self._remove: weakref.finalize[..., ResultStore] | None = None

    def save(self, call_id: str, text: str) -> Path | None:
        """Write the text; returns the file's absolute path, or None if it cannot be written (which is logged).

        The same id and text give the same file. Another text under an id that is taken goes to a file with a digest in
        its name: nothing is overwritten.
        """
        data = text.encode("utf-8", "replace")
        stem = _UNSAFE.sub("_", call_id)[:100] or "result"
        try:
            directory = self._directory()
            path = directory / f"{stem}.txt"
            if path.exists() and path.read_bytes() != data:
                path = directory / f"{stem}-{hashlib.sha256(data).hexdigest()[:12]}.txt"
            if not path.exists():
                path.write_bytes(data)
        except OSError as error:
            logger.warning("tool_result_not_saved", tool_use_id=call_id, error=str(error))
            return None
        return path

    def close(self) -> None:
        """Remove the directory, if it is one of the store's own."""
        if self._remove is not None:
            self._remove()
        self._made = self._remove = None

    def _directory(self) -> Path:
        if self._made is None:
            if self._given is not None:
                self._made = self._given.absolute()
            else:
                self._made = Path(tempfile.mkdtemp(prefix="fsm_agent-results-"))
                self._remove = weakref.finalize(self, shutil.rmtree, self._made, ignore_errors=True)
        self._made.mkdir(parents=True, exist_ok=True)  # a tool may have removed it
        return self._made
