"""`fsm-agent serve-model` as a program of its own: it names its URL, answers, and ends when told."""

import json
import os
import re
import subprocess
import sys
import urllib.request
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent.parent


@pytest.mark.slow
def test_it_names_its_url_in_one_line_answers_and_ends_on_a_signal(tmp_path: Path):
    script = tmp_path / "script.json"
    script.write_text(json.dumps([{"blocks": [{"type": "text", "text": "Hello"}]}]))
    command = [sys.executable, "-m", "fsm_agent.cli", "serve-model", "--script", str(script)]
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONUNBUFFERED"}
    with subprocess.Popen(command, cwd=ROOT, env=environment, stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout is not None
        line = server.stdout.readline()
        url = re.search(r"http://127\.0\.0\.1:\d+", line)
        assert url, line
        body = {"model": "m", "max_tokens": 9, "messages": [{"role": "user", "content": "Hi"}]}
        request = urllib.request.Request(
            f"{url[0]}/v1/messages",
            json.dumps(body).encode(),
            {"content-type": "application/json", "x-api-key": "k", "anthropic-version": "2023-06-01"},
        )
        with urllib.request.urlopen(request) as answer:
            assert json.load(answer)["content"] == [{"type": "text", "text": "Hello"}]
        server.terminate()
        assert server.wait() == 0
        assert server.stdout.read() == ""
