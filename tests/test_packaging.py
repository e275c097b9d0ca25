"""What a newcomer and an installer rely on: locks, wheel, Makefile, CI."""

import json
import os
import re
import stat
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path
from typing import Any

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version

ROOT = Path(__file__).parent.parent
PYPROJECT: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text())
PROJECT: dict[str, Any] = PYPROJECT["project"]
LOCK = ROOT / "requirements.lock"
CHECK_LOCK = ROOT / "requirements-check.lock"
LOCKED_EXTRAS = ["cli", "diagrams", "shell", "testing"]


def locked(lock: Path) -> dict[str, list[Version]]:
    """Name to the versions that the file pins (more than one where they differ by Python version)."""
    versions: dict[str, list[Version]] = {}
    for entry in entries(lock):
        requirement = Requirement(entry.split(" \\\n")[0])
        (pin,) = requirement.specifier
        assert pin.operator == "==", entry
        versions.setdefault(canonicalize_name(requirement.name), []).append(Version(pin.version))
    return versions


def entries(lock: Path) -> list[str]:
    """The file's requirements, each with the lines of hashes that belong to it."""
    return re.findall(r"^[^\s#].*(?:\n\s+--hash=.*)*", lock.read_text(), flags=re.MULTILINE)


def wanted() -> list[str]:
    """The requirements of pyproject.toml that requirements.lock has to meet."""
    extras = [requirement for extra in LOCKED_EXTRAS for requirement in PROJECT["optional-dependencies"][extra]]
    return [*PROJECT["dependencies"], *extras, *PYPROJECT["dependency-groups"]["test"]]


@pytest.mark.parametrize("lock", [LOCK, CHECK_LOCK], ids=lambda lock: lock.name)
class TestLockFile:
    def test_every_package_has_one_version_and_its_hashes(self, lock: Path):
        assert all(re.search(r"\n\s+--hash=sha256:[0-9a-f]{64}", entry) for entry in entries(lock))
        assert len(locked(lock)) > 5

    def test_names_no_index_and_no_host(self, lock: Path):
        code = "\n".join(entries(lock))
        assert not re.search(r"://|--(extra-)?index|--find-links|--trusted-host", lock.read_text())
        assert not re.search(r" @ |\.whl|\.tar", code)


def test_the_lock_meets_what_pyproject_asks_for():
    pins = locked(LOCK)
    unmet = [
        text
        for text in wanted()
        for requirement in [Requirement(text)]
        if not all(map(requirement.specifier.contains, pins.get(canonicalize_name(requirement.name), [Version("0")])))
    ]
    assert not unmet, f"Run `make lock`: requirements.lock does not meet {unmet}"


def test_the_checkers_lock_meets_what_pyproject_asks_for():
    pins = locked(CHECK_LOCK)
    asked = [Requirement(text) for text in PYPROJECT["dependency-groups"]["check"]]
    assert all(one.specifier.contains(pins[canonicalize_name(one.name)][0]) for one in asked)


def test_the_two_locks_agree():
    ours, theirs = locked(LOCK), locked(CHECK_LOCK)
    assert {name: ours[name] for name in ours.keys() & theirs.keys()} == {
        name: theirs[name] for name in ours.keys() & theirs.keys()
    }


@pytest.mark.slow
def test_the_wheel_holds_the_typed_package_its_licence_and_nothing_else(tmp_path: Path):
    build = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(tmp_path)]
    subprocess.run(build, cwd=ROOT, check=True, capture_output=True)
    (wheel,) = tmp_path.glob("*.whl")
    names = zipfile.ZipFile(wheel).namelist()
    info = f"fsm_agent-{PROJECT['version']}.dist-info"
    assert {"fsm_agent/__init__.py", "fsm_agent/py.typed", f"{info}/licenses/LICENSE"} <= set(names)
    assert {name.split("/")[0] for name in names} == {"fsm_agent", info}
    metadata = zipfile.ZipFile(wheel).read(f"{info}/METADATA").decode()
    assert "\nLicense-Expression: MIT\n" in metadata
    assert zipfile.ZipFile(wheel).read(f"{info}/entry_points.txt").decode().count("fsm-agent = fsm_agent.cli:main") == 1


def test_the_changelog_tells_of_this_version():
    assert f"## {PROJECT['version']}" in (ROOT / "CHANGELOG.md").read_text()


def make(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    inherited = {name: value for name, value in os.environ.items() if not name.startswith(("MAKE", "MFLAGS"))}
    command = ["make", "--no-print-directory", *arguments]
    return subprocess.run(command, cwd=ROOT, env=inherited | environment, capture_output=True, text=True, check=False)


def test_make_alone_explains_every_command():
    targets = set(re.findall(r"^\.PHONY: (\S+)$", (ROOT / "Makefile").read_text(), flags=re.MULTILINE))
    explained = set(re.findall(r"^  make (\S+) +\S", make().stdout, flags=re.MULTILINE))
    assert explained == targets
    assert {"install", "run", "test", "test-fast", "test-deep", "check", "diagrams", "bench", "lock", "clean"} < targets


@pytest.fixture
def made_venv(tmp_path: Path) -> Path:
    """A finished environment, as far as make can see; its python prints what it is called with."""
    venv = tmp_path / "venv"
    python = venv / "bin" / "python"
    python.parent.mkdir(parents=True)
    python.write_text(f"#!{sys.executable}\nimport json, sys\nprint(json.dumps(sys.argv[1:]))\n")
    python.chmod(python.stat().st_mode | stat.S_IXUSR)
    for stamp in [".locked", ".installed", ".checkers"]:
        (venv / stamp).touch()
    return venv


def test_a_second_install_has_nothing_to_do(made_venv: Path):
    done = make("install", f"VENV={made_venv}")
    assert (done.returncode, done.stderr) == (0, "")
    assert "Installing" not in done.stdout


def test_a_changed_lock_installs_again(made_venv: Path):
    os.utime(made_venv / ".locked", (0, 0))
    assert "requirements.lock" in make("install", f"VENV={made_venv}").stdout


@pytest.mark.parametrize("prompt", ["mend it", "say \"hi\" & 'bye'; it costs $5 `id` #1 \\", ""])
def test_make_run_passes_the_prompt_on_as_it_is(made_venv: Path, prompt: str):
    done = make("run", f"VENV={made_venv}", f"PROMPT={prompt}")
    assert json.loads(done.stdout) == ["examples/fix_failing_test/run.py", prompt]


def test_make_run_without_a_prompt_gives_none_and_does_not_take_the_shells(made_venv: Path):
    done = make("run", f"VENV={made_venv}", PROMPT="$P$G")
    assert json.loads(done.stdout) == ["examples/fix_failing_test/run.py"]


def test_an_old_python_is_refused_with_the_way_out(tmp_path: Path):
    old = tmp_path / "python3"
    old.write_text("#!/bin/sh\nexit 1\n")
    old.chmod(0o755)
    done = make("install", f"VENV={tmp_path / 'venv'}", f"PYTHON={old}")
    assert done.returncode != 0
    assert "needs Python 3.11 or newer" in done.stderr
    assert not (tmp_path / "venv").exists()


def test_ci_runs_what_the_readme_tells_people_to_run():
    script = (ROOT / ".ci" / "run").read_text()
    readme = (ROOT / "README.md").read_text()
    assert os.access(ROOT / ".ci" / "run", os.X_OK)
    for command in ["make test", "make check"]:
        assert f"\n{command} " in script
    assert "make run" in readme
    assert "make test" in readme
    assert subprocess.run(["bash", "-n", ".ci/run"], cwd=ROOT, check=False).returncode == 0
