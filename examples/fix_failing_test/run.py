"""Let the agent mend the project beside this file, on a copy, with the real command line. `make run` calls this.

Without ANTHROPIC_API_KEY a scripted model plays the model's part: `fsm-agent serve-model` serves `model.json` on
loopback, and the agent talks to it as it would to the real API. The tools, the files and the test run are real.
"""

import difflib
import os
import shutil
import signal
import subprocess
import sys
import sysconfig
import tempfile
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from pathlib import Path

HERE = Path(__file__).parent
FSM_AGENT = str(Path(sysconfig.get_path("scripts")) / "fsm-agent")
PROMPT = "One test of this project fails. Find the bug, mend it in the code (not in the test), and run the tests again."


@contextmanager
def scripted_model() -> Generator[str]:
    """Serve `model.json` while the context lasts; gives the server's base URL."""
    command = [FSM_AGENT, "serve-model", "--script", str(HERE / "model.json")]
    # A session of its own: Ctrl-C is for the agent, which may still want to say goodbye to its model.
    environment = os.environ | {"PYTHONUNBUFFERED": "1"}  # else the line with the URL waits in a buffer
    server = subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True, start_new_session=True)
    try:
        yield _announced_url(server)
    finally:
        server.terminate()
        server.wait()


def _announced_url(server: subprocess.Popen[str]) -> str:
    for line in server.stdout or ():
        for word in line.split():
            if word.startswith("http://"):
                return word.rstrip(".,/")
    raise SystemExit(f"`fsm-agent serve-model` ended with exit code {server.wait()} before it named its URL.")


def run_agent(prompt: str, project: Path, base_url: str | None) -> int:
    """Run `fsm-agent run` in the project and give its exit code."""
    command = [FSM_AGENT, "run", prompt, "--cwd", str(project)]
    environment = os.environ | {"PYTHONDONTWRITEBYTECODE": "1"}
    if base_url is not None:
        command += ["--base-url", base_url]
        environment["ANTHROPIC_API_KEY"] = "the-scripted-model-needs-none"
    agent = subprocess.Popen(command, env=environment)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches the agent, which ends the run properly
    return agent.wait()


def changes(before: Path, after: Path) -> str:
    """What the agent changed in the Python files, as a unified diff."""
    names = sorted({path.relative_to(root) for root in (before, after) for path in root.rglob("*.py")})
    return "".join(line for name in names for line in _file_diff(before / name, after / name, str(name)))


def _file_diff(before: Path, after: Path, name: str) -> Iterator[str]:
    old, new = (path.read_text().splitlines(keepends=True) if path.exists() else [] for path in (before, after))
    return difflib.unified_diff(old, new, f"before/{name}", f"after/{name}")


def main() -> int:
    """Copy the project, run the agent on the copy, show what it changed."""
    prompt = sys.argv[1] if len(sys.argv) > 1 else PROMPT
    with tempfile.TemporaryDirectory(prefix="fsm_agent_") as scratch:
        project = Path(shutil.copytree(HERE / "project", Path(scratch) / "project"))
        if os.environ.get("ANTHROPIC_API_KEY"):
            exit_code = run_agent(prompt, project, None)
        else:
            print("No ANTHROPIC_API_KEY: a scripted model answers, whatever the prompt. All else is real.", flush=True)
            with scripted_model() as base_url:
                exit_code = run_agent(prompt, project, base_url)
        print("\n" + (changes(HERE / "project", project) or "No Python file was changed.\n"), end="")
    return exit_code


if __name__ == "__main__":
    sys.exit(main())
