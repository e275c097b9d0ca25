"""All deliberate bugs, by what is wrong."""

from collections.abc import Mapping

from tests.mutation.mutant import Mutant
from tests.mutation.mutants_effects import EFFECTS
from tests.mutation.mutants_loop import LOOP
from tests.mutation.mutants_model import MODEL
from tests.mutation.mutants_session import SESSION
from tests.mutation.mutants_tools import TOOLS

MUTANTS: Mapping[str, Mutant] = {mutant.why: mutant for mutant in (*LOOP, *EFFECTS, *MODEL, *TOOLS, *SESSION)}
assert len(MUTANTS) == len(LOOP) + len(EFFECTS) + len(MODEL) + len(TOOLS) + len(SESSION), "two mutants have one name"
