"""The page as a file: where it is, how it is opened and served."""

import contextlib
import http.server
import threading
import webbrowser
from collections.abc import Iterator
from pathlib import Path

PAGE = Path(__file__).with_name("page.html")


def page_file() -> Path:
    """Where the page lies in this installation.

    Example:
        >>> page_file().name
        'page.html'
    """
    return PAGE


def page_text() -> str:
    """The page: one HTML file with everything in it."""
    return PAGE.read_text(encoding="utf-8")


def open_page(address: str) -> bool:
    """Open an address in the browser; False where there is none to open."""
    try:
        return webbrowser.open(address)
    except webbrowser.Error:
        return False


class _Handler(http.server.BaseHTTPRequestHandler):
    """Answers with the page and nothing else."""

    def do_GET(self) -> None:
        """The page."""
        if self.path.partition("?")[0] not in ("/", "/index.html"):
            self.send_error(404, "There is only one page here: /")
            return
        data = page_text().encode()
        self.send_response(200)
        self.send_header("Content-Type", "text/html; charset=utf-8")
        self.send_header("Content-Length", str(len(data)))
        self.send_header("Cache-Control", "no-store")
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, format: str, *args: object) -> None:
        """Nothing is written down."""


@contextlib.contextmanager
def serve(port: int) -> Iterator[str]:
    """Serve the page on the loopback address, for this machine alone, while the context is open.

    Args:
        port: A port, 0 for any that is free.

    Yields:
        The address.

    Example:
        >>> from urllib.request import urlopen
        >>> with serve(0) as address:
        ...     urlopen(address).read(15)
        b'<!doctype html>'
    """
    with http.server.ThreadingHTTPServer(("127.0.0.1", port), _Handler) as server:
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_address[1]}/"
        finally:
            server.shutdown()
            thread.join()
