"""What counts as a credential, and what only looks like one."""

from __future__ import annotations

import time

import pytest

from cachemgr.secrets import masked, masked_sql, secret_places


@pytest.mark.parametrize(
    "text",
    [
        "jdbc:postgresql://u:topsecret@h/db",
        "postgresql://u:top@secret@h/db",
        "redis://:topsecret@h:6379",
        "jdbc:oracle:thin:scott/topsecret@h:1521/x",
        "jdbc:sqlserver://h;user=sa;password=topsecret;encrypt=true",
        "jdbc:mysql://h/db?user=a&password=topsecret",
        "https://store/c?sv=1&sig=topsecret%2Fd",
        "s3a://TOPSECRET:topsecret@bucket/t",
        "s3://TOPSECRET@bucket/t",
        "DefaultEndpointsProtocol=https;AccountName=a;AccountKey=topsecret==;",
        "host=h user=u password=topsecret dbname=d",
        "host=h password='top secret'",
        "pwd = topsecret",
        "PW=topsecret",
        "fs.s3a.secret.key=topsecret",
        'json {"client_secret": "topsecret"}',
        "AKIATOPSECRETTOPSECR",
        "ghp_topsecrettopsecrettopsecrettopsecret0",
        "xoxb-topsecret-topsecret-topsecret",
        "dapitopsecrettopsecrettopsecret0123",
        "sk_live_topsecrettopsecret",
        "AIzatopsecrettopsecrettopsecrettopsecre0",
        "eyJtopsecret0.eyJtopsecret0.topsecret",
        "-----BEGIN RSA PRIVATE KEY-----\ntopsecret\n-----END RSA PRIVATE KEY-----",
        "Authorization: Bearer topsecret12345",
    ],
)
def test_a_credential_is_masked_in_a_text_and_in_a_constant_and_a_comment_of_sql(text: str) -> None:
    assert "secret" not in masked(text).replace("client_secret", "").replace("secret.key", "")
    if "'" not in text:
        for sql in (f"SELECT '{text}' AS a FROM t", f"SELECT a FROM t /* {text} */ WHERE b = 1"):
            shown = masked_sql(sql).replace("client_secret", "").replace("secret.key", "")
            assert "secret" not in shown and "***" in shown
            assert secret_places({"the SELECT": sql}, {}) == ("the SELECT",)
    for clause in ("COMMENT", "LOCATION", "ANY_OTHER"):
        assert secret_places({clause: text}, {}) == (clause,)


@pytest.mark.parametrize(
    "text",
    [
        "file:/data/t, s3a://bucket/a b@c",
        "abfss://box@account.dfs.core.windows.net/c",
        "hdfs://namenode:8020/data/a@b",
        "ask ann@example.com: the password is in the vault",
        "password: see the vault",
        "password=<password>",
        "password=*** and pwd=null",
        "one token per shop, tokens=3",
        "postgresql://ann@db/x?sslmode=require",
        "rows of the secretary",
    ],
)
def test_what_only_looks_alike_is_left(text: str) -> None:
    assert masked(text) == text and secret_places({"COMMENT": text}, {}) == ()


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT a FROM t WHERE password = 'abc' AND token='x' AND secret=3",
        "SELECT password AS pw, 'it''s' AS x, `pwd` FROM t -- the password = column",
        "SELECT CASE WHEN pwd='' THEN 1 END FROM t",
        "SELECT a FROM t WHERE key LIKE 'AKIA%'",
        "SELECT aes_decrypt(a, k) FROM t",
        "SELECT 'unclosed",
    ],
)
def test_a_comparison_in_sql_is_none(sql: str) -> None:
    if "--" not in sql:
        assert secret_places({"the SELECT": sql}, {}) == ()
    assert masked_sql(sql.partition("--")[0]) == sql.partition("--")[0]


def test_a_key_of_a_cipher_is_one() -> None:
    sql = "SELECT aes_decrypt(unhex(a), 'topsecrettopsecr', 'GCM') FROM t"
    assert masked_sql(sql) == "SELECT aes_decrypt(unhex(a), '***', 'GCM') FROM t"


@pytest.mark.parametrize(
    ("key", "is_secret"),
    [
        ("pw", True), ("db.pwd", True), ("dbPassword", True), ("fs.s3a.secret.key", True),
        ("api_key", True), ("refresh.token", True), ("client.passphrase", True),
        ("owner", False), ("delta.appendOnly", False), ("max.tokens", False), ("keys", False),
        ("partition.key", False), ("compass", False),
    ],
)  # fmt: skip
def test_names_of_properties(key: str, is_secret: bool) -> None:
    assert bool(secret_places({}, {key: "some value"})) is is_secret
    assert secret_places({}, {key: "***"}) == ()


@pytest.mark.parametrize(
    "piece",
    ["a://b:", "a", "eyJaaaaaaaa-", "/*", "'\\", "aes_encrypt(", "password=", "?sig", "'",
     "jdbc:oracle:a:", "-----BEGIN PRIVATE KEY-----", '"password":', "://", "s3a://", "bearer ",
     "aes_encrypt(()", "secret_", "a=1&"],
)  # fmt: skip
def test_the_time_grows_with_the_text_and_no_faster(piece: str) -> None:
    """A definition has a million characters at most, chosen by whoever sends it."""

    def took(characters: int) -> float:
        text = piece * (characters // len(piece))
        began = time.process_time()
        masked(text)
        masked_sql(text)
        return time.process_time() - began

    assert took(200_000) < 2  # a quadratic one takes minutes
