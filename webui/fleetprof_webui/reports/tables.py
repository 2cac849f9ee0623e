"""Communication and launches of a report. Pure."""

from fleetprof_api.report.report import Report

from fleetprof_webui.models.tables import CommunicationPage, LaunchPage, RankLaunches


def list_communication(report: Report) -> CommunicationPage:
    """Collectives by kind, group and size."""
    return CommunicationPage(items=report.communication)


def list_launches(report: Report) -> LaunchPage:
    """The launches of each rank that has any, and the operators that launch most."""
    return LaunchPage(
        ranks=[
            RankLaunches(rank=rank.rank, source=rank.source, span_ns=rank.time_ns.span, launches=rank.launches)
            for rank in report.ranks
            if rank.launches is not None
        ],
        operators=report.launching_operators,
    )
