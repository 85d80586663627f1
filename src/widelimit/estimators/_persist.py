"""Fitted models in one file: arrays, JSON and a checksum; nothing is executed on loading."""

import hashlib
import io
import json
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from widelimit._base.files import write_file

from ._classifier import NTKClassifier
from ._regressor import NTKRegressor
from ._state import from_state, to_state

_FORMAT = 1
_MARK = b"widelimit sha256 "
_TAIL = len(_MARK) + 64  # the archive's comment: the last bytes of the file
_CLASSES = {"NTKRegressor": NTKRegressor, "NTKClassifier": NTKClassifier}


def save(model: Any, path: Any) -> None:
    """Write a fitted estimator to a file.

    The file is an archive that `numpy.load` opens too: one array for each part, and a header in
    JSON with the version, the options and the network. Its last bytes are a SHA-256 of all others.

    Args:
        model: A fitted `NTKRegressor` or `NTKClassifier`.
        path: Where to; an existing file is replaced once the new one is complete.

    Example:
        >>> import os, tempfile, numpy as np
        >>> from widelimit.estimators import NTKRegressor, load, save
        >>> model = NTKRegressor().fit([[0.0], [1.0], [2.0]], [1.0, 3.0, 2.0])
        >>> path = os.path.join(tempfile.mkdtemp(), "model.npz")
        >>> save(model, path)
        >>> bool(load(path).predict([[0.5]])[0] == model.predict([[0.5]])[0])
        True
    """
    name = type(model).__name__
    if type(model) is not _CLASSES.get(name):
        raise TypeError(
            f"An NTKRegressor or NTKClassifier was expected, got {name}. Of a pipeline save the "
            "estimator itself, save(pipeline[-1], path), and keep the other steps apart."
        )
    check_is_fitted(model)
    header, arrays = to_state(model)
    header = {"format": _FORMAT, "widelimit": _version(), "class": name, **header}
    content = _pack(header, arrays)
    write_file(Path(path), content)


def load(path: Any) -> Any:
    """Read what `save` wrote.

    Args:
        path: The file.

    Returns:
        The fitted estimator.

    Raises:
        ValueError: If the file was cut short, changed, or is no such file.
    """
    header, arrays = _unpack(Path(path).read_bytes(), path)
    if header.get("format") != _FORMAT:
        raise ValueError(
            f"{path} has format {header.get('format')!r}, written by widelimit "
            f"{header.get('widelimit')}; this version {_version()} reads format {_FORMAT}. Install "
            "the version that wrote it."
        )
    if header.get("class") not in _CLASSES:
        raise ValueError(f"{path} holds a {header.get('class')!r}, which is not known.")
    return from_state(_CLASSES[header["class"]], header, arrays)


def _version() -> str:
    from widelimit._base import __version__

    return __version__


def _pack(header: dict[str, Any], arrays: dict[str, np.ndarray]) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        text = json.dumps(header, indent=1, allow_nan=False)
        archive.writestr(_member("header.json"), text)
        for name, array in arrays.items():
            part = io.BytesIO()
            np.lib.format.write_array(part, np.ascontiguousarray(array), allow_pickle=False)
            archive.writestr(_member(f"{name}.npy"), part.getvalue())
        archive.comment = b" " * _TAIL
    body = buffer.getvalue()[:-_TAIL]
    return body + _MARK + hashlib.sha256(body).hexdigest().encode()


def _member(name: str) -> zipfile.ZipInfo:
    return zipfile.ZipInfo(name)  # without a date: equal models are equal files


def _unpack(content: bytes, path: Any) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    body, tail = content[:-_TAIL], content[-_TAIL:]
    if not tail.startswith(_MARK):
        raise ValueError(
            f"{path} is not a complete model file: the checksum at its end is missing, so it was "
            "cut short, extended, or written by something else. Copy it again."
        )
    if tail[len(_MARK) :] != hashlib.sha256(body).hexdigest().encode():
        raise ValueError(
            f"{path} was changed after it was written: its checksum does not fit. Copy it again."
        )
    arrays = {}
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        header = json.loads(archive.read("header.json"))
        for name in archive.namelist():
            if name.endswith(".npy"):
                part = io.BytesIO(archive.read(name))
                arrays[name[:-4]] = np.lib.format.read_array(part, allow_pickle=False)
    return header, arrays
