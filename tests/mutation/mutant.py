"""A deliberate bug: one text of one file of the library, replaced by another."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

PACKAGE = Path(__file__).parents[2] / "fsm_agent"


@dataclass(frozen=True)
class Mutant:
    """`old` occurs exactly once in `file` (a path below `fsm_agent`); with `new` in its place the engine has a bug."""

    why: str
    """The bug in words; it names the mutant."""
    file: str
    old: str
    new: str

    @property
    def module(self) -> str:
        return ".".join(("fsm_agent", *Path(self.file).with_suffix("").parts))

    @property
    def path(self) -> Path:
        return PACKAGE / self.file

    def occurrences(self) -> int:
        return self.path.read_text(encoding="utf-8").count(self.old)

    def source(self) -> str:
        """The file with the bug in it."""
        text = self.path.read_text(encoding="utf-8")
        if text.count(self.old) != 1:
            raise ValueError(
                f"The mutant {self.why!r} expects its old text once in fsm_agent/{self.file}, where it stands "
                f"{text.count(self.old)} times; write what stands there now."
            )
        return text.replace(self.old, self.new)
