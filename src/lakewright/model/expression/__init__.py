"""Expressions: built in Python or read from SQL, bound to a schema, analysed, and relayed.

``nodes`` is the form as written, ``bound`` the form with names and types resolved. Nothing here
runs an expression over rows: engines do, from the translations in ``format`` and ``engine``.

The meaning is Spark SQL's, with three points fixed so that every engine agrees:

* times without a zone, and the parts of a moment (``hour(ts)``), are read in UTC;
* what cannot be computed (a text that is no number, a division by zero, an overflow) is NULL;
* whole numbers are added, subtracted and multiplied as ``long``.
"""
