"""What goes wrong in a command, in a sentence and an exit status."""

import contextlib
from collections.abc import Iterator

import typer
from rich.console import Console


@contextlib.contextmanager
def sentences(console: Console, *errors: type[Exception]) -> Iterator[None]:
    """Errors of a command and Ctrl-C, told without a traceback.

    Args:
        console: Where to tell.
        *errors: Those that are the user's to mend, besides `ValueError`.
    """
    try:
        yield
    except (ValueError, *errors) as error:
        console.print(str(error), style="red", highlight=False, markup=False)
        raise typer.Exit(2) from None
    except KeyboardInterrupt:
        console.print(
            "\nInterrupted. Finished parts are kept; the same command continues after them.",
            style="yellow",
        )
        raise typer.Exit(130) from None
