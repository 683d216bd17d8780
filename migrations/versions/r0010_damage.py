"""A cache remembers what is wrong with its files."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision: str = "0010"
down_revision: str | None = "0009"
branch_labels: str | None = None
depends_on: str | None = None


def upgrade() -> None:
    """Add what is known to be damaged: nothing yet."""
    op.add_column("caches", sa.Column("damaged", sa.Text(), nullable=True))


def downgrade() -> None:
    """Forget it: the next look finds it again."""
    op.drop_column("caches", "damaged")
