"""The verbs of `fsm-agent` and their flags. What they do is in the modules beside this one, imported when called."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from fsm_agent.cli.errors import UsageError

app = typer.Typer(
    name="fsm-agent",
    help="The LLM agent loop as a declared finite state machine: run it, prove it, draw it, test it.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)

Machine = Annotated[
    str | None,
    typer.Argument(metavar="MODULE:NAME", help="A machine of your own. Left out: the shipped agent loop."),
]
Output = Annotated[Path | None, typer.Option("-o", "--output", metavar="FILE", help="Where to write. Left out: here.")]


@app.command("run")
def run_command(  # noqa: PLR0917 - typer calls it by name
    prompt: Annotated[str, typer.Argument(metavar="PROMPT", help="What the agent is to do.")],
    model: Annotated[str, typer.Option(metavar="M", help="The model to ask.")] = "claude-sonnet-5-5",
    base_url: Annotated[str | None, typer.Option(metavar="U", help="Another address of the Messages API.")] = None,
    max_turns: Annotated[
        int | None, typer.Option(min=1, metavar="N", help="Replies that the loop goes on from. Left out: 200.")
    ] = None,
    cwd: Annotated[Path, typer.Option(metavar="DIR", help="The directory that the agent works in.")] = Path(),
    json: Annotated[bool, typer.Option("--json", help="One event a line, for programs.")] = False,
) -> None:
    """Run the agent on a task, with tools for files and commands in one directory.

    It reads and changes files below DIR and runs commands there without asking. The exit code is 0 for `completed`,
    130 after an interrupt, 1 for any other reason, 2 for wrong usage.
    """
    from fsm_agent.cli.running import RunOptions, run

    raise typer.Exit(run(RunOptions(prompt, model, base_url, max_turns, cwd, json)))


@app.command("verify")
def verify_command(
    machine: Machine = None,
    json: Annotated[bool, typer.Option("--json", help="The report as one JSON object, for programs.")] = False,
) -> None:
    """Prove what a machine can and cannot do: which ends it reaches, that it ends, what the worst case costs.

    A machine given as an AgentMachine is checked under its own limits, any other under the defaults. The exit code
    is 0 if nothing speaks against it, else 1; 2 for wrong usage.
    """
    from fsm_agent.cli.declared import named_machine
    from fsm_agent.cli.verifying import verify

    raise typer.Exit(verify(*named_machine(machine), as_json=json))


@app.command("draw")
def draw_command(
    machine: Machine = None,
    form: Annotated[str, typer.Option("--format", metavar="dot|svg|mermaid|png", help="What to write.")] = "dot",
    overview: Annotated[bool, typer.Option("--overview", help="States and kinds of moves only.")] = False,
    trace: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Draw the path of a run: what `run --json` printed.")
    ] = None,
    output: Output = None,
) -> None:
    """Draw a machine."""
    from fsm_agent.cli.declared import named_machine
    from fsm_agent.cli.drawing import PictureFormat, draw

    if form not in [*PictureFormat]:
        raise UsageError(f"There is no format {form!r}; write one of {', '.join(PictureFormat)}.")
    draw(named_machine(machine)[0], PictureFormat(form), overview=overview, trace=trace, output=output)


@app.command("export")
def export_command(
    machine: Machine = None,
    form: Annotated[str, typer.Option("--format", metavar="promela|scxml|xstate", help="For which tool.")] = "promela",
    output: Output = None,
) -> None:
    """Write a machine in the notation of another tool (SPIN, an SCXML engine, XState), to check what we say of it.

    A machine given as an AgentMachine is written under its own limits, any other under the defaults.
    """
    from fsm_agent.cli.declared import named_machine
    from fsm_agent.cli.exporting import export

    export(*named_machine(machine), form=form, output=output)


@app.command("serve-model")
def serve_model_command(
    script: Annotated[Path, typer.Option(metavar="FILE", help="What the model answers: a JSON file.")],
    port: Annotated[int, typer.Option(min=0, max=65_535, metavar="N", help="Left out: one that is free.")] = 0,
) -> None:
    """Serve a scripted model over the Messages API on this machine, for tests in any language."""
    from fsm_agent.cli.serving import serve_model

    serve_model(script, port)
