"""The DDL front end: text in, frozen statements out, and back.

Decides nothing about tables, caches or the metastore: names are not resolved and selects are only
checked to be selects. It refuses, with line and column, whatever the grammar does not hold.
"""

from __future__ import annotations

from cachemgr.ddl.parser import parse, parse_script
from cachemgr.ddl.recognise import looks_like_ours, nearly_ours
from cachemgr.ddl.render import STATEMENTS, render
from cachemgr.ddl.statements import QualifiedName, SelectText, Statement

__all__ = [
    "STATEMENTS",
    "QualifiedName",
    "SelectText",
    "Statement",
    "looks_like_ours",
    "nearly_ours",
    "parse",
    "parse_script",
    "render",
]
