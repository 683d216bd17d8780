"""Caches that paused since a base table was replaced or got other columns try again, and a place
may have a mark for each table that was restricted there."""

from __future__ import annotations

from datetime import UTC, datetime

import sqlalchemy as sa
from alembic import op

revision: str = "0013"
down_revision: str | None = "0012"
branch_labels: str | None = None
depends_on: str | None = None

_MARKS = "restricted_tables"
_ONE = "uq_restricted_tables_location"
_EACH = "uq_restricted_tables_location_table_id"
# What refreshes that this release can do failed with.
_CODES = ("BASE_COLUMN_CHANGED", "COLUMNS_CHANGED", "DEFINITION_BROKEN")


def upgrade() -> None:
    """Change the constraint, and let the caches try again at once."""
    with op.batch_alter_table(_MARKS) as marks:
        marks.drop_constraint(op.f(_ONE), type_="unique")
        marks.create_unique_constraint(op.f(_EACH), ["location", "table_id"])
    caches = sa.table(
        "caches", sa.column("id"), sa.column("paused"), sa.column("revision"), sa.column("version")
    )
    schedules = sa.table(
        "schedules",
        sa.column("cache_id"),
        sa.column("failures"),
        sa.column("retry_at", sa.DateTime(timezone=True)),
        sa.column("paused_because"),
    )
    registry = sa.table("registry_revision", sa.column("revision"))
    stopped = sa.or_(*(schedules.c.paused_because.contains(f"[{code}]") for code in _CODES))
    ids = list(op.get_bind().scalars(sa.select(schedules.c.cache_id).where(stopped)))
    if not ids:
        return
    op.execute(sa.update(registry).values(revision=registry.c.revision + 1))
    newest = op.get_bind().scalar(sa.select(registry.c.revision))
    for cache_id in ids:
        op.execute(
            sa.update(caches)
            .where(caches.c.id == cache_id)
            .values(paused=sa.false(), revision=newest, version=caches.c.version + 1)
        )
        op.execute(
            sa.update(schedules)
            .where(schedules.c.cache_id == cache_id)
            .values(failures=1, retry_at=datetime.now(UTC), paused_because=None)
        )


def downgrade() -> None:
    """One mark a place again: the one that was made first."""
    marks = sa.table(_MARKS, sa.column("id"), sa.column("location"), sa.column("restricted_at"))
    seen: set[str] = set()
    rows = op.get_bind().execute(
        sa.select(marks.c.id, marks.c.location).order_by(marks.c.restricted_at, marks.c.id)
    )
    for mark_id, location in rows.fetchall():
        if location in seen:
            op.execute(sa.delete(marks).where(marks.c.id == mark_id))
        seen.add(location)
    with op.batch_alter_table(_MARKS) as table:
        table.drop_constraint(op.f(_EACH), type_="unique")
        table.create_unique_constraint(op.f(_ONE), ["location"])
