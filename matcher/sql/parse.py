"""Spark SQL text to the parser's tree, without what the parser would lose on the way.

The parser turns `date_format(d, 'yyyy-MM')` into an expression with a strftime pattern, which not
every pattern of Spark survives; others of these calls lose an argument, or are written back as
another function (`to_char(x, f)` as a cast, `listagg(x)` with a separator). Their names are
therefore replaced in the tokens, so that each stays a call of a function that the parser does not
know, with its arguments as they stand; afterwards the names are put back into the tree.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

import sqlglot
from sqlglot import Dialect, Token, TokenType, exp
from sqlglot.errors import ParseError, SqlglotError

# function → the least number of arguments with which the parser loses something
_RAW: Final = {
    "date_format": 1, "to_date": 2, "try_to_date": 2, "to_timestamp": 1, "from_unixtime": 1,
    "unix_timestamp": 0, "to_unix_timestamp": 0, "from_utc_timestamp": 1, "to_utc_timestamp": 1,
    "to_char": 1, "to_number": 1, "get_json_object": 1, "parse_json": 1, "to_json": 2, "log10": 1,
    "log2": 1, "str_to_map": 1, "listagg": 1, "string_agg": 1, "first": 2, "last": 2,
    "percentile": 3, "initcap": 2, "uuid": 1, "random": 1, "rand": 1, "named_struct": 1,
    "regexp_like": 3, "array_agg": 2, "collect_list": 2,
}  # fmt: skip
_NAMES: Final = frozenset({TokenType.VAR, TokenType.IDENTIFIER})
_NESTED_TYPES: Final = frozenset({TokenType.ARRAY, TokenType.MAP, TokenType.STRUCT})
_TYPED_LITERALS: Final = frozenset({"DATE", "TIME", "TIMESTAMP", "TIMESTAMP_LTZ", "TIMESTAMP_NTZ"})
# a dash behind one of these is a sign; names and ends of operands are not here, nor the keywords
# that are names of columns as well
_BEFORE_SIGNS: Final = frozenset({
    TokenType.L_PAREN, TokenType.L_BRACKET, TokenType.COMMA, TokenType.PLUS, TokenType.DASH,
    TokenType.STAR, TokenType.SLASH, TokenType.MOD, TokenType.DIV, TokenType.DPIPE, TokenType.EQ,
    TokenType.NEQ, TokenType.NULLSAFE_EQ, TokenType.LT, TokenType.LTE, TokenType.GT, TokenType.GTE,
    TokenType.SELECT, TokenType.DISTINCT, TokenType.WHERE, TokenType.HAVING, TokenType.ON,
    TokenType.AND, TokenType.OR, TokenType.NOT, TokenType.CASE, TokenType.WHEN, TokenType.THEN,
    TokenType.ELSE, TokenType.BETWEEN, TokenType.LIKE, TokenType.GROUP_BY, TokenType.ORDER_BY,
})  # fmt: skip


MOST_OF_A_NUMBER: Final = 1_000
MAX_DEPTH: Final = 100  # of brackets, and of types in types
_LONG_RUN: Final = 64
_SLOW: Final = re.compile(rf"[-\d.\s]{{{_LONG_RUN + 1}}}")


def parse_statements(text: str) -> list[exp.Expr]:
    """The statements of a text, those that hold nothing left out.

    Raises:
        SqlglotError: the text does not parse.
    """
    tokens = sqlglot.tokenize(text, read="spark")
    mark = _mark(text)
    marked = [t for i, t in enumerate(tokens) if _loses(tokens, i)]
    changed = {id(t): _renamed(t, mark + t.text) for t in marked}
    given = [changed.get(id(t), t) for t in tokens]
    found = [s for s in parse_tokens(given, text) if s is not None]
    for statement in found if marked else ():
        _put_back(statement, mark)
    return found


def parse_tokens(tokens: list[Token], text: str) -> list[exp.Expr | None]:
    """A text's tokens as the parser's statements, None for those that hold nothing.

    Raises:
        SqlglotError: the text does not parse. What the parser falls over, such as the missing
            operand in `a > AND (SELECT 1)`, it has no error of its own for.
    """
    if len(text) > _LONG_RUN:
        _refuse_slow(tokens, text)
    tokens = _with_cast_literals_closed(_with_quotes_joined(tokens, text))
    pairs = zip(tokens, [*tokens, None][1:], strict=True)
    given = [_renamed(t, t.text) if _calls_window(t, after) else t for t, after in pairs]
    try:
        return Dialect.get_or_raise("spark").parser().parse(given, text)
    except (TypeError, ValueError, AttributeError, LookupError, ArithmeticError) as error:
        raise SqlglotError("the statement cannot be parsed") from error


def _refuse_slow(tokens: list[Token], text: str) -> None:
    """Refuse what the parser takes forever for: it reads the strings of intervals with a regular
    expression that begins anew at each of the digits and blanks in a row, converts numbers, and
    reads a type once for each type that it is in."""
    deep = too_deep_type(tokens, text)
    if deep is not None:
        raise _too_long(deep, f"types are nested more than {MAX_DEPTH} times")
    in_interval = False
    for token in tokens:
        kind = token.token_type
        in_interval = in_interval or kind == TokenType.INTERVAL
        if kind == TokenType.NUMBER and len(token.text) > MOST_OF_A_NUMBER:
            size = f"{len(token.text):,} characters, and at most {MOST_OF_A_NUMBER:,} are read"
            raise _too_long(token, f"a number has {size}")
        if kind == TokenType.STRING and in_interval and _SLOW.search(token.text):
            what = f"more than {_LONG_RUN} digits or blanks in a row"
            raise _too_long(token, f"a string after INTERVAL has {what}")


def too_deep_type(tokens: Sequence[Token], text: str) -> Token | None:
    """The first token of a text that is in more than `MAX_DEPTH` types, as in `ARRAY<ARRAY<…`."""
    if text.count("<") <= MAX_DEPTH:  # as in nearly all: no token is looked at
        return None
    depth = 0
    before: TokenType | None = None
    for token in tokens:
        kind = token.token_type
        if kind == TokenType.LT and before in _NESTED_TYPES:
            depth += 1
        elif depth and kind == TokenType.GT:
            depth -= 1
        if depth > MAX_DEPTH:
            return token
        before = kind
    return None


def _too_long(token: Token, what: str) -> ParseError:
    shown = f"{token.text[:20]}…"
    return ParseError.new(
        f"{what}: {shown}", description=what, line=token.line, col=token.col, highlight=shown
    )


def has_doubled_quote(text: str) -> bool:
    """Whether some string of a text has a doubled quote in it.

    >>> has_doubled_quote("SELECT 'it''s'"), has_doubled_quote("SELECT '', 'a' 'b'")
    (True, False)
    """
    if "''" not in text and '""' not in text:
        return False
    tokens = sqlglot.tokenize(text, read="spark")
    return len(_with_quotes_joined(tokens, text)) < len(tokens)


def _with_quotes_joined(tokens: list[Token], text: str) -> list[Token]:
    """The tokens with each string that has a doubled quote in it as one: `'it''s'` is `it's` to
    Spark, two strings that are put together to the parser."""
    result: list[Token] = []
    for token in tokens:
        before = result[-1] if result else None
        if (
            before is not None
            and before.token_type == token.token_type == TokenType.STRING
            and token.start == before.end + 1
            and text[before.end] == text[token.start]
        ):
            joined = before.text + text[token.start] + token.text
            result[-1] = Token(
                TokenType.STRING, joined, before.line, before.col, before.start, token.end
            )
        else:
            result.append(token)
    return result


def _with_cast_literals_closed(tokens: list[Token]) -> list[Token]:
    """The tokens with parentheses around a literal before `::` that is more than one token.

    `DATE '2026-01-01'::STRING` and `-128Y::INT` cast the whole literal in Spark; the parser would
    cast the text before it is a date, and the number before it is negative.
    """
    result: list[Token] = []
    for token in tokens:
        if token.text == "::" and token.token_type == TokenType.DCOLON:
            start = _literal_start(result)
            if start is not None:
                first, last = result[start], result[-1]
                result.insert(start, _placed(TokenType.L_PAREN, "(", first))
                result.append(_placed(TokenType.R_PAREN, ")", last))
        result.append(token)
    return result


def _literal_start(before: list[Token]) -> int | None:
    """Where the literal starts that `before` ends with; None if it is a single token or none."""
    if len(before) < 2:
        return None
    if before[-1].token_type == TokenType.STRING:
        return len(before) - 2 if before[-2].text.upper() in _TYPED_LITERALS else None
    # a suffix comes as a cast of its own: 128Y is the tokens 128 :: TINYINT
    suffixed = before[-2].token_type == TokenType.DCOLON and before[-2].text != "::"
    number = len(before) - (3 if suffixed else 1)
    if number < 2 or before[number].token_type != TokenType.NUMBER:
        return None
    is_sign = before[number - 2].token_type in _BEFORE_SIGNS
    return number - 1 if is_sign and before[number - 1].token_type == TokenType.DASH else None


def _placed(kind: TokenType, text: str, at: Token) -> Token:
    return Token(kind, text, at.line, at.col, at.start, at.end)


def _calls_window(token: Token, after: Token | None) -> bool:
    """True of the function, which the parser takes for the clause behind a GROUP BY: that has a
    name before its parenthesis."""
    is_call = after is not None and after.token_type == TokenType.L_PAREN
    return is_call and token.token_type == TokenType.WINDOW


def _mark(text: str) -> str:
    """A start of a name that no name in the text has."""
    mark = "raw_"
    while mark in text.lower():
        mark += "_"
    return mark


def _loses(tokens: list[Token], place: int) -> bool:
    """True if a call starts here that the parser would not keep as it is."""
    token = tokens[place]
    least = _RAW.get(token.text.lower())
    if least is None or place + 1 >= len(tokens):
        return False
    if tokens[place + 1].token_type != TokenType.L_PAREN:
        return False
    return count_arguments(tokens, place + 2, least) >= least


def count_arguments(tokens: list[Token], place: int, enough: int) -> int:
    """How many arguments a call has whose first one starts at `place`; counted up to `enough`."""
    if place >= len(tokens) or tokens[place].token_type == TokenType.R_PAREN:
        return 0
    count, start = 1, place
    while count < enough:
        start = next_argument(tokens, start)
        if start >= len(tokens):
            break
        count += 1
    return count


def next_argument(tokens: list[Token], place: int) -> int:
    """Where the argument after the one at `place` starts; `len(tokens)` if there is none."""
    depth = 0
    for number in range(place, len(tokens)):
        kind = tokens[number].token_type
        depth += (kind == TokenType.L_PAREN) - (kind == TokenType.R_PAREN)
        if depth < 0:
            break
        if kind == TokenType.COMMA and depth == 0:
            return number + 1
    return len(tokens)


def _renamed(token: Token, text: str) -> Token:
    kind = token.token_type if token.token_type in _NAMES else TokenType.VAR
    return Token(kind, text, token.line, token.col, token.start, token.end, token.comments)


def _put_back(tree: exp.Expr, mark: str) -> None:
    for node in tree.find_all(exp.Anonymous, exp.Identifier):
        name = node.this
        if isinstance(name, str) and name.startswith(mark):
            node.set("this", name.removeprefix(mark))
