"""The last runs of each cache are found without looking at all of them."""

from __future__ import annotations

from alembic import op

revision: str = "0008"
down_revision: str | None = "0007"
branch_labels: str | None = None
depends_on: str | None = None

_TABLE = "refresh_runs"
_INDEXES = (("cache_id", "fencing_token"), ("cache_id", "state", "fencing_token"))


def upgrade() -> None:
    """Index them by what the scheduler asks."""
    for columns in _INDEXES:
        op.create_index(op.f(_name(columns)), _TABLE, list(columns))


def downgrade() -> None:
    """Drop the indexes."""
    for columns in _INDEXES:
        op.drop_index(op.f(_name(columns)), table_name=_TABLE)


def _name(columns: tuple[str, ...]) -> str:
    return f"ix_{_TABLE}_{'_'.join(columns)}"
