"""Refreshes that wait for a worker, and what the scheduler remembers of each cache."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision: str = "0002"
down_revision: str | None = "0001"
branch_labels: str | None = None
depends_on: str | None = None


def upgrade() -> None:
    """Create the queue and the schedules, one for each cache that there is."""
    _create_refresh_requests()
    _create_schedules()
    op.execute("INSERT INTO schedules (cache_id, epoch, failures) SELECT id, 0, 0 FROM caches")
    with op.batch_alter_table("refresh_runs") as runs:
        runs.add_column(
            sa.Column("origin", sa.String(16), server_default="STATEMENT", nullable=False)
        )
        runs.add_column(sa.Column("requested_by", sa.Text(), nullable=True))
        runs.add_column(sa.Column("requested_at", sa.DateTime(timezone=True), nullable=True))
        runs.add_column(
            sa.Column("cancel_requested", sa.Boolean(), server_default=sa.false(), nullable=False)
        )


def downgrade() -> None:
    """Forget both; refreshes that wait are lost, as are the origins of runs."""
    with op.batch_alter_table("refresh_runs") as runs:
        runs.drop_column("cancel_requested")
        runs.drop_column("requested_at")
        runs.drop_column("requested_by")
        runs.drop_column("origin")
    op.drop_table("schedules")
    op.drop_table("refresh_requests")


def _create_refresh_requests() -> None:
    op.create_table(
        "refresh_requests",
        sa.Column("id", sa.String(length=32), nullable=False),
        sa.Column("cache_id", sa.String(length=32), nullable=False),
        sa.Column("mode", sa.String(length=32), nullable=True),
        sa.Column("origin", sa.String(length=16), nullable=False),
        sa.Column("why", sa.Text(), nullable=False),
        sa.Column("requested_by", sa.Text(), nullable=True),
        sa.Column("requested_at", sa.DateTime(timezone=True), nullable=False),
        sa.ForeignKeyConstraint(
            ["cache_id"], ["caches.id"], name=op.f("fk_refresh_requests_cache_id"),
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_refresh_requests")),
        sa.UniqueConstraint("cache_id", name=op.f("uq_refresh_requests_cache_id")),
    )  # fmt: skip
    op.create_index(op.f("ix_refresh_requests_requested_at"), "refresh_requests", ["requested_at"])


def _create_schedules() -> None:
    op.create_table(
        "schedules",
        sa.Column("cache_id", sa.String(length=32), nullable=False),
        sa.Column("epoch", sa.BigInteger(), nullable=False),
        sa.Column("failures", sa.Integer(), nullable=False),
        sa.Column("retry_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("behind_since", sa.DateTime(timezone=True), nullable=True),
        sa.Column("paused_because", sa.Text(), nullable=True),
        sa.ForeignKeyConstraint(
            ["cache_id"], ["caches.id"], name=op.f("fk_schedules_cache_id"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("cache_id", name=op.f("pk_schedules")),
    )
