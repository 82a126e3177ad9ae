"""The SQL that every text is read as: Spark's, with quotes in texts as Spark 4 reads them."""

from typing import ClassVar

from sqlglot.dialects.spark import Spark


class LakeSql(Spark):
    """Spark's dialect for sqlglot, in which a doubled quote within a text is one quote.

    ``'it''s'`` is ``it's``: in standard SQL, in Spark 4 and in DuckDB. Spark before 4 takes it for
    two texts side by side, and so does sqlglot; two texts with a space between them are joined
    here as they are there.
    """

    class Tokenizer(Spark.Tokenizer):
        """Takes texts apart; both quotes escape themselves, and a backslash what follows it."""

        STRING_ESCAPES: ClassVar[list[str]] = ["'", '"', "\\"]
