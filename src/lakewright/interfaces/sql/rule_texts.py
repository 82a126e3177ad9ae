"""Bucket rules in SQL texts, where a backslash is easily lost.

In Spark's SQL ``'\\d'`` is the letter d, and ``'\\\\d'`` a pattern for digits. Rules whose
backslashes were lost match nothing, and nobody would be told; so they are refused here. Within
JSON a backslash has to be doubled once more; rules that say ``\\d`` there can mean one thing only
and are taken for it, so that rules written for other SQL dialects work as they are.
"""

import json
import re

from sqlglot import TokenType

from lakewright.interfaces.sql.text import Piece
from lakewright.model.errors import Invalid

#: The procedures and the property whose texts are rules.
_CALLED = frozenset({"PARTITION_BUCKET_INDEX_MANAGER"})
_LOST = re.compile(r"(?<!\\)(?:\\\\)*\\(?![\\'\"])(.)", re.DOTALL)
_BARE = re.compile(r'\\(?!["\\/nrtu])')
_PAIRS = re.compile(r"\\\\")


def check_backslashes(statement: Piece, key: str) -> None:
    """Refuse a statement about rules in which SQL takes a backslash away."""
    strings = [token for token in statement.tokens if token.token_type is TokenType.STRING]
    called = statement.word(0) == "CALL" and any(
        statement.word(place) in _CALLED for place in (1, 3)
    )
    for number, token in enumerate(strings):
        names_rules = number > 0 and strings[number - 1].text == key
        if not called and not names_rules:
            continue
        written = statement.text[token.start + 1 : token.end]
        lost = _LOST.search(written)
        if lost is not None:
            raise Invalid(
                f"in SQL '\\{lost[1]}' is just '{lost[1]}': the rules '{written}' would lose a "
                "backslash.",
                next_step=f"Write \\\\{lost[1]}, or a raw text: r'…'.",
                sql=statement.text,
            )


def rules_text(text: str) -> str:
    """Return the text of rules; within JSON, backslashes before other signs are doubled."""
    if not text.lstrip().startswith("{"):
        return text
    try:
        json.loads(text)
    except ValueError:
        pass
    else:
        if "\\b" not in text and "\\f" not in text:
            return text
    # Pairs stay: each is one backslash of JSON already.
    return "\\\\".join(_BARE.sub(r"\\\\", part) for part in _PAIRS.split(text))
