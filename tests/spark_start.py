"""What makes Spark start sooner in the tests: the jars of Delta in one folder, so that Maven is not
asked again for each start, an archive of the classes that Spark loads (CDS of the JVM), and a
local file system that starts no process for each file.

Some sixty JVMs start in one run of the tests, and more than half of the processor time of each went
into this. `make test` runs `python -m tests.spark_start` once; without it the tests are only
slower.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any, Final

from tests.javac import compiled, compiler, write_jar

_FOLDER: Final = Path(sys.prefix) / "spark-for-tests"
_ARCHIVE: Final = _FOLDER / "classes.jsa"
_JAVA: Final = Path(__file__).parent / "java"
_QUICK_FILES: Final = _FOLDER / "quick-files.jar"
# where Java, Spark or a jar is another one than at the time, it says so and goes on without
_QUIET: Final = "-Xlog:cds=off -Xlog:cds+dynamic=off -Xlog:class+path=off"


def _jvm_options() -> str:
    """Options of each JVM, by which it also uses the archive, if there is one."""
    usual = "-XX:+UseSerialGC -XX:ReservedCodeCacheSize=240m"
    # where there are no quick files, Hadoop starts a process for each: that is to cost little
    usual += " -Djdk.lang.Process.launchMechanism=VFORK"
    return f"{usual} -XX:SharedArchiveFile={_ARCHIVE} {_QUIET}" if _ARCHIVE.exists() else usual


JVM: Final = _jvm_options()


def class_path() -> str:
    """Delta's jars, of which the archive holds classes as well; empty if they are not there."""
    return os.pathsep.join(str(jar) for jar in sorted(_FOLDER.glob("*.jar")))


def settings() -> dict[str, str]:
    """Settings by which Spark finds Delta's jars and the quick files, as far as they are there."""
    found = class_path()
    if not found:
        return {}
    made = {"spark.driver.extraClassPath": found, "spark.executor.extraClassPath": found}
    if _QUICK_FILES.exists():
        made["spark.hadoop.fs.file.impl"] = "relationalcache.tests.QuickFileSystem"
        context = "relationalcache.tests.QuickFileSystem$Context"
        made["spark.hadoop.fs.AbstractFileSystem.file.impl"] = context
    return made


def with_delta(builder: Any) -> Any:
    """A session builder that finds Delta's jars, in Maven if it must."""
    from delta import configure_spark_with_delta_pip

    found = settings()
    for key, value in found.items():
        builder.config(key, value)
    return builder if found else configure_spark_with_delta_pip(builder)


def main() -> None:
    """Make the folder anew."""
    shutil.rmtree(_FOLDER, ignore_errors=True)
    _FOLDER.mkdir()
    for step in ("jars", "files", "archive"):  # each in a JVM of its own
        subprocess.run([sys.executable, "-m", __spec__.name, step], check=True)


def _copy_jars() -> None:
    """The jars that Delta needs and Spark has not itself."""
    from pyspark.find_spark_home import _find_spark_home
    from pyspark.sql import SparkSession

    spark = with_delta(_builder(SparkSession.builder, "")).getOrCreate()
    fetched = spark.sparkContext.getConf().get("spark.jars").split(",")
    own = {_artifact(jar.name) for jar in Path(_find_spark_home(), "jars").iterdir()}
    for jar in (Path(url.removeprefix("file:")) for url in fetched):
        # group_artifact-version.jar, as Ivy names them
        if _artifact(jar.name.partition("_")[2]) not in own:
            shutil.copy(jar, _FOLDER)
    spark.stop()


def _compile_files() -> None:
    """The quick files, if there is a compiler of Java."""
    if compiler() is not None:
        write_jar(_QUICK_FILES, compiled(_JAVA.rglob("*.java"), class_path()))


def _artifact(jar: str) -> str:
    name = jar.removesuffix(".jar")
    parts = name.split("-")
    return "-".join(part for part in parts if not part[:1].isdigit())


def _builder(builder: Any, options: str) -> Any:
    from tests.processes import SMALL_SPARK

    usual = SMALL_SPARK["spark.driver.extraJavaOptions"]
    settings = {**SMALL_SPARK, "spark.driver.extraJavaOptions": f"{usual} {options}"}
    builder = builder.master("local[1]")
    for key, value in settings.items():
        builder.config(key, value)
    return builder


def _write_archive() -> None:
    """What the JVM of a service loads: a cache is made, refreshed, used and dropped."""
    from pyspark.sql import SparkSession

    import cachemgr

    made = _FOLDER / "made.jsa"
    with tempfile.TemporaryDirectory() as folder:
        builder = _builder(SparkSession.builder, f"-XX:ArchiveClassesAtExit={made} {_QUIET}")
        builder.config("spark.sql.warehouse.dir", f"{folder}/warehouse")
        builder.config("spark.cachemgr.metastore.url", f"sqlite:///{folder}/metastore.db")
        builder.config("spark.cachemgr.location", f"{folder}/caches")
        spark = cachemgr.configure_spark_with_cachemgr(builder).getOrCreate()
        spark.sparkContext.setLogLevel("ERROR")
        cachemgr.enable(spark)
        for statement in _STATEMENTS:
            spark.sql(statement).collect()
        jvm = spark.sparkContext._gateway.proc
        spark.stop()
        spark.sparkContext._gateway.shutdown()
        jvm.stdin.close()
        jvm.wait(300)
    made.rename(_ARCHIVE)


_STATEMENTS: Final = (
    "CREATE TABLE sales USING delta AS SELECT id, id % 5 AS shop, CAST(id AS STRING) AS name, "
    "CAST(id AS DECIMAL(10,2)) AS amount, DATE'2024-01-01' AS day FROM range(100)",
    "CREATE TABLE shops USING delta AS SELECT id AS shop, 'town' AS town FROM range(5)",
    "CREATE RELATIONAL CACHE by_shop STRICT AS SELECT town, day, SUM(amount) AS amount, "
    "COUNT(*) AS n FROM sales JOIN shops USING (shop) GROUP BY CUBE (town, day)",
    "REFRESH RELATIONAL CACHE by_shop",
    "SELECT town, SUM(amount) FROM sales JOIN shops USING (shop) GROUP BY town ORDER BY town",
    "INSERT INTO sales SELECT 101, 1, 'x', 5, DATE'2024-02-01'",
    "REFRESH RELATIONAL CACHE by_shop FULL",
    "SELECT town, SUM(amount) FROM sales JOIN shops USING (shop) GROUP BY town ORDER BY town",
    "DELETE FROM sales WHERE id = 101",
    "SELECT COUNT(*) FROM sales VERSION AS OF 0",
    "DESCRIBE HISTORY sales",
    "DROP RELATIONAL CACHE by_shop",
)


if __name__ == "__main__":
    if sys.argv[1:] == ["jars"]:
        _copy_jars()
    elif sys.argv[1:] == ["files"]:
        _compile_files()
    elif sys.argv[1:] == ["archive"]:
        _write_archive()
    else:
        main()
