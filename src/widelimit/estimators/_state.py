"""What a fitted estimator consists of: options and numbers as JSON, the rest as arrays."""

import dataclasses
import math
from pathlib import Path
from typing import Any

import numpy as np

from widelimit.activations import Activation
from widelimit.activations import get as get_activation
from widelimit.describe import from_json, to_json
from widelimit.infinite import PreparedKernel, prepare
from widelimit.layers import Layer
from widelimit.linalg import Solution
from widelimit.regression import Data, Problem, Ridge

from ._heads import LaplaceHead, MachineHead, RidgeHead
from ._regressor import NTKRegressor
from ._scaling import Scaling

_OLD = {"standardize": "standardise", "normalize": "normalise"}  # names in files of version 0.1


def to_state(model: Any) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    """Header and arrays of a fitted estimator."""
    problem, dual = model._function()
    assert isinstance(problem.kernel, PreparedKernel)
    data = problem.data
    header = {
        "network": to_json(model.network_),
        "params": {k: _encode(k, v) for k, v in model.get_params(deep=False).items()},
        "kernel": problem.kernel.kind,
        "sphere": bool(model._scaling.sphere),
        "factor": model._scaling.factor,
    }
    arrays = {field.name: getattr(data, field.name) for field in dataclasses.fields(data)}
    arrays |= {"dual": dual, "y_mean": model._mean}
    for field in dataclasses.fields(model._scaling):
        value = getattr(model._scaling, field.name)
        if isinstance(value, np.ndarray):
            arrays[f"x_{field.name}"] = value
    if "feature_names_in_" in vars(model):
        header["features"] = list(map(str, model.feature_names_in_))
    if "feature_matrix_" in vars(model):
        header["feature_rounds"] = model.feature_rounds_
        arrays["feature_matrix"] = model.feature_matrix_
    if isinstance(model, NTKRegressor):
        header |= {"flat": model._flat, **_of_ridge(model._fit)}
        arrays |= {"y_scale": model._scale, "amplitude": model._fit.amplitude}
        return header, arrays
    header["object_classes"] = model.classes_.dtype == object
    arrays["classes"] = _plain_classes(model.classes_)
    head = model._head
    if isinstance(head, RidgeHead):
        known = vars(head).get("sharpness", head.known)  # None: it is found when it is asked for
        header |= {"sharpness": known, **_of_ridge(head.fit)}
        arrays["amplitude"] = head.fit.amplitude
    elif isinstance(head, LaplaceHead):
        header |= {"variance": head.amplitude, "log_evidence": head.log_evidence}
        header["sharpness"] = head.sharpness
        arrays["roots"] = head.roots
    else:
        header |= {"number": head.classes, "sharpness": head.sharpness}
        arrays |= {"offset": head.offset, "outside": head.outside}
    return header, arrays


def _of_ridge(fit: Ridge) -> dict[str, Any]:
    done = fit.outcome
    return {
        "ridge": fit.ridge,
        "time": None if fit.t == math.inf else fit.t,
        "cg": done and [done.converged, done.steps, done.residual],
    }


def from_state(cls: type, header: dict[str, Any], arrays: dict[str, np.ndarray]) -> Any:
    """The fitted estimator again; only what takes n^2 numbers is left to be computed on demand."""
    params: dict[str, Any] = {_OLD.get(k) or k: _decode(v) for k, v in header["params"].items()}
    model = cls(**params)
    model.network_ = from_json(header["network"])
    parts = {name[2:]: value for name, value in arrays.items() if name.startswith("x_")}
    model._scaling = Scaling(**parts, sphere=header["sphere"], factor=header.get("factor", 1.0))
    model._mean = arrays["y_mean"]
    model.n_features_in_ = len(model._scaling.mean)
    if "features" in header:
        model.feature_names_in_ = np.array(header["features"], dtype=object)
    if "feature_rounds" in header:
        model.feature_rounds_ = header["feature_rounds"]
        model.feature_matrix_ = arrays["feature_matrix"]
    data = Data(**{field.name: arrays[field.name] for field in dataclasses.fields(Data)})
    problem = Problem(prepare(model.network_, header["kernel"]), data)
    if "ridge" in header:
        outcome = header["cg"] and Solution(arrays["dual"], *header["cg"])
        t = math.inf if header["time"] is None else header["time"]
        model._fit = Ridge(problem, header["ridge"], arrays["dual"], t, outcome=outcome)
    if cls is NTKRegressor:
        model._flat = header["flat"]
        model._scale = arrays["y_scale"]
        model._publish()
        return model
    classes = arrays["classes"]
    model.classes_ = classes.astype(object) if header["object_classes"] else classes
    model.dual_coef_ = arrays["dual"]
    if "ridge" in header:
        model._head = RidgeHead(model._fit, model._mean, header["sharpness"])
        model._publish()
    elif "variance" in header:
        model.log_evidence_ = header["log_evidence"]
        model._head = LaplaceHead(
            problem,
            header["variance"],
            arrays["dual"],
            arrays["roots"],
            model.log_evidence_,
            header["sharpness"],
        )
    else:
        model._head = MachineHead(
            problem,
            arrays["dual"],
            arrays["offset"],
            header["number"],
            header["sharpness"],
            arrays["outside"],
        )
    return model


def _plain_classes(classes: np.ndarray) -> np.ndarray:
    if classes.dtype != object:
        return classes
    if not all(isinstance(c, str) for c in classes):
        raise ValueError(
            f"The class labels {classes.tolist()} are neither numbers nor text; only such can be "
            "written without pickle. Encode them first."
        )
    return classes.astype(str)


def _encode(name: str, value: Any) -> Any:
    """An option as JSON."""
    if isinstance(value, Layer):
        return {"network": to_json(value)}
    if name == "activation" and not isinstance(value, str):
        activation = get_activation(value)
        if not activation.registered:
            raise ValueError(
                f"The activation {activation.name!r} is not registered, so its name would not find "
                "it again. Register it with widelimit.activations.register first."
            )
        return {"activation": activation.name} if isinstance(value, Activation) else activation.name
    if isinstance(value, dict):
        return {"weights": [[_encode("", k), _encode("", v)] for k, v in value.items()]}
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, Path):
        return str(value)
    if value is None or isinstance(value, bool | int | float | str):
        return value
    raise ValueError(f"The option {name}={value!r} can not be written as JSON.")


def _decode(value: Any) -> Any:
    if not isinstance(value, dict):
        return value
    if "network" in value:
        return from_json(value["network"])
    if "activation" in value:
        return get_activation(value["activation"])
    return dict(value["weights"])
