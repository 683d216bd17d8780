"""The shapes of texts that were read before, and what they mean: `matcher.sql.templates`."""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass, field
from threading import Lock
from typing import Final

from cachemgr.text.limits import LONG_TEXT
from matcher.sql.reader import TextQuery, TextSettings
from matcher.sql.schema import Schema
from matcher.sql.templates import Lifted, Template, learn, lift, pinned

MOST_SHAPES: Final = 1024
MOST_PINNED: Final = 16


@dataclass(slots=True)
class _Shape:
    """What is known of one shape: nothing more than that it came by, at first.

    `schema` is what it was read against: a schema is made anew for other tables or columns.
    """

    schema: Schema
    came: int = 0
    free: tuple[int, ...] = ()
    templates: dict[tuple[str, ...], Template] = field(default_factory=dict)


class Templates:
    """A bounded memory of shapes; those that did not come for longest make room. What is not worth
    remembering, since it came once, is read by the parser alone, and so are long texts: a shape is
    kept with all that stands in it."""

    def __init__(self) -> None:
        self._shapes: OrderedDict[object, _Shape] = OrderedDict()
        self._lock = Lock()

    def read(self, text: str, schema: Schema, settings: TextSettings) -> TextQuery | None:
        """A text of a known shape; None of others.

        Args:
            text: The text.
            schema: What its names stand for.
            settings: What it is read under.
        """
        lifted = _lifted(text)
        if lifted is None:
            return None
        key = _key(lifted, schema, settings)
        with self._lock:
            shape = self._shapes.get(key)
            if shape is not None:
                self._shapes.move_to_end(key)
        if shape is None or shape.schema is not schema or not shape.templates:
            return None
        template = shape.templates.get(pinned(lifted, shape.free))
        return None if template is None else template.read(lifted)

    def learn(self, text: str, read: TextQuery, schema: Schema, settings: TextSettings) -> None:
        """Take note of a text that the parser read; when its shape comes for the second time, what
        it means is remembered.

        Args:
            text: The text.
            read: What the parser made of it.
            schema: What its names stand for.
            settings: What it is read under.
        """
        lifted = _lifted(text)
        if lifted is None:
            return
        shape = self._noted(_key(lifted, schema, settings), schema)
        shape.came += 1
        if shape.came < 2 or len(shape.templates) >= MOST_PINNED or shape.came > 4 * MOST_PINNED:
            return
        template = learn(text, lifted, read, schema, settings)
        if template is None or (shape.templates and template.free != shape.free):
            return
        shape.free = template.free
        shape.templates = {**shape.templates, pinned(lifted, template.free): template}

    def _noted(self, key: object, schema: Schema) -> _Shape:
        with self._lock:
            shape = self._shapes.pop(key, None)
            if shape is None or shape.schema is not schema:
                shape = _Shape(schema)
            self._shapes[key] = shape
            if len(self._shapes) > MOST_SHAPES:
                self._shapes.popitem(last=False)
        return shape


def _lifted(text: str) -> Lifted | None:
    return None if len(text) > LONG_TEXT else lift(text)


def _key(lifted: Lifted, schema: Schema, settings: TextSettings) -> object:
    return lifted.shape, schema.catalog, schema.current, settings
