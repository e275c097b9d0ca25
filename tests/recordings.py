"""Where the recorded Messages API traffic lies: the large collection beside the checkout, else our small copy."""

import csv
from dataclasses import dataclass
from pathlib import Path

_TESTS = Path(__file__).parent
_BESIDE = _TESTS.parent.parent / "shared" / "wire"

WIRE = _BESIDE if (_BESIDE / "index.csv").is_file() else _TESTS / "data" / "wire"
"""The folder with `index.csv` and `cassettes/`."""


@dataclass(frozen=True)
class Recording:
    """One row of the index: `features` names what occurs in the file (stop reasons, block types, errors)."""

    path: Path
    streams: int
    wire: str
    features: frozenset[str]

    def __str__(self) -> str:
        return self.path.stem


def recordings(*features: str) -> list[Recording]:
    """The recordings in which all of `features` occur, by name; for `pytest.mark.parametrize(..., ids=str)`."""
    with (WIRE / "index.csv").open(encoding="utf-8", newline="") as index:
        found = [
            Recording(
                path=WIRE / "cassettes" / row["file"],
                streams=int(row["n_streams"]),
                wire=row["wire"],
                features=frozenset(row["features"].split()),
            )
            for row in csv.DictReader(index)
        ]
    return sorted((one for one in found if one.features.issuperset(features)), key=str)
