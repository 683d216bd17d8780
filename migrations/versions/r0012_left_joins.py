"""Record-preserving joins that are LEFT joins: all that were declared before are INNER ones."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision: str = "0012"
down_revision: str | None = "0011"
branch_labels: str | None = None
depends_on: str | None = None

_TABLE = "record_preserving_joins"
_COLUMN = "finds_each"


def upgrade() -> None:
    """Add the column."""
    op.add_column(
        _TABLE, sa.Column(_COLUMN, sa.Boolean(), server_default=sa.true(), nullable=False)
    )


def downgrade() -> None:
    """Drop it, and the joins that an older release would take for INNER ones."""
    op.execute(sa.text(f"DELETE FROM {_TABLE} WHERE NOT {_COLUMN}"))
    op.drop_column(_TABLE, _COLUMN)
