"""The one spelling of a place, and the places that can hold no table."""

from __future__ import annotations

import pytest

from cachemgr.delta.places import above, is_inside, storage_place
from cachemgr.delta.storage import why_no_folder
from cachemgr.errors import DefinitionError


@pytest.mark.parametrize(
    ("written", "kept"),
    [
        ("/a/b", "/a/b"),
        ("/a//b/", "/a/b"),
        ("file:/a", "file:/a"),
        ("file:///a/b/", "file:/a/b"),
        ("file://localhost/a", "file:/a"),
        ("FILE:///a", "file:/a"),
        ("s3a://bucket/x//y/", "s3a://bucket/x/y"),
        ("hdfs://n:8020/x", "hdfs://n:8020/x"),
        ("abfss://c@a.dfs.core.windows.net/x", "abfss://c@a.dfs.core.windows.net/x"),
        ("/with blank/ä", "/with blank/ä"),
    ],
)
def test_one_spelling(written: str, kept: str):
    assert storage_place(written, "cache c") == kept
    assert storage_place(kept, "cache c") == kept


@pytest.mark.parametrize(
    "written",
    ["", " ", ".", "relative", "./x", "../x", "file:x", "file:./x", "s3a:bucket", "/", "file:///",
     "/a/../b", "/a/./b", "s3a://b/../x", "file://other/x", "http://h/x", "HTTPS://h/x",
     "ftp://h/x", "jar:file:/x!/y", "data:text/plain,x", "jdbc:postgresql://h/x", "/a\x1bb",
     "/a\nb", "/a\u202eb", "file:///%00", "s3a://b/%0Ax", "c:\\x", "~"],
)  # fmt: skip
def test_no_place(written: str):
    with pytest.raises(DefinitionError, match="PLACE_NOT_SUPPORTED") as refused:
        storage_place(written, "LOCATION of cache c")
    assert "LOCATION of cache c" in str(refused.value) and "\x1b" not in str(refused.value)


def test_inside_and_above():
    assert is_inside("/a/b", "/a") and is_inside("/a", "/a/") and is_inside("file:/a/b", "/a")
    assert not is_inside("/ab", "/a") and not is_inside("/a", "/a/b")
    assert not is_inside("s3a://b/x", "/b")
    assert above("/a/b/c") == ["/a/b/c", "/a/b", "/a"]
    assert above("s3a://b/x/y") == ["s3a://b/x/y", "s3a://b/x", "s3a://b"]
    assert above("hdfs:///x") == ["hdfs:///x", "hdfs://"] or above("hdfs:///x")[0] == "hdfs:///x"


def test_where_a_folder_can_be_made(tmp_path):
    (tmp_path / "file").write_text("x")
    (tmp_path / "there").mkdir()
    for place in ("there", "there/below", "not/yet", "with%20blank"):
        assert why_no_folder(f"{tmp_path}/{place}") == why_no_folder(f"file:{tmp_path}/{place}")
        assert why_no_folder(f"{tmp_path}/{place}") == "", place
    assert sorted(p.name for p in tmp_path.rglob("*")) == ["file", "there"], "nothing stays"
    assert str(tmp_path / "file") in why_no_folder(f"{tmp_path}/file/below")
    assert why_no_folder(f"file:{tmp_path}/file"), "a table is a folder"
    # it says of itself that root may write to it
    assert "/proc" in why_no_folder("/proc/x")
