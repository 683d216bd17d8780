"""Results of parts of the rows: what of a query merges, the merge, and partial rows of a cache
collapsed to one a group.

A query over a table that was appended to is answered as the merge of two results: of a cache, which
has read the table as it was, and of the appended rows. A cache that is maintained by appending the
results of what changed holds several rows a group, and is read through the same merge.
"""
