"""An extension of Griffe: "Example:" of our docstrings is the section that it knows as "Examples:"."""

import re

import griffe


class ExampleSections(griffe.Extension):
    """Renames the section before the docstring is parsed."""

    def on_object(self, *, obj, **kwargs):
        """Every object that has a docstring."""
        if obj.docstring is not None:
            obj.docstring.value = re.sub(
                r"^Example:$", "Examples:", obj.docstring.value, flags=re.MULTILINE
            )
