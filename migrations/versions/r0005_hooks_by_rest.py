"""What remote sessions need: which registry a revision counts in, and whose a decision was."""

from __future__ import annotations

import uuid

import sqlalchemy as sa
from alembic import op

revision: str = "0005"
down_revision: str | None = "0004"
branch_labels: str | None = None
depends_on: str | None = None


def upgrade() -> None:
    """Name the registry, and make room for the principals of decisions."""
    with op.batch_alter_table("registry_revision") as registry:
        registry.add_column(sa.Column("epoch", sa.String(32), server_default="", nullable=False))
    op.execute(
        sa.text("UPDATE registry_revision SET epoch = :epoch").bindparams(epoch=uuid.uuid4().hex)
    )
    with op.batch_alter_table("rewrite_decisions") as decisions:
        decisions.add_column(sa.Column("principal", sa.Text(), nullable=True))
        decisions.add_column(sa.Column("batch", sa.String(64), nullable=True))
        decisions.add_column(sa.Column("position", sa.Integer(), nullable=True))
        decisions.create_unique_constraint(
            op.f("uq_rewrite_decisions_batch_position"), ["batch", "position"]
        )


def downgrade() -> None:
    """Forget both."""
    with op.batch_alter_table("rewrite_decisions") as decisions:
        decisions.drop_constraint(op.f("uq_rewrite_decisions_batch_position"), type_="unique")
        decisions.drop_column("position")
        decisions.drop_column("batch")
        decisions.drop_column("principal")
    with op.batch_alter_table("registry_revision") as registry:
        registry.drop_column("epoch")
