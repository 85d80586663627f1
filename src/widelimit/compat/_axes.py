"""Choices that `stax` spells as strings or enumerations, and the order of axes."""

import enum


class Padding(enum.Enum):
    """What is read beyond the edge."""

    CIRCULAR = "CIRCULAR"
    SAME = "SAME"
    VALID = "VALID"


class PositionalEmbedding(enum.Enum):
    """How positions enter attention."""

    NONE = "NONE"
    SUM = "SUM"
    CONCAT = "CONCAT"


class AttentionMechanism(enum.Enum):
    """What is applied to the products of queries and keys."""

    SOFTMAX = "SOFTMAX"
    IDENTITY = "IDENTITY"
    ABS = "ABS"
    RELU = "RELU"


class AggregateImplementation(enum.Enum):
    """How graphs are stored; here they are dense."""

    DENSE = "DENSE"
    SPARSE = "SPARSE"


def plain(value: str | enum.Enum) -> str:
    """The name of a choice, in capitals."""
    return str(value.value if isinstance(value, enum.Enum) else value).upper()


def default_axes(batch_axis: int, channel_axis: int, name: str) -> None:
    """Refuse layouts other than (points, *pixels, channels)."""
    if batch_axis != 0 or channel_axis != -1:
        raise NotImplementedError(
            f"{name}(batch_axis={batch_axis}, channel_axis={channel_axis}): inputs have shape (points, *pixels, "
            "channels) here. Move the axes of the data with numpy.moveaxis and leave these arguments out."
        )
