"""Aggregates from what is stored of them, a kind of aggregate a module.

Each handler gets the attempt and the aggregate and returns its value over the view's rows, None
where what is stored does not give it, or raises `Refused` where it does but could differ.

A *part* is an expression over one stored row whose aggregate over the query's group is the wanted
value: `sum_x` for SUM(x), `CASE WHEN k = 1 THEN sum_x ELSE 0 END` for SUM(CASE WHEN k = 1 THEN x
ELSE 0 END), `k * rows` for SUM(k). Parts are put together from the parts of an argument, because
all rows behind one stored row agree on the keys.
"""
