"""What is known of the base tables, for those who match queries without a Spark."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision: str = "0007"
down_revision: str | None = "0006"
branch_labels: str | None = None
depends_on: str | None = None


def upgrade() -> None:
    """Create the table; refreshes fill it."""
    op.create_table(
        "base_tables",
        sa.Column("location", sa.Text(), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("table_id", sa.Text(), nullable=False),
        sa.Column("version", sa.BigInteger(), nullable=False),
        sa.Column("commit_timestamp_ms", sa.BigInteger(), nullable=False),
        sa.Column("columns", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("location", "name", name=op.f("pk_base_tables")),
    )


def downgrade() -> None:
    """Forget what was noted."""
    op.drop_table("base_tables")
