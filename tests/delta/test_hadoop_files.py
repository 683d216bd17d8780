"""Text files by Hadoop, as the journal needs them; the same as on this machine's own paths."""

from __future__ import annotations

import pytest

from cachemgr.delta.hadoop_files import HadoopFiles
from cachemgr.delta.storage import LocalFiles

pytestmark = pytest.mark.spark


@pytest.mark.parametrize("scheme", ["", "file://"])
@pytest.mark.parametrize("kind", ["hadoop", "local"])
def test_text_files(spark, tmp_path, kind, scheme):
    files = HadoopFiles(spark) if kind == "hadoop" else LocalFiles()
    folder = f"{scheme}{tmp_path}/a b/c"
    assert files.names(folder) == [] and files.read(f"{folder}/x.json") is None
    files.write(f"{folder}/x.json", "ä\n" * 10_000)
    files.write(f"{folder}/y.json", "")
    assert files.names(folder)[-2:] == ["x.json", "y.json"]
    assert files.read(f"{folder}/x.json") == "ä\n" * 10_000
    assert (tmp_path / "a b" / "c" / "x.json").read_text() == "ä\n" * 10_000
    files.delete(f"{folder}/x.json")
    files.delete(f"{folder}/x.json")
    assert "x.json" not in files.names(folder)
