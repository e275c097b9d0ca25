"""Reading, writing, editing, listing and searching files in a directory, and nowhere else."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path
from typing import Any

import pytest

from fsm_agent.machine.limits import LoopLimits
from fsm_agent.tools import ToolConfigError, ToolResult
from fsm_agent.tools.builtin import builtin_tools
from fsm_agent.tools.builtin.find_worker import path_pattern
from tests.tools.batches import Recorder, call


class Bench:
    """The built-in tools in a directory."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.tools = builtin_tools(root)

    async def __call__(self, name: str, /, **given: Any) -> ToolResult:
        recorder = Recorder(*self.tools)
        await recorder.run(call("1", name, **given))
        return recorder.batch.results()[0]

    async def text(self, name: str, /, **given: Any) -> str:
        result = await self(name, **given)
        assert not result.is_error, result.content
        return str(result.content)

    async def refusal(self, name: str, /, **given: Any) -> str:
        result = await self(name, **given)
        assert result.is_error, result.content
        return str(result.content)


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    root = tmp_path / "root"
    (root / "src" / "deep").mkdir(parents=True)
    (root / "src" / "main.py").write_text("import os\n\ndef main():\n    return os.name\n")
    (root / "src" / "deep" / "test_main.py").write_text("from main import main\n")
    (root / "README.md").write_text("# Read me\n")
    (root / ".venv" / "lib").mkdir(parents=True)
    (root / ".venv" / "lib" / "main.py").write_text("import os\n")
    (tmp_path / "outside.txt").write_text("secret\n")
    return Bench(root)


def test_a_root_that_is_no_directory_is_a_configuration_error(tmp_path: Path) -> None:
    with pytest.raises(ToolConfigError, match="is no directory"):
        builtin_tools(tmp_path / "missing")


def test_what_only_reads_is_declared_so(tmp_path: Path) -> None:
    tools = {each.name: each for each in builtin_tools(tmp_path)}
    assert {name for name, each in tools.items() if each.read_only} == {"read_file", "list_files", "search"}
    assert not any(tools[name].safe_with_others({}) for name in ("write_file", "edit_file", "run_command"))
    assert all(each.definition["description"] for each in tools.values())
    undescribed = [
        (each.name, parameter)
        for each in tools.values()
        for parameter, schema in each.input_schema["properties"].items()
        if "description" not in schema
    ]
    assert undescribed == []


class TestOutside:
    """No path escapes the root."""

    PATHS = ("../outside.txt", "/etc/passwd", "src/../../outside.txt", "link.txt", "linked/outside.txt", "a\0b")

    @pytest.fixture(autouse=True)
    def links(self, bench: Bench) -> None:
        (bench.root / "link.txt").symlink_to(bench.root.parent / "outside.txt")
        (bench.root / "linked").symlink_to(bench.root.parent)
        (bench.root / "dangling.txt").symlink_to(bench.root.parent / "new.txt")
        (bench.root / "round").symlink_to("round")

    @pytest.mark.parametrize("path", [*PATHS, "dangling.txt", "round"])
    async def test_nothing_is_read_or_written_there(self, bench: Bench, path: str) -> None:
        for name, more in [
            ("read_file", {}),
            ("write_file", {"content": "x"}),
            ("edit_file", {"old": "secret", "new": "x"}),
            ("search", {"pattern": "secret"}),
            ("list_files", {}),
        ]:
            told = await bench.refusal(name, path=path, **more)
            assert "secret" not in told.replace("'secret'", "")
        assert (bench.root.parent / "outside.txt").read_text() == "secret\n"
        assert not (bench.root.parent / "new.txt").exists()

    async def test_links_that_lead_out_are_not_followed_by_a_search(self, bench: Bench) -> None:
        assert await bench.text("search", pattern="secret") == "No line matches."

    async def test_a_link_that_stays_inside_is_followed(self, bench: Bench) -> None:
        (bench.root / "inside.md").symlink_to("README.md")
        assert "Read me" in await bench.text("read_file", path="inside.md")


