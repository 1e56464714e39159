"""The command line: one thin module a command, loaded only when it is called.

The table below is all that ``goldset --help`` needs, so that help loads nothing but click.
"""

from __future__ import annotations

import gc
import importlib
import sys
from typing import Any

import click

from goldset.errors import ExitCode, GoldsetError

# command -> (module, summary). A test compares each summary with the first line of the command's docstring.
COMMANDS: dict[str, tuple[str, str]] = {
    "demo": ("demo", "The story on the embedded data: audit, rebuild, publish, audit again."),
    "init": ("init", "Write a commented config beside your own logs and corpus."),
    "plan": ("plan", "What a rebuild would cost: pairs, calls, tokens, reading hours."),
    "systems": ("systems", "A few questions to each system before anything long starts."),
    "rebuild": ("rebuild", "From logs and corpus to a queue for people; resumes."),
    "review": ("review", "The queue: page, progress, files."),
    "publish": ("publish", "People's labels to a published version, audited and scored."),
    "judge": ("judge", "The judge as an instrument: calibration and card."),
    "audit": ("audit", "Can this labelled set be believed? Pre-check and four properties."),
    "recall": ("recall", "Recall at the k that production serves, with an interval."),
    "deepen": ("deepen", "A random look below the pool, for people: what recall misses."),
    "compare": ("compare", "Two systems on the same questions: the paired difference."),
    "power": ("power", "The smallest difference that so many questions can show."),
    "diff": ("diff", "What changed between two published versions."),
    "reanchor": ("reanchor", "Where the evidence stands in documents that have changed."),
    "spans": ("spans", "What was done to one document: chunks, anchors, spans and cuts."),
    "twins": ("twins", "Passages that are almost the same: listed, merged, kept apart."),
    "export": ("export", "A published version for other tools."),
}


class LazyGroup(click.Group):
    """A group that imports a command's module when the command is called, and prints help from the table."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Commands in the order of the work."""
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import the one command that is asked for."""
        if cmd_name not in COMMANDS:
            return None
        module = importlib.import_module(f"goldset.cli.{COMMANDS[cmd_name][0]}")
        command: click.Command = module.command
        return command

    def resolve_command(
            self, ctx: click.Context, args: list[str]) -> tuple[str | None, click.Command | None, list[str]]:
        """Name the nearest command when one is misspelt."""
        if args and not args[0].startswith("-") and args[0] not in COMMANDS:
            from goldset.errors import nearest

            raise click.UsageError(f"no command '{args[0]}'; {nearest(args[0], COMMANDS)}", ctx)
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Help from the table, without importing anything."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, summary) for name, (_, summary) in COMMANDS.items()])


@click.group(cls=LazyGroup, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="goldset-rebuilder", prog_name="goldset")
def group() -> None:
    """Rebuild the labelled sets that recall is measured against, and try to prove them wrong."""


def _complain(message: str, code: ExitCode) -> int:
    """One line on stderr, whatever line ends a library put into its message."""
    click.echo("goldset: " + " ".join(message.split("\n")), err=True)
    return int(code)


def main(args: list[str] | None = None) -> Any:
    """Entry point: runs a command and ends with its documented exit code."""
    # Importing numpy, pyarrow and pandas makes some 100,000 objects that stay; looking for cycles among them every 700
    # takes a tenth of the time of a short command.
    gc.set_threshold(50_000)
    try:
        code = group.main(args=args, prog_name="goldset", standalone_mode=False, obj={"own_process": args is None})
    except GoldsetError as error:
        code = _complain(str(error), error.exit_code)
    except click.exceptions.NoArgsIsHelpError as error:
        error.show(sys.stderr)
        code = int(ExitCode.USAGE)
    except click.UsageError as error:
        command = error.ctx.command_path if error.ctx else "goldset"
        message = error.format_message().rstrip(".")
        # A message that names the nearest name has said what to do already.
        hint = "" if message.endswith("?") else f"; '{command} --help' shows how it is used"
        code = _complain(message + hint, ExitCode.USAGE)
    except click.ClickException as error:
        code = _complain(error.format_message(), ExitCode.USAGE)
    except (KeyboardInterrupt, click.Abort):
        click.echo("goldset: interrupted; what was finished is kept, run again to resume", err=True)
        code = int(ExitCode.INTERRUPTED)
    except BrokenPipeError:
        code = int(ExitCode.DONE)
    sys.exit(int(code or 0))
