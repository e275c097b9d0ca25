"""The examples in the docstrings run."""

import doctest
import importlib

import pytest

MODULES = ["choices", "run", "strategies", "virtual_loop"]


@pytest.mark.parametrize("module", MODULES)
def test_the_examples_in_the_docstrings_run(module):
    results = doctest.testmod(importlib.import_module(f"fsm_agent.testing.simulation.{module}"))
    assert results.attempted > 0
    assert results.failed == 0
