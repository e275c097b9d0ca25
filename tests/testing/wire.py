"""Where recorded traffic is: beside the checkout, or the small selection that the repository has of its own."""

from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
SHARED = ROOT.parent / "shared" / "wire" / "cassettes"
OWN = ROOT / "tests" / "data" / "wire"


def cassettes() -> list[Path]:
    folder = SHARED if SHARED.is_dir() else OWN
    return sorted(folder.rglob("*.json"))
