"""The application and its commands."""

import typer

from ._demo import demo
from ._reproduce import reproduce

app = typer.Typer(
    help="Neural networks of infinite width, exactly.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)
app.command()(demo)
app.command()(reproduce)
