"""The text door of the service: SQL in, SQL that reads caches out, with no Spark in between.

A text is not what Spark runs: names, settings and parameters change what it means. So the names are
those that a refresh saw, the settings are stated, parameters are bound first, and what is not known
is refused with a reason.
"""
