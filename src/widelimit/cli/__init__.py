"""The command line: one file for each command."""

import os
import sys


def main() -> None:
    """Run `widelimit`."""
    os.environ.setdefault("MPLBACKEND", "Agg")
    try:
        from ._app import app
    except ImportError as error:
        if error.name not in ("typer", "rich"):
            raise
        sys.exit(
            f"The command line needs {error.name}, which is not installed. "
            "Install it with: pip install 'widelimit[all]'"
        )
    app()
