"""Every part of a gap counts for a cause of the report, and every cause is measured."""

from fleetprof_analyzer.rank.measures.idle.idle import FIELDS, GapPart
from fleetprof_api.report.idle_causes import IDLE_CAUSES, IdleCauses


def test_every_cause_of_the_report_is_made_of_parts_of_gaps() -> None:
    assert set(FIELDS) == set(GapPart), "name the fields of each GapPart in rank/measures/idle/idle.py:FIELDS"
    measured = {field for fields in FIELDS.values() for field in fields}
    odd = sorted(measured ^ set(IdleCauses.__struct_fields__))
    assert not odd, f"in one of IdleCauses and rank/measures/idle/idle.py:FIELDS only: {odd}"


def test_a_part_of_a_cause_counts_for_its_cause() -> None:
    for cause, *part in FIELDS.values():
        assert cause in IDLE_CAUSES
        assert all(one in IDLE_CAUSES[cause].parts for one in part)
