"""How a cache is refreshed: what to do (`plan`, pure), and doing it with Spark and Delta
(`run`).
"""
