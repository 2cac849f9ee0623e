"""How far the ranks of a report differ, as a box plot per measure. Pure."""

from fleetprof_api.report.report import Report

from fleetprof_webui.models.report import BoxesOfKind, BoxPage, MeasureBox


def list_boxes(report: Report) -> BoxPage:
    """The boxes of a report, by kind of ranks."""
    return BoxPage(
        sections=[
            BoxesOfKind(
                kind=section.kind,
                boxes=[
                    MeasureBox(measure=table.measure, unit=table.unit, box=table.box)
                    for table in section.tables
                    if table.box is not None
                ],
            )
            for section in report.heterogeneity
        ]
    )