class TestRead:
    async def test_lines_are_numbered(self, bench: Bench) -> None:
        expected = "     1\timport os\n     2\t\n     3\tdef main():\n     4\t    return os.name"
        assert await bench.text("read_file", path="src/main.py") == expected
        assert await bench.text("read_file", path=str(bench.root / "src/main.py")) == expected

    async def test_a_part_says_where_to_go_on(self, bench: Bench) -> None:
        text = await bench.text("read_file", path="src/main.py", offset=2, limit=2)
        assert text == "     2\t\n     3\tdef main():\n[lines 2 to 3 of 4; go on with offset 4]"

    async def test_an_overlong_line_is_cut(self, bench: Bench) -> None:
        (bench.root / "long.txt").write_text("x" * 50_000)
        text = await bench.text("read_file", path="long.txt")
        assert text.endswith("[48000 more characters]")

    async def test_line_numbers_are_those_of_an_editor(self, bench: Bench) -> None:
        (bench.root / "odd.txt").write_bytes("a\fb\u2028c\r\nd".encode())
        assert await bench.text("read_file", path="odd.txt") == "     1\ta\fb\u2028c\n     2\td"

    @pytest.mark.parametrize(
        ("name", "data", "told"),
        [
            ("empty.txt", b"", "empty.txt is empty."),
            ("binary.bin", b"ab\0cd", "binary.bin is binary (5 bytes)."),
            ("latin.txt", b"caf\xe9", "latin.txt is no UTF-8 text (4 bytes)."),
        ],
    )
    async def test_what_cannot_be_shown_is_told(self, bench: Bench, name: str, data: bytes, told: str) -> None:
        (bench.root / name).write_bytes(data)
        assert (await bench("read_file", path=name)).content == told

    async def test_what_is_no_file_is_told(self, bench: Bench) -> None:
        os.mkfifo(bench.root / "pipe")
        assert "is no regular file" in await bench.refusal("read_file", path="pipe")
        assert "is a directory; list_files" in await bench.refusal("read_file", path="src")
        assert "Do you mean README.md" in await bench.refusal("read_file", path="READNE.md")
        assert "Its directory does not exist" in await bench.refusal("read_file", path="no/where.py")
        assert "there is no line 9" in await bench.refusal("read_file", path="src/main.py", offset=9)

    async def test_a_file_too_large_is_not_read(self, bench: Bench) -> None:
        with (bench.root / "large").open("wb") as file:
            file.truncate(20_000_000)
        assert "more than the 10000000 that are read" in await bench.refusal("read_file", path="large")


class TestWrite:
    async def test_a_new_file_with_its_directories(self, bench: Bench) -> None:
        assert await bench.text("write_file", path="a/b/c.txt", content="one\r\ntwo\n") == "Wrote a/b/c.txt (2 lines)."
        assert (bench.root / "a/b/c.txt").read_bytes() == b"one\r\ntwo\n"

    async def test_a_file_that_is_there_is_replaced_and_keeps_its_mode(self, bench: Bench) -> None:
        script = bench.root / "run.sh"
        script.write_text("old")
        script.chmod(0o755)
        assert (await bench.text("write_file", path="run.sh", content="new")).startswith("Replaced")
        assert script.read_text() == "new"
        assert script.stat().st_mode & 0o777 == 0o755

    async def test_what_cannot_be_written_is_told(self, bench: Bench) -> None:
        assert "Is a directory" in await bench.refusal("write_file", path="src", content="")
        told = await bench.refusal("write_file", path="README.md/x", content="")
        assert "README.md/x: " in told


class TestEdit:
    async def test_one_piece(self, bench: Bench) -> None:
        told = await bench.text("edit_file", path="src/main.py", old="    return os.name", new="    return 1")
        assert told == "Edited src/main.py at line 4."
        assert (bench.root / "src/main.py").read_text().endswith("    return 1\n")

    async def test_each_piece(self, bench: Bench) -> None:
        told = await bench.text("edit_file", path="src/main.py", old="os", new="sys", replace_all=True)
        assert told == "Edited src/main.py at line 1, 4."
        assert (bench.root / "src/main.py").read_text().count("sys") == 2

    async def test_line_ends_of_the_file_are_kept(self, bench: Bench) -> None:
        (bench.root / "dos.txt").write_bytes(b"one\r\ntwo\r\nthree\r\n")
        await bench.text("edit_file", path="dos.txt", old="one\ntwo", new="1\n2")
        assert (bench.root / "dos.txt").read_bytes() == b"1\r\n2\r\nthree\r\n"

    @pytest.mark.parametrize(
        ("given", "told"),
        [
            ({"old": "os", "new": "sys"}, "occurs 2 times in src/main.py, at lines 1, 4"),
            ({"old": "absent", "new": "x"}, "`old` does not occur in src/main.py."),
            ({"old": "\treturn  os.name", "new": "x"}, "Line 4 is like its first line"),
            ({"old": "os", "new": "os"}, "are the same"),
            ({"old": "", "new": "x"}, "- old: String should have at least 1 character"),
        ],
    )
    async def test_an_unclear_piece_changes_nothing(self, bench: Bench, given: dict[str, str], told: str) -> None:
        before = (bench.root / "src/main.py").read_bytes()
        assert told in await bench.refusal("edit_file", path="src/main.py", **given)
        assert (bench.root / "src/main.py").read_bytes() == before

    async def test_a_file_that_is_no_text_is_not_damaged(self, bench: Bench) -> None:
        (bench.root / "latin.txt").write_bytes(b"caf\xe9 os")
        await bench.refusal("edit_file", path="latin.txt", old="os", new="x")
        assert (bench.root / "latin.txt").read_bytes() == b"caf\xe9 os"


