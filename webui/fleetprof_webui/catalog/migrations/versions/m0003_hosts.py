"""Hosts in place of ranks and findings, of which nobody asked for more."""

from collections.abc import Sequence
from typing import Any

import sqlalchemy as sa
from alembic import op

revision: str = "0003"
down_revision: str | None = "0002"
branch_labels: Sequence[str] | None = None
depends_on: Sequence[str] | None = None


def upgrade() -> None:
    """Removes both tables, and makes that of hosts; the next look at the store fills it."""
    op.drop_table("findings")
    op.drop_table("ranks")
    op.create_table(
        "hosts",
        sa.Column("request_id", sa.Integer(), nullable=False),
        sa.Column("host_name", sa.String(length=253), nullable=False),
        sa.ForeignKeyConstraint(
            ["request_id"], ["requests.id"], name=op.f("fk_hosts_request_id_requests"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("request_id", "host_name", name=op.f("pk_hosts")),
    )
    with op.batch_alter_table("hosts", schema=None) as batch_op:
        batch_op.create_index(batch_op.f("ix_hosts_host_name_request_id"), ["host_name", "request_id"], unique=False)


def downgrade() -> None:
    """Makes both tables again, empty."""
    op.drop_table("hosts")
    numbers = ("span_ns", "compute_ns", "exposed_communication_ns", "exposed_memory_ns", "idle_ns", "lateness_ns")
    of_ranks: list[sa.Column[Any]] = [
        sa.Column("rank", sa.Integer(), nullable=False),
        sa.Column("host_name", sa.String(253), nullable=False),
    ]
    of_ranks += [sa.Column(name, sa.BigInteger(), nullable=False) for name in numbers]
    of_findings: list[sa.Column[Any]] = [
        sa.Column("kind", sa.String(64), nullable=False),
        sa.Column("gain_permille", sa.Integer(), nullable=False),
        sa.Column("message", sa.String(1024), nullable=False),
    ]
    for table, columns, indexed in (("ranks", of_ranks, "host_name"), ("findings", of_findings, "kind")):
        op.create_table(
            table,
            sa.Column("request_id", sa.Integer(), nullable=False),
            sa.Column("position", sa.Integer(), nullable=False),
            *columns,
            sa.ForeignKeyConstraint(
                ["request_id"], ["requests.id"], name=op.f(f"fk_{table}_request_id_requests"), ondelete="CASCADE"
            ),
            sa.PrimaryKeyConstraint("request_id", "position", name=op.f(f"pk_{table}")),
        )
        with op.batch_alter_table(table, schema=None) as batch_op:
            batch_op.create_index(batch_op.f(f"ix_{table}_{indexed}_request_id"), [indexed, "request_id"])
