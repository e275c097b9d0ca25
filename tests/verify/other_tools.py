"""Other people's programs, asked about our machines."""

import re
import shutil
import subprocess
from dataclasses import dataclass, field
from pathlib import Path

from fsm_agent.machine import Definition
from fsm_agent.verify.export import promela


@dataclass
class Spin:
    """SPIN's answers about one machine, in a directory of its own."""

    definition: Definition
    limits: dict
    folder: Path
    output: str = field(default="", init=False)

    def run(self, *defines: str, options=("-DSAFETY",), flags: tuple[str, ...] = ()) -> str:
        model = self.folder / "model.pml"
        model.write_text(promela(self.definition, self.limits))
        self._call("spin", "-o2", *(f"-D{define}" for define in defines), "-a", model.name)
        self._call("gcc", "-O0", "-w", "-DNOREDUCE", *options, "-o", "pan", "pan.c")
        self.output = self._call("./pan", "-m1000000", *flags)
        return self.output

    @property
    def states(self) -> int:
        return self._number(r"(\d+) states, stored")

    @property
    def transitions(self) -> int:
        return self._number(r"(\d+) transitions")

    @property
    def errors(self) -> int:
        return self._number(r"errors: (\d+)")

    def lengths(self) -> dict[str, int]:
        """The fewest moves to each reason."""
        shortest: dict[str, int] = {}
        for code, moves in re.findall(r"^L:(\d+):(\d+)$", self.output, re.MULTILINE):
            reason = self.definition.reasons[int(code) - 1]
            shortest[reason] = min(int(moves), shortest.get(reason, int(moves)))
        return shortest

    def trail(self, *defines: str) -> list[str]:
        """The triggers of the run that SPIN found last."""
        text = self._call("spin", *(f"-D{define}" for define in defines), "-t", "model.pml")
        return re.findall(r"^\s*T:(\w+)$", text, re.MULTILINE)

    def _number(self, pattern: str) -> int:
        found = re.search(pattern, self.output)
        assert found is not None, self.output
        return int(found[1])

    def _call(self, *command: str) -> str:
        program = shutil.which(command[0], path=None) if "/" not in command[0] else command[0]
        assert program is not None, f"{command[0]} is missing: install the packages that .ci/run names"
        done = subprocess.run([program, *command[1:]], cwd=self.folder, capture_output=True, text=True, check=False)
        assert "error" not in done.stderr.lower(), done.stderr
        return done.stdout
