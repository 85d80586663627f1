"""The application and its commands."""

import typer

from . import _bench, _demo, _explore, _reproduce

app = typer.Typer(
    help="Neural networks of infinite width, exactly.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)
app.command("demo")(_demo.command)
app.command("explore")(_explore.command)
app.command("reproduce")(_reproduce.command)
app.add_typer(_bench.app, name="bench")
