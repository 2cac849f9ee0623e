"""Labels of workloads."""

from collections.abc import Sequence

import sqlalchemy as sa
from alembic import op

revision: str = "0002"
down_revision: str | None = "0001"
branch_labels: Sequence[str] | None = None
depends_on: Sequence[str] | None = None


def upgrade() -> None:
    """Adds the labels of workloads."""
    op.create_table(
        "labels",
        sa.Column("workload_id", sa.Integer(), nullable=False),
        sa.Column("label", sa.String(length=400), nullable=False),
        sa.ForeignKeyConstraint(
            ["workload_id"], ["workloads.id"], name=op.f("fk_labels_workload_id_workloads"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("workload_id", "label", name=op.f("pk_labels")),
    )
    with op.batch_alter_table("labels", schema=None) as batch_op:
        batch_op.create_index(batch_op.f("ix_labels_label_workload_id"), ["label", "workload_id"], unique=False)
    # What is there is read once more, for its labels.
    op.execute("UPDATE requests SET version = ''")


def downgrade() -> None:
    """To the version before."""
    op.drop_table("labels")
