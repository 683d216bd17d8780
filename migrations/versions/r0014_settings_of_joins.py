"""The settings under which a record-preserving join was validated: under others its tables may read
otherwise."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision: str = "0014"
down_revision: str | None = "0013"
branch_labels: str | None = None
depends_on: str | None = None

_JOINS = "record_preserving_joins"
_COLUMN = "validated_under"


def upgrade() -> None:
    """Add the column; under which settings earlier validations ran is not known."""
    op.add_column(_JOINS, sa.Column(_COLUMN, sa.JSON(), nullable=True))


def downgrade() -> None:
    """Without the column."""
    with op.batch_alter_table(_JOINS) as joins:
        joins.drop_column(_COLUMN)
