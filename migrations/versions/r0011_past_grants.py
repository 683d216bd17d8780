"""Until when a principal could be answered from a cache: decisions made before are no forgeries."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision: str = "0011"
down_revision: str | None = "0010"
branch_labels: str | None = None
depends_on: str | None = None

_TABLE = "past_grants"


def upgrade() -> None:
    """Add the table."""
    op.create_table(
        _TABLE,
        sa.Column("cache_id", sa.String(32), nullable=False),
        sa.Column("principal", sa.Text(), nullable=False),
        sa.Column("until", sa.DateTime(timezone=True), nullable=False),
        sa.ForeignKeyConstraint(
            ["cache_id"], ["caches.id"], name=op.f("fk_past_grants_cache_id"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("cache_id", "principal", name=op.f("pk_past_grants")),
    )


def downgrade() -> None:
    """Drop it."""
    op.drop_table(_TABLE)
