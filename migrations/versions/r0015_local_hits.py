"""Whether the rows of a hit were computed while it was planned, without a Spark job."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision: str = "0015"
down_revision: str | None = "0014"
branch_labels: str | None = None
depends_on: str | None = None

_DECISIONS = "rewrite_decisions"
_COLUMN = "local"


def upgrade() -> None:
    """Add the column; none of the earlier decisions was."""
    op.add_column(
        _DECISIONS, sa.Column(_COLUMN, sa.Boolean(), server_default=sa.false(), nullable=False)
    )


def downgrade() -> None:
    """Without the column."""
    with op.batch_alter_table(_DECISIONS) as decisions:
        decisions.drop_column(_COLUMN)
