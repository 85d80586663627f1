"""Where numbers come from: version, date, machine, command."""

import datetime
import os
import platform
import shlex
from collections.abc import Sequence
from importlib import metadata
from pathlib import Path

import jax

from widelimit._base import __version__


def provenance(command: str) -> dict[str, str]:
    """What a result was made with, in words.

    Args:
        command: The command that makes it again.

    Returns:
        Heads to values: widelimit, date, command, machine, device, Python and its packages.
    """
    system = " ".join(filter(None, (platform.system(), platform.machine())))
    devices = jax.devices()
    kind = devices[0].device_kind if devices[0].platform != "cpu" else "CPU"
    packages = ", ".join(f"{name} {metadata.version(name)}" for name in ("jax", "numpy", "scipy"))
    return {
        "widelimit": __version__,
        "date": datetime.datetime.now(datetime.UTC).strftime("%Y-%m-%d %H:%M UTC"),
        "command": command,
        "machine": f"{system}, {_processor()}{os.cpu_count()} cores",
        "device": kind if len(devices) == 1 else f"{len(devices)} x {kind}",
        "software": f"Python {platform.python_version()}, {packages}",
    }


def _processor() -> str:
    """The processor's name and a comma, where the system tells it."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        name = platform.processor()
    else:
        name = next((v.split(":", 1)[1].strip() for v in lines if v.startswith("model name")), "")
    return f"{name}, " if name else ""


def command(
    figures: Sequence[str],
    *,
    full: bool,
    samples: str | None,
    seed: int,
    out: Path,
    mnist: str | None = None,
) -> str:
    """The command line of `widelimit reproduce` with these arguments.

    Example:
        >>> command(["figure5"], full=True, samples=None, seed=0, out=Path("a b"))
        "widelimit reproduce --figure figure5 --full --seed 0 --out 'a b'"
    """
    words = ["widelimit", "reproduce"]
    for name in figures:
        words += ["--figure", name]
    words += ["--full"] if full else []
    words += ["--samples", samples] if samples is not None else []
    words += ["--mnist", mnist] if mnist is not None else []
    return shlex.join([*words, "--seed", str(seed), "--out", str(out)])
