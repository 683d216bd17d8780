"""What runs refreshes without being asked by a session: the scheduler's look, the watch over base
tables, and the workers that take refreshes from the metastore's queue.

Any number of processes may do all of it on one metastore; what they share is the metastore alone.
"""
