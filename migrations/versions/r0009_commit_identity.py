"""A snapshot's base tables are known by their commits too, and it holds what their columns were."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision: str = "0009"
down_revision: str | None = "0008"
branch_labels: str | None = None
depends_on: str | None = None

_TABLE = "snapshot_tables"
_COLUMNS = ("commit_id", "columns")


def upgrade() -> None:
    """Add them; what was stored before has none."""
    for name in _COLUMNS:
        op.add_column(_TABLE, sa.Column(name, sa.Text(), nullable=True))


def downgrade() -> None:
    """Drop them."""
    for name in reversed(_COLUMNS):
        op.drop_column(_TABLE, name)
