"""By which columns of its cache the rows of a hit were asked for, without any value."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision: str = "0017"
down_revision: str | None = "0016"
branch_labels: str | None = None
depends_on: str | None = None

_DECISIONS = "rewrite_decisions"
_COLUMN = "filters"


def upgrade() -> None:
    """Add the column; of earlier decisions nobody knows."""
    op.add_column(_DECISIONS, sa.Column(_COLUMN, sa.JSON(), nullable=True))


def downgrade() -> None:
    """Without the column."""
    with op.batch_alter_table(_DECISIONS) as decisions:
        decisions.drop_column(_COLUMN)
