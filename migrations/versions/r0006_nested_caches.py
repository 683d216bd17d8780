"""A cache may be defined over other caches."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision: str = "0006"
down_revision: str | None = "0005"
branch_labels: str | None = None
depends_on: str | None = None


def upgrade() -> None:
    """Add what a definition names."""
    op.add_column("caches", sa.Column("depends_on", sa.JSON(), nullable=True))


def downgrade() -> None:
    """Forget it: each cache stands for itself, as its stored plan does anyway."""
    op.drop_column("caches", "depends_on")