class TestFind:
    async def test_files_are_listed_sorted_without_environments(self, bench: Bench) -> None:
        assert await bench.text("list_files") == "README.md\nsrc/main.py\nsrc/deep/test_main.py"

    @pytest.mark.parametrize(
        ("given", "files"),
        [
            ({"pattern": "*.py"}, "src/main.py\nsrc/deep/test_main.py"),
            ({"pattern": "src/*.py"}, "src/main.py"),
            ({"pattern": "*.py", "path": "src/deep"}, "src/deep/test_main.py"),
            ({"pattern": "**/test_*.py"}, "src/deep/test_main.py"),
            ({"path": "README.md"}, "README.md"),
            ({"pattern": "*.rs"}, "No file fits."),
        ],
    )
    async def test_a_pattern_chooses(self, bench: Bench, given: dict[str, str], files: str) -> None:
        assert await bench.text("list_files", **given) == files

    async def test_a_search_shows_path_line_and_text(self, bench: Bench) -> None:
        assert await bench.text("search", pattern=r"^import|os\.") == (
            "src/main.py:1: import os\nsrc/main.py:4:     return os.name"
        )
        assert await bench.text("search", pattern="IMPORT", ignore_case=True, files="test_*") == (
            "src/deep/test_main.py:1: from main import main"
        )
        assert await bench.text("search", pattern="import", path="src/deep") == (
            "src/deep/test_main.py:1: from main import main"
        )

    async def test_binary_files_pipes_and_overlong_lines_do_no_harm(self, bench: Bench) -> None:
        (bench.root / "binary").write_bytes(b"needle\0")
        (bench.root / "long").write_text("needle" + "x" * 10_000)
        os.mkfifo(bench.root / "pipe")
        text = await bench.text("search", pattern="needle")
        assert text.startswith("long:1: needle")
        assert len(text) < 400

    async def test_more_matches_than_are_shown_are_told(self, bench: Bench) -> None:
        (bench.root / "many.txt").write_text("needle\n" * 500)
        lines = (await bench.text("search", pattern="needle")).splitlines()
        assert len(lines) == 201
        assert lines[-1] == "[more than 200 matches; narrow the pattern or the path]"

    async def test_what_is_wrong_is_told(self, bench: Bench) -> None:
        assert "is no regular expression" in await bench.refusal("search", pattern="(")
        assert "There is no file or directory nowhere." in await bench.refusal("search", pattern="x", path="nowhere")
        assert "There is no file or directory nowhere." in await bench.refusal("list_files", path="nowhere")

    async def test_a_pattern_that_takes_for_ever_blocks_nobody_and_ends_with_the_abort(self, bench: Bench) -> None:
        (bench.root / "trap.txt").write_text("a" * 60 + "b\n")
        recorder = Recorder(*bench.tools, limits=LoopLimits(abort_grace=0.5))
        work = asyncio.ensure_future(recorder.run(call("1", "search", pattern="(a+)+c")))
        for _ in range(20):
            await asyncio.sleep(0.005)
        assert not work.done()
        work.cancel()
        await asyncio.wait({work})
        assert recorder.statuses == ["interrupted"]


@pytest.mark.parametrize(
    ("pattern", "fitting", "other"),
    [
        ("**", ["a", "a/b/c.py"], []),
        ("**/*.py", ["a.py", "x/y/a.py"], ["a.pyc"]),
        ("*.py", ["a.py", "x/y/a.py"], ["a.pyx"]),
        ("x/*.py", ["x/a.py"], ["a.py", "x/y/a.py", "y/x/a.py"]),
        ("x/**/z.py", ["x/z.py", "x/y/z.py", "x/y/y/z.py"], ["z.py", "xz.py"]),
        ("x/**", ["x/a", "x/b/c"], ["y/a"]),
        ("a?c", ["abc", "x/abc"], ["ac", "a/c"]),
        ("[ab].py", ["a.py", "x/b.py"], ["c.py"]),
        ("[!ab].py", ["c.py"], ["a.py"]),
        ("[a-c].py", ["b.py"], ["d.py"]),
        ("a+(b).py", ["a+(b).py"], ["aab.py"]),
        ("[", ["[", "x/["], ["a"]),
    ],
)
def test_patterns_of_paths(pattern: str, fitting: list[str], other: list[str]) -> None:
    expression = path_pattern(pattern)
    assert [path for path in fitting if not expression.fullmatch(path)] == []
    assert [path for path in other if expression.fullmatch(path)] == []
