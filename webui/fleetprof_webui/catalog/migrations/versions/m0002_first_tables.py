"""The catalog's first tables."""

from collections.abc import Sequence

import sqlalchemy as sa
from alembic import op

# A catalog of both migrations that this one replaces is at 0002 already.
revision: str = "0002"
down_revision: str | None = None
branch_labels: Sequence[str] | None = None
depends_on: Sequence[str] | None = None


def upgrade() -> None:
    """Makes the first tables."""
    op.create_table(
        "workloads",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("namespace", sa.String(length=128), nullable=False),
        sa.Column("kind", sa.String(length=64), nullable=False),
        sa.Column("name", sa.String(length=400), nullable=False),
        sa.Column("captures", sa.Integer(), nullable=False),
        sa.Column("last_request_id", sa.Integer(), nullable=False),
        sa.Column("last_unix_ns", sa.BigInteger(), nullable=False),
        sa.Column("gpu", sa.String(length=128), nullable=False),
        sa.Column("top_finding", sa.String(length=64), nullable=False),
        sa.Column("rank_count", sa.Integer(), nullable=False),
        sa.Column("busy_permille", sa.Integer(), nullable=False),
        sa.Column("exposed_communication_permille", sa.Integer(), nullable=False),
        sa.Column("iteration_ns", sa.BigInteger(), nullable=False),
        sa.Column("power_mw", sa.BigInteger(), nullable=False),
        sa.Column("gain_permille", sa.Integer(), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_workloads")),
        sa.UniqueConstraint("namespace", "kind", "name", name=op.f("uq_workloads_namespace_kind_name")),
    )
    with op.batch_alter_table("workloads", schema=None) as batch_op:
        batch_op.create_index("ix_workloads_facets", ["namespace", "kind", "gpu", "top_finding"], unique=False)
        batch_op.create_index(batch_op.f("ix_workloads_busy_permille_id"), ["busy_permille", "id"], unique=False)
        batch_op.create_index(
            batch_op.f("ix_workloads_exposed_communication_permille_id"),
            ["exposed_communication_permille", "id"],
            unique=False,
        )
        batch_op.create_index(batch_op.f("ix_workloads_gain_permille_id"), ["gain_permille", "id"], unique=False)
        batch_op.create_index(batch_op.f("ix_workloads_iteration_ns_id"), ["iteration_ns", "id"], unique=False)
        batch_op.create_index(batch_op.f("ix_workloads_last_unix_ns_id"), ["last_unix_ns", "id"], unique=False)
        batch_op.create_index(batch_op.f("ix_workloads_name_id"), ["name", "id"], unique=False)
        batch_op.create_index(batch_op.f("ix_workloads_power_mw_id"), ["power_mw", "id"], unique=False)
        batch_op.create_index(batch_op.f("ix_workloads_rank_count_id"), ["rank_count", "id"], unique=False)

    op.create_table(
        "requests",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("namespace", sa.String(length=128), nullable=False),
        sa.Column("uid", sa.String(length=128), nullable=False),
        sa.Column("workload_id", sa.Integer(), nullable=False),
        sa.Column("version", sa.String(length=200), nullable=False),
        sa.Column("name", sa.String(length=253), nullable=False),
        sa.Column("requester", sa.String(length=253), nullable=False),
        sa.Column("state", sa.String(length=64), nullable=False),
        sa.Column("message", sa.String(length=1024), nullable=False),
        sa.Column("finished", sa.Boolean(), nullable=False),
        sa.Column("submitted_unix_ns", sa.BigInteger(), nullable=False),
        sa.Column("completed_unix_ns", sa.BigInteger(), nullable=False),
        sa.Column("targeted", sa.Integer(), nullable=False),
        sa.Column("armed", sa.Integer(), nullable=False),
        sa.Column("captured", sa.Integer(), nullable=False),
        sa.Column("uploaded", sa.Integer(), nullable=False),
        sa.Column("failed", sa.Integer(), nullable=False),
        sa.Column("has_report", sa.Boolean(), nullable=False),
        sa.Column("report_version", sa.String(length=64), nullable=False),
        sa.Column("problem", sa.String(length=512), nullable=False),
        sa.ForeignKeyConstraint(["workload_id"], ["workloads.id"], name=op.f("fk_requests_workload_id_workloads")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_requests")),
        sa.UniqueConstraint("namespace", "uid", name=op.f("uq_requests_namespace_uid")),
    )
    with op.batch_alter_table("requests", schema=None) as batch_op:
        batch_op.create_index("ix_requests_facets", ["namespace", "state"], unique=False)
        batch_op.create_index(
            batch_op.f("ix_requests_namespace_submitted_unix_ns_id"),
            ["namespace", "submitted_unix_ns", "id"],
            unique=False,
        )
        batch_op.create_index(batch_op.f("ix_requests_name_id"), ["name", "id"], unique=False)
        batch_op.create_index(batch_op.f("ix_requests_state_id"), ["state", "id"], unique=False)
        batch_op.create_index(batch_op.f("ix_requests_submitted_unix_ns_id"), ["submitted_unix_ns", "id"], unique=False)
        batch_op.create_index(
            batch_op.f("ix_requests_workload_id_submitted_unix_ns_id"),
            ["workload_id", "submitted_unix_ns", "id"],
            unique=False,
        )

    op.create_table(
        "findings",
        sa.Column("request_id", sa.Integer(), nullable=False),
        sa.Column("position", sa.Integer(), nullable=False),
        sa.Column("kind", sa.String(length=64), nullable=False),
        sa.Column("gain_permille", sa.Integer(), nullable=False),
        sa.Column("message", sa.String(length=1024), nullable=False),
        sa.ForeignKeyConstraint(
            ["request_id"], ["requests.id"], name=op.f("fk_findings_request_id_requests"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("request_id", "position", name=op.f("pk_findings")),
    )
    with op.batch_alter_table("findings", schema=None) as batch_op:
        batch_op.create_index(batch_op.f("ix_findings_kind_request_id"), ["kind", "request_id"], unique=False)

    op.create_table(
        "ranks",
        sa.Column("request_id", sa.Integer(), nullable=False),
        sa.Column("position", sa.Integer(), nullable=False),
        sa.Column("rank", sa.Integer(), nullable=False),
        sa.Column("host_name", sa.String(length=253), nullable=False),
        sa.Column("span_ns", sa.BigInteger(), nullable=False),
        sa.Column("compute_ns", sa.BigInteger(), nullable=False),
        sa.Column("exposed_communication_ns", sa.BigInteger(), nullable=False),
        sa.Column("exposed_memory_ns", sa.BigInteger(), nullable=False),
        sa.Column("idle_ns", sa.BigInteger(), nullable=False),
        sa.Column("lateness_ns", sa.BigInteger(), nullable=False),
        sa.ForeignKeyConstraint(
            ["request_id"], ["requests.id"], name=op.f("fk_ranks_request_id_requests"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("request_id", "position", name=op.f("pk_ranks")),
    )
    with op.batch_alter_table("ranks", schema=None) as batch_op:
        batch_op.create_index(batch_op.f("ix_ranks_host_name_request_id"), ["host_name", "request_id"], unique=False)

    op.create_table(
        "reports",
        sa.Column("request_id", sa.Integer(), nullable=False),
        sa.Column("kind", sa.String(length=8), nullable=False),
        sa.Column("gpu", sa.String(length=128), nullable=False),
        sa.Column("torch_version", sa.String(length=64), nullable=False),
        sa.Column("rank_count", sa.Integer(), nullable=False),
        sa.Column("iteration_ns", sa.BigInteger(), nullable=False),
        sa.Column("span_ns", sa.BigInteger(), nullable=False),
        sa.Column("compute_ns", sa.BigInteger(), nullable=False),
        sa.Column("overlapped_communication_ns", sa.BigInteger(), nullable=False),
        sa.Column("exposed_communication_ns", sa.BigInteger(), nullable=False),
        sa.Column("exposed_memory_ns", sa.BigInteger(), nullable=False),
        sa.Column("idle_ns", sa.BigInteger(), nullable=False),
        sa.Column("busy_permille", sa.Integer(), nullable=False),
        sa.Column("exposed_communication_permille", sa.Integer(), nullable=False),
        sa.Column("power_mw", sa.BigInteger(), nullable=False),
        sa.Column("verdict", sa.String(length=32), nullable=False),
        sa.Column("stragglers", sa.String(length=128), nullable=False),
        sa.Column("gain_permille", sa.Integer(), nullable=False),
        sa.Column("top_finding", sa.String(length=64), nullable=False),
        sa.Column("sentence", sa.Text(), nullable=False),
        sa.ForeignKeyConstraint(
            ["request_id"], ["requests.id"], name=op.f("fk_reports_request_id_requests"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("request_id", name=op.f("pk_reports")),
    )

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


def downgrade() -> None:
    """Removes all tables."""
    op.drop_table("labels")
    op.drop_table("reports")
    with op.batch_alter_table("ranks", schema=None) as batch_op:
        batch_op.drop_index(batch_op.f("ix_ranks_host_name_request_id"))

    op.drop_table("ranks")
    with op.batch_alter_table("findings", schema=None) as batch_op:
        batch_op.drop_index(batch_op.f("ix_findings_kind_request_id"))

    op.drop_table("findings")
    with op.batch_alter_table("requests", schema=None) as batch_op:
        batch_op.drop_index(batch_op.f("ix_requests_workload_id_submitted_unix_ns_id"))
        batch_op.drop_index(batch_op.f("ix_requests_submitted_unix_ns_id"))
        batch_op.drop_index(batch_op.f("ix_requests_state_id"))
        batch_op.drop_index(batch_op.f("ix_requests_name_id"))
        batch_op.drop_index(batch_op.f("ix_requests_namespace_submitted_unix_ns_id"))
        batch_op.drop_index("ix_requests_facets")

    op.drop_table("requests")
    with op.batch_alter_table("workloads", schema=None) as batch_op:
        batch_op.drop_index(batch_op.f("ix_workloads_rank_count_id"))
        batch_op.drop_index(batch_op.f("ix_workloads_power_mw_id"))
        batch_op.drop_index(batch_op.f("ix_workloads_name_id"))
        batch_op.drop_index(batch_op.f("ix_workloads_last_unix_ns_id"))
        batch_op.drop_index(batch_op.f("ix_workloads_iteration_ns_id"))
        batch_op.drop_index(batch_op.f("ix_workloads_gain_permille_id"))
        batch_op.drop_index(batch_op.f("ix_workloads_exposed_communication_permille_id"))
        batch_op.drop_index(batch_op.f("ix_workloads_busy_permille_id"))
        batch_op.drop_index("ix_workloads_facets")

    op.drop_table("workloads")
