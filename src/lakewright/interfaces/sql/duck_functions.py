"""Functions that DuckDB computes as Spark does; a function that is not here needs Spark."""

from lakewright.interfaces.sql.duck_calls import Handler
from lakewright.interfaces.sql.duck_collections import COLLECTIONS
from lakewright.interfaces.sql.duck_texts import TEXTS
from lakewright.interfaces.sql.duck_times import TIMES
from lakewright.interfaces.sql.duck_values import VALUES

FUNCTIONS: dict[str, Handler] = {**TEXTS, **TIMES, **VALUES, **COLLECTIONS}
