"""A shallow clone as a base table: its log names files of its source by where they lie."""

from __future__ import annotations

from pathlib import Path

QUERY = "SELECT k, SUM(v) AS s, COUNT(*) AS n FROM cloned GROUP BY k"


def test_a_source_in_another_storage(lab):
    source = Path(lab.folder) / "source"
    mount = f"{lab.schema}_source"
    hadoop = lab.spark.sparkContext._jsc.hadoopConfiguration()
    hadoop.set(f"fs.viewfs.mounttable.{mount}.link./t", source.as_uri())
    lab.plain.sql(f"CREATE TABLE delta.`{source}` (id INT, k INT, v BIGINT) USING delta")
    for rows in ("(1, 1, 10), (2, 2, 20)", "(3, 1, 30), (4, 2, 40)"):
        lab.plain.sql(
            f"INSERT INTO delta.`{source}` SELECT /*+ COALESCE(1) */ * FROM VALUES {rows}"
        )
    lab.plain.sql(f"CREATE TABLE cloned SHALLOW CLONE delta.`viewfs://{mount}/t`")
    lab.cache(f"c AS {QUERY}")

    lab.plain.sql("UPDATE cloned SET v = v + 1 WHERE id = 1")  # a file of the source goes
    (done,) = lab.sql("REFRESH RELATIONAL CACHE c INCREMENTAL ONLY")
    assert done["mode"] != "FULL"
    lab.hit(QUERY)

    (gone,) = [f for f in lab.plain.table("cloned").inputFiles() if f.startswith("viewfs:")]
    lab.plain.sql("DELETE FROM cloned WHERE id = 3")
    (source / Path(gone).name).unlink()
    (done,) = lab.sql("REFRESH RELATIONAL CACHE c INCREMENTAL")
    assert "FILES_GONE" in done["reason"]
    lab.hit(QUERY)
