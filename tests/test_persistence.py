"""Saved models come back as they were; damaged files are refused."""

import json
import zipfile

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.exceptions import NotFittedError
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import widelimit as wl
from widelimit.estimators import NTKClassifier, NTKRegressor, load, save
from widelimit.estimators._state import from_state, to_state

RNG = np.random.default_rng(0)
X = RNG.standard_normal((25, 3))
Y = np.sin(X[:, 0]) + X[:, 1] * X[:, 2]
LABELS = np.array(["no", "yes", "perhaps"])[np.digitize(Y, [-0.3, 0.4])]


@pytest.fixture(scope="module")
def content(tmp_path_factory):
    path = tmp_path_factory.mktemp("models") / "model.npz"
    save(NTKRegressor(ridge=0.1).fit(X, Y), path)
    return path.read_bytes()


REGRESSORS = {
    "defaults": NTKRegressor(),
    "cg": NTKRegressor(ridge=0.1, solver="cg"),
    "time": NTKRegressor(ridge=0.1, time=0.5),
    "network": NTKRegressor(wl.resnet(2, alpha=0.25), ridge="evidence", normalise=True),
    "options": NTKRegressor(
        activation=wl.activations.get("leaky_relu(0.1)"), ridge=np.float64(0.1), standardise=False
    ),
}


@pytest.mark.parametrize("model", REGRESSORS.values(), ids=REGRESSORS.keys())
def test_regressors_come_back(model, tmp_path):
    weights = RNG.integers(0, 3, 25)
    frame = pd.DataFrame(X, columns=["a", "b", "c"])
    model.fit(frame, np.stack([Y, Y**2], axis=1), sample_weight=weights)
    save(model, tmp_path / "model.npz")
    again = load(tmp_path / "model.npz")
    assert type(again) is NTKRegressor
    assert again.get_params() == model.get_params()
    assert again.network_ == model.network_
    assert again.ridge_ == model.ridge_
    assert list(again.feature_names_in_) == ["a", "b", "c"]
    np.testing.assert_array_equal(again.predict(frame), model.predict(frame))
    np.testing.assert_array_equal(again.amplitude_, model.amplitude_)
    if model.time is None:
        for one, other in zip(
            again.predict(frame, return_std=True),
            model.predict(frame, return_std=True),
            strict=True,
        ):
            np.testing.assert_allclose(one, other, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize(
    "labels", [LABELS, LABELS.astype(object), Y > 0, np.digitize(Y, [-0.3, 0.4]) * 10]
)
def test_classifiers_come_back(labels, tmp_path):
    weight = {c: i + 1.0 for i, c in enumerate(np.unique(labels).tolist())}
    model = NTKClassifier(ridge=0.1, class_weight=weight).fit(X, labels)
    save(model, tmp_path / "model.npz")
    again = load(tmp_path / "model.npz")
    assert again.get_params() == model.get_params()
    assert again.classes_.dtype == model.classes_.dtype
    np.testing.assert_array_equal(again.predict(X), model.predict(X))
    np.testing.assert_array_equal(again.predict_proba(X), model.predict_proba(X))


def test_files_with_the_old_spelling_come_back(tmp_path):
    """Version 0.1 wrote `standardize` and `normalize`."""
    model = NTKRegressor(ridge=0.1, normalise=True).fit(X, Y)
    header, arrays = to_state(model)
    for new, old in (("standardise", "standardize"), ("normalise", "normalize")):
        header["params"][old] = header["params"].pop(new)
    again = from_state(NTKRegressor, header, arrays)
    assert again.get_params() == model.get_params()
    np.testing.assert_array_equal(again.predict(X), model.predict(X))


def test_the_file_says_what_it_is(content, tmp_path):
    path = tmp_path / "model.npz"
    path.write_bytes(content)
    with zipfile.ZipFile(path) as archive:
        header = json.loads(archive.read("header.json"))
    assert header["widelimit"] == wl.__version__
    assert wl.from_json(header["network"]) == load(path).network_
    with np.load(path, allow_pickle=False) as arrays:
        assert arrays["points"].shape == (25, 3)


def test_equal_models_are_equal_files(content, tmp_path):
    save(NTKRegressor(ridge=0.1).fit(X, Y), tmp_path / "other.npz")
    assert (tmp_path / "other.npz").read_bytes() == content
    assert [p.name for p in tmp_path.iterdir()] == ["other.npz"]


@settings(deadline=None, max_examples=40)
@given(cut=st.floats(0, 1, exclude_max=True))
def test_a_file_cut_short_is_refused(content, tmp_path_factory, cut):
    path = tmp_path_factory.mktemp("cut") / "model.npz"
    path.write_bytes(content[: int(cut * len(content))])
    with pytest.raises(ValueError, match="cut short"):
        load(path)


@settings(deadline=None, max_examples=60)
@given(where=st.floats(0, 1, exclude_max=True), bit=st.integers(0, 7))
def test_a_changed_bit_is_refused(content, tmp_path_factory, where, bit):
    path = tmp_path_factory.mktemp("bit") / "model.npz"
    changed = bytearray(content)
    changed[int(where * len(content))] ^= 1 << bit
    path.write_bytes(bytes(changed))
    with pytest.raises(ValueError, match=r"changed|cut short"):
        load(path)


@pytest.mark.parametrize("other", [b"", b"PK", b"x" * 1000])
def test_other_files_are_refused(other, tmp_path):
    (tmp_path / "model.npz").write_bytes(other)
    with pytest.raises(ValueError, match="not a complete model file"):
        load(tmp_path / "model.npz")


def test_more_bytes_are_refused(content, tmp_path):
    (tmp_path / "model.npz").write_bytes(content + b"\0")
    with pytest.raises(ValueError, match="extended"):
        load(tmp_path / "model.npz")


def test_what_cannot_be_saved_is_refused(tmp_path):
    path = tmp_path / "model.npz"
    with pytest.raises(NotFittedError):
        save(NTKRegressor(), path)
    pipeline = make_pipeline(StandardScaler(), NTKRegressor(ridge=0.1)).fit(X, Y)
    with pytest.raises(TypeError, match=r"pipeline\[-1\]"):
        save(pipeline, path)
    save(pipeline[-1], path)
    custom = NTKRegressor(activation=lambda x: x**3, ridge=0.1).fit(X[:6], Y[:6])
    with pytest.raises(ValueError, match="not registered"):
        save(custom, path)
    np.testing.assert_array_equal(  # the file that was there is untouched
        load(path).predict(X), pipeline[-1].predict(X)
    )
