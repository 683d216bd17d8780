"""Restricted base tables."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision: str = "0004"
down_revision: str | None = "0003"
branch_labels: str | None = None
depends_on: str | None = None


def upgrade() -> None:
    """Create the table of marks."""
    op.create_table(
        "restricted_tables",
        sa.Column("id", sa.String(length=32), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("location", sa.Text(), nullable=False),
        sa.Column("table_id", sa.Text(), nullable=True),
        sa.Column("restricted_by", sa.Text(), nullable=False),
        sa.Column("restricted_at", sa.DateTime(timezone=True), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_restricted_tables")),
        sa.UniqueConstraint("location", name=op.f("uq_restricted_tables_location")),
    )


def downgrade() -> None:
    """Forget the marks: nothing is restricted any more."""
    op.drop_table("restricted_tables")
