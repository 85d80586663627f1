"""How processes notice that one of them is gone: a connection to process 0, never silent for long."""

import os
import selectors
import socket
import sys
import threading
import time

import jax

_BYE, _ALIVE, _FAILED = b"q", b".", b"!"
GONE = 75  # the exit status of a process that stops because another has: try again


class Pulse:
    """The last sign of life of a computation that all processes share.

    Attributes:
        last: When it was, or None while nothing is computed.
    """

    last: float | None = None

    def beat(self) -> None:
        """A step is done."""
        self.last = time.monotonic()

    def rest(self) -> None:
        """Nothing is expected."""
        self.last = None


PULSE = Pulse()


class Link:
    """Connections of process 0 with all others; whoever loses one stops, and says why.

    Args:
        index: Of this process.
        count: Of all processes.
        heartbeat: Seconds of silence after which a process counts as lost.
        stuck: Seconds without a step of a solver after which the run is given up.
    """

    def __init__(self, index: int, count: int, heartbeat: float, stuck: float):
        self._index, self._count, self._heartbeat, self._stuck = index, count, heartbeat, stuck
        self._server: socket.socket | None = None
        self._peers: dict[int, socket.socket] = {}
        self._heard: dict[int, float] = {}
        self._over = threading.Event()

    def listen(self) -> int:
        """The port at which process 0 waits for the others."""
        self._server = socket.create_server(("", 0), backlog=self._count)
        return int(self._server.getsockname()[1])

    def join(self, host: str, port: int) -> None:
        """Connect another process with process 0."""
        peer = socket.create_connection((host, port), timeout=self._heartbeat)
        peer.sendall(self._index.to_bytes(4, "big"))
        self._peers[0] = peer

    def start(self) -> None:
        """Begin to listen and to give signs of life, in a thread of its own."""
        if self._server is not None:
            self._server.settimeout(2 * self._heartbeat)
            while len(self._peers) < self._count - 1:
                peer, _ = self._server.accept()
                self._peers[int.from_bytes(peer.recv(4), "big")] = peer
            self._server.close()
        self._heard = dict.fromkeys(self._peers, time.monotonic())
        threading.Thread(target=self._watch, daemon=True).start()

    def close(self) -> None:
        """All is done."""
        self._over.set()
        self._tell(_BYE)

    def fail(self, error: BaseException) -> None:
        """This process has failed: the others are told."""
        if isinstance(error, jax.errors.JaxRuntimeError):
            # As a rule a collective whose partner is gone, of which the other thread is about to hear.
            time.sleep(min(self._heartbeat / 4, 5.0))
        if not self._over.is_set():
            self._over.set()
            self._tell(
                _FAILED + f"process {self._index} failed with {type(error).__name__}".encode()
            )

    def _tell(self, word: bytes) -> None:
        for peer in list(self._peers.values()):
            try:
                peer.sendall(word)
            except OSError:  # it is gone, which is noticed elsewhere
                continue

    def _watch(self) -> None:
        selector = selectors.DefaultSelector()
        for index, peer in self._peers.items():
            peer.settimeout(self._heartbeat)
            selector.register(peer, selectors.EVENT_READ, index)
        said = 0.0
        while not self._over.is_set():
            for key, _ in selector.select(timeout=min(self._heartbeat / 4, 1.0)):
                if self._hear(int(key.data)):
                    selector.unregister(key.fileobj)
            now = time.monotonic()
            if now - said > self._heartbeat / 4:
                self._tell(_ALIVE)
                said = now
            for index, heard in self._heard.items():
                if now - heard > self._heartbeat:
                    self._stop(f"process {index} has been silent for {now - heard:.0f} s")
            if PULSE.last is not None and now - PULSE.last > self._stuck:
                self._stop(f"no step was done for {now - PULSE.last:.0f} s")

    def _hear(self, index: int) -> bool:
        """Listen to a process; whether it has said good-bye."""
        try:
            word = self._peers[index].recv(4096)
        except OSError:
            word = b""
        if _FAILED in word:
            self._stop(word[word.index(_FAILED) + 1 :].decode(errors="replace"))
        if _BYE in word:
            self._heard.pop(index)
            return True
        if not word:
            self._stop(f"process {index} is gone")
        self._heard[index] = time.monotonic()
        return False

    def _stop(self, reason: str) -> None:
        """Tell all, say it, and end this process at once: its collectives would wait for ever."""
        if self._over.is_set():
            return
        self._tell(_FAILED + reason.encode())
        print(
            f"widelimit: process {self._index} of {self._count} stops, because {reason}. Start all of them "
            "again; with checkpoint= they go on where they were.",
            file=sys.stderr,
            flush=True,
        )
        os._exit(GONE)
