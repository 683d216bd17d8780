"""Statements that the service runs, and the tables that it may read for a principal."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision: str = "0016"
down_revision: str | None = "0015"
branch_labels: str | None = None
depends_on: str | None = None

_STATEMENTS = "statements"
_GRANTS = "select_grants"
_INDEXED = (
    ["principal", "created_at"],
    ["state", "created_at"],
    ["state", "lease_until"],
    ["state", "expires_at"],
    ["state", "finished_at"],
)


def upgrade() -> None:
    """Create both tables: there is no statement yet, and nobody is granted anything."""
    op.create_table(
        _STATEMENTS,
        sa.Column("id", sa.String(length=32), nullable=False),
        sa.Column("principal", sa.Text(), nullable=False),
        sa.Column("idempotency_key", sa.String(length=128), nullable=True),
        sa.Column("request", sa.String(length=64), nullable=False),
        sa.Column("text", sa.Text(), nullable=False),
        sa.Column("catalog", sa.Text(), nullable=True),
        sa.Column("schema_name", sa.Text(), nullable=True),
        sa.Column("settings", sa.JSON(), nullable=False),
        sa.Column("options", sa.JSON(), nullable=False),
        sa.Column("state", sa.String(length=16), nullable=False),
        sa.Column("reads_only", sa.Boolean(), nullable=True),
        sa.Column("handed_over", sa.Boolean(), nullable=False),
        sa.Column("cancel_requested", sa.Boolean(), nullable=False),
        sa.Column("cancel_requested_by", sa.Text(), nullable=True),
        sa.Column("holder", sa.Text(), nullable=True),
        sa.Column("fencing_token", sa.BigInteger(), nullable=False),
        sa.Column("lease_until", sa.DateTime(timezone=True), nullable=True),
        sa.Column("attempts", sa.Integer(), nullable=False),
        sa.Column("secret", sa.String(length=64), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("started_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("finished_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("timeout_seconds", sa.Float(precision=53), nullable=False),
        sa.Column("keep_seconds", sa.Float(precision=53), nullable=False),
        sa.Column("expires_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("read_until", sa.DateTime(timezone=True), nullable=True),
        sa.Column("error_code", sa.String(length=64), nullable=True),
        sa.Column("error", sa.Text(), nullable=True),
        sa.Column("result", sa.JSON(), nullable=True),
        sa.Column("bytes", sa.BigInteger(), nullable=True),
        sa.Column("hits", sa.JSON(), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_statements")),
        sa.UniqueConstraint(
            "principal", "idempotency_key", name=op.f("uq_statements_principal_idempotency_key")
        ),
    )
    for columns in _INDEXED:
        op.create_index(op.f(f"ix_{_STATEMENTS}_{'_'.join(columns)}"), _STATEMENTS, columns)
    op.create_table(
        _GRANTS,
        sa.Column("place", sa.Text(), nullable=False),
        sa.Column("principal", sa.Text(), nullable=False),
        sa.Column("table_name", sa.Text(), nullable=False),
        sa.Column("granted_at", sa.DateTime(timezone=True), nullable=False),
        sa.PrimaryKeyConstraint("place", "principal", name=op.f("pk_select_grants")),
    )


def downgrade() -> None:
    """Forget both: results that were not fetched are lost, their files stay where they are."""
    op.drop_table(_GRANTS)
    for columns in reversed(_INDEXED):
        op.drop_index(op.f(f"ix_{_STATEMENTS}_{'_'.join(columns)}"), table_name=_STATEMENTS)
    op.drop_table(_STATEMENTS)
