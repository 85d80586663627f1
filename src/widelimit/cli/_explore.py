"""`widelimit explore`: the page that computes kernels in the browser."""

import threading
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console


def command(
    out: Annotated[Path | None, typer.Option(help="Write the page to this file instead.")] = None,
    port: Annotated[
        int | None,
        typer.Option(
            help="Serve it on this port of the loopback address; 0: any.", min=0, max=65535
        ),
    ] = None,
) -> None:
    """Open the explorer: exact kernels, alive in the browser; one file, no network, no server."""
    from widelimit import explorer

    console = Console(soft_wrap=True)
    if out is not None:
        target = out / "explorer.html" if out.is_dir() else out
        try:
            target.write_text(explorer.page_text(), encoding="utf-8")
        except OSError as error:
            why = error.strerror or error
            console.print(f"{target} cannot be written: {why}. Choose another file with --out.")
            raise typer.Exit(2) from None
        console.print(f"Explorer: {target}")
        return
    if port is not None:
        _serve(console, port)
        return
    page = explorer.page_file()
    if explorer.open_page(page.as_uri()):
        console.print(f"Opened {page}")
    else:
        console.print(f"No browser could be opened. The page is here: {page}")


def _serve(console: Console, port: int) -> None:
    from widelimit import explorer

    try:
        with explorer.serve(port) as address:
            console.print(f"Explorer: {address} (Ctrl-C stops it)")
            explorer.open_page(address)
            threading.Event().wait()
    except KeyboardInterrupt:
        console.print("Stopped.")
    except OSError as error:
        why = error.strerror or error
        console.print(f"Port {port} cannot be used: {why}. Choose another with --port.")
        raise typer.Exit(2) from None
