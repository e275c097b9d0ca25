"""The files that a repository keeps beside its declaration, and how to tell that they are out of date."""

from __future__ import annotations

import hashlib
import re
from pathlib import Path
from typing import Final

import fsm_agent.diagram as draw
from fsm_agent.machine import Definition

STAMP: Final = re.compile(r"<!-- drawn from (?P<file>\S+), sha256 (?P<digest>[0-9a-f]{64}) -->")


def text_files(definition: Definition) -> dict[str, str]:
    """The text of the DOT and Mermaid files of a machine, by name, in both forms."""
    files: dict[str, str] = {}
    for overview in (False, True):
        stem = f"{definition.name}_overview" if overview else definition.name
        files[f"{stem}.dot"] = draw.dot(definition, overview=overview)
        files[f"{stem}.mmd"] = draw.mermaid(definition, overview=overview)
    return files


def write_files(definition: Definition, folder: Path) -> list[Path]:
    """Write the DOT, Mermaid and SVG files of a machine and name those that changed.

    An SVG that was drawn from the same DOT text is left as it is, since other versions of Graphviz draw the same
    text a little differently. Raises `GraphvizError`, when all texts are written, if one must be drawn and no Graphviz
    is installed.
    """
    folder.mkdir(parents=True, exist_ok=True)
    files = text_files(definition)
    changed = [path for name, text in files.items() if _write(path := folder / name, text)]
    for name, text in files.items():
        image = folder / Path(name).with_suffix(".svg").name
        if name.endswith(".dot") and not is_drawn_from(image, text):
            _write(image, stamped(draw.render(text, "svg").decode(), name, text))
            changed.append(image)
    return changed


def stamped(svg: str, file: str, dot: str) -> str:
    """An SVG that says which DOT text it was drawn from."""
    return f"{svg.rstrip()}\n<!-- drawn from {file}, sha256 {_digest(dot)} -->\n"


def is_drawn_from(image: Path, dot: str) -> bool:
    """Whether an SVG file was drawn from this DOT text, by the stamp in it."""
    if not image.exists():
        return False
    stamp = STAMP.search(image.read_text(encoding="utf-8"))
    return stamp is not None and stamp["digest"] == _digest(dot)


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def _write(path: Path, text: str) -> bool:
    if path.exists() and path.read_text(encoding="utf-8") == text:
        return False
    path.write_text(text, encoding="utf-8", newline="\n")
    return True
