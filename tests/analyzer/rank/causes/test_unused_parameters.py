"""The search for unused parameters, by its own row; DistributedDataParallel's other rows are none."""

import pytest
from harness.traces.written_loop import WrittenLoop

MS = 1_000_000
SEARCH = "torch.distributed.ddp.reducer::search_unused_parameters"


@pytest.mark.parametrize(("name", "found"), [
    (SEARCH, [("unused_parameters", 12 * 2 * MS, 12)]),
    ("torch.distributed.ddp.reducer::copy_bucket_to_grad", []),
])  # fmt: skip
def test_the_row_tells(name: str, found: list[tuple[str, int, int]]) -> None:
    loop = WrittenLoop()
    for number in range(12):
        loop.add(name, 10 * number + 3, 2)
    assert [(one.cause, one.time_ns, one.iterations) for one in loop.causes()] == found
