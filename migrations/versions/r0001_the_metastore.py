"""The first tables: caches, runs, snapshots, joins, grants, leases and decisions."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision: str = "0001"
down_revision: str | None = None
branch_labels: str | None = None
depends_on: str | None = None


def upgrade() -> None:
    """Create the tables, and the counter that sessions poll."""
    _create_caches()
    _create_record_preserving_joins()
    _create_registry_revision()
    _create_rewrite_decisions()
    _create_commit_numbers()
    _create_grants()
    _create_grouping_sets()
    _create_leases()
    _create_refresh_runs()
    _create_snapshot_tables()
    op.execute("INSERT INTO registry_revision (id, revision) VALUES (1, 0)")


def downgrade() -> None:
    """Drop all of it."""
    op.drop_table("snapshot_tables")
    op.drop_table("refresh_runs")
    op.drop_table("leases")
    op.drop_table("grouping_sets")
    op.drop_table("grants")
    op.drop_table("commit_numbers")
    op.drop_table("rewrite_decisions")
    op.drop_table("registry_revision")
    op.drop_table("record_preserving_joins")
    op.drop_table("caches")


def _create_caches() -> None:
    op.create_table(
        "caches",
        sa.Column("id", sa.String(length=32), nullable=False),
        sa.Column("namespace", sa.Text(), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("namespace_key", sa.Text(), nullable=False),
        sa.Column("name_key", sa.Text(), nullable=False),
        sa.Column("comment", sa.Text(), nullable=True),
        sa.Column("definition", sa.Text(), nullable=False),
        sa.Column("definition_hash", sa.Text(), nullable=False),
        sa.Column("context", sa.JSON(), nullable=False),
        sa.Column("settings", sa.JSON(), nullable=False),
        sa.Column("plan", sa.JSON(), nullable=True),
        sa.Column("plan_version", sa.Text(), nullable=True),
        sa.Column("columns", sa.JSON(), nullable=False),
        sa.Column("partition_by", sa.JSON(), nullable=False),
        sa.Column("cluster_by", sa.JSON(), nullable=False),
        sa.Column("location", sa.Text(), nullable=False),
        sa.Column("properties", sa.JSON(), nullable=False),
        sa.Column("refresh_trigger", sa.JSON(), nullable=False),
        sa.Column("refresh_mode", sa.String(length=32), nullable=False),
        sa.Column("freshness", sa.String(length=32), nullable=False),
        sa.Column("max_staleness_seconds", sa.BigInteger(), nullable=True),
        sa.Column("rewrite_enabled", sa.Boolean(), nullable=False),
        sa.Column("paused", sa.Boolean(), nullable=False),
        sa.Column("narrowed", sa.Boolean(), nullable=False),
        sa.Column("owner", sa.Text(), nullable=True),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("updated_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("dropped_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("version", sa.Integer(), nullable=False),
        sa.Column("published_refresh_id", sa.String(length=32), nullable=True),
        sa.Column("revision", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_caches")),
    )
    op.create_index("ix_caches_revision", "caches", ["revision"], unique=False)
    op.create_index(
        "uq_caches_live_name",
        "caches",
        ["namespace_key", "name_key"],
        unique=True,
        sqlite_where=sa.text("dropped_at IS NULL"),
        postgresql_where=sa.text("dropped_at IS NULL"),
    )


def _create_record_preserving_joins() -> None:
    op.create_table(
        "record_preserving_joins",
        sa.Column("id", sa.String(length=32), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("name_key", sa.Text(), nullable=False),
        sa.Column("definition", sa.Text(), nullable=False),
        sa.Column("left", sa.JSON(), nullable=False),
        sa.Column("right", sa.JSON(), nullable=False),
        sa.Column("keys", sa.JSON(), nullable=False),
        sa.Column("validated", sa.Boolean(), nullable=False),
        sa.Column("state", sa.String(length=16), nullable=False),
        sa.Column("message", sa.Text(), nullable=True),
        sa.Column("validated_versions", sa.JSON(), nullable=False),
        sa.Column("validated_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_record_preserving_joins")),
        sa.UniqueConstraint("name_key", name=op.f("uq_record_preserving_joins_name_key")),
    )


def _create_registry_revision() -> None:
    op.create_table(
        "registry_revision",
        sa.Column("id", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("revision", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_registry_revision")),
    )


def _create_rewrite_decisions() -> None:
    op.create_table(
        "rewrite_decisions",
        sa.Column(
            "id",
            sa.BigInteger().with_variant(sa.Integer(), "sqlite"),
            sa.Identity(always=False),
            nullable=False,
        ),
        sa.Column("at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("session_id", sa.Text(), nullable=False),
        sa.Column("query_hash", sa.Text(), nullable=False),
        sa.Column("outcome", sa.String(length=16), nullable=False),
        sa.Column("caches", sa.JSON(), nullable=False),
        sa.Column("grouping_set", sa.Text(), nullable=True),
        sa.Column("reasons", sa.JSON(), nullable=False),
        sa.Column("millis", sa.Float(precision=53), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_rewrite_decisions")),
    )
    op.create_index(op.f("ix_rewrite_decisions_at"), "rewrite_decisions", ["at"], unique=False)


def _create_commit_numbers() -> None:
    op.create_table(
        "commit_numbers",
        sa.Column("cache_id", sa.String(length=32), nullable=False),
        sa.Column("last", sa.BigInteger(), nullable=False),
        sa.ForeignKeyConstraint(
            ["cache_id"], ["caches.id"], name=op.f("fk_commit_numbers_cache_id"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("cache_id", name=op.f("pk_commit_numbers")),
    )


def _create_grants() -> None:
    op.create_table(
        "grants",
        sa.Column("cache_id", sa.String(length=32), nullable=False),
        sa.Column("principal", sa.Text(), nullable=False),
        sa.ForeignKeyConstraint(
            ["cache_id"], ["caches.id"], name=op.f("fk_grants_cache_id"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("cache_id", "principal", name=op.f("pk_grants")),
    )


def _create_grouping_sets() -> None:
    op.create_table(
        "grouping_sets",
        sa.Column("cache_id", sa.String(length=32), nullable=False),
        sa.Column("grouping_id", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("ordinal", sa.Integer(), nullable=False),
        sa.Column("columns", sa.JSON(), nullable=False),
        sa.Column("rows", sa.BigInteger(), nullable=True),
        sa.Column("bytes", sa.BigInteger(), nullable=True),
        sa.ForeignKeyConstraint(
            ["cache_id"], ["caches.id"], name=op.f("fk_grouping_sets_cache_id"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("cache_id", "grouping_id", name=op.f("pk_grouping_sets")),
    )


def _create_leases() -> None:
    op.create_table(
        "leases",
        sa.Column("cache_id", sa.String(length=32), nullable=False),
        sa.Column("holder", sa.Text(), nullable=True),
        sa.Column("token", sa.BigInteger(), nullable=False),
        sa.Column("expires_at", sa.DateTime(timezone=True), nullable=True),
        sa.ForeignKeyConstraint(
            ["cache_id"], ["caches.id"], name=op.f("fk_leases_cache_id"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("cache_id", name=op.f("pk_leases")),
    )


def _create_refresh_runs() -> None:
    op.create_table(
        "refresh_runs",
        sa.Column("id", sa.String(length=32), nullable=False),
        sa.Column("cache_id", sa.String(length=32), nullable=False),
        sa.Column("state", sa.String(length=16), nullable=False),
        sa.Column("mode", sa.String(length=32), nullable=False),
        sa.Column("reason", sa.Text(), nullable=False),
        sa.Column("holder", sa.Text(), nullable=False),
        sa.Column("fencing_token", sa.BigInteger(), nullable=False),
        sa.Column("commit_number", sa.BigInteger(), nullable=True),
        sa.Column("parent_version", sa.BigInteger(), nullable=True),
        sa.Column("cache_version", sa.BigInteger(), nullable=True),
        sa.Column("started_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("finished_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("rows", sa.BigInteger(), nullable=True),
        sa.Column("bytes", sa.BigInteger(), nullable=True),
        sa.Column("error", sa.Text(), nullable=True),
        sa.Column("stages", sa.JSON(), nullable=False),
        sa.Column("facts", sa.JSON(), nullable=False),
        sa.Column("plan", sa.JSON(), nullable=True),
        sa.ForeignKeyConstraint(
            ["cache_id"], ["caches.id"], name=op.f("fk_refresh_runs_cache_id"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_refresh_runs")),
    )
    op.create_index(
        op.f("ix_refresh_runs_cache_id_started_at"),
        "refresh_runs",
        ["cache_id", "started_at"],
        unique=False,
    )


def _create_snapshot_tables() -> None:
    op.create_table(
        "snapshot_tables",
        sa.Column("refresh_id", sa.String(length=32), nullable=False),
        sa.Column("ordinal", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("location", sa.Text(), nullable=False),
        sa.Column("table_id", sa.Text(), nullable=True),
        sa.Column("version", sa.BigInteger(), nullable=True),
        sa.Column("commit_timestamp_ms", sa.BigInteger(), nullable=True),
        sa.ForeignKeyConstraint(
            ["refresh_id"],
            ["refresh_runs.id"],
            name=op.f("fk_snapshot_tables_refresh_id"),
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("refresh_id", "ordinal", name=op.f("pk_snapshot_tables")),
    )
