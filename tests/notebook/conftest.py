"""A folder with the traces of a job: four ranks in data parallelism, the GPU of rank 2 slower than the others."""

from pathlib import Path

import numpy as np
import pytest
from harness.traces.planted.jobs import PlantedJob
from harness.traces.planted.shapes import JobShape, PlantedFault
from harness.traces.planted.traces_of_jobs import Clarity, json_of, traces_of


@pytest.fixture(scope="session")
def traces(tmp_path_factory: pytest.TempPathFactory) -> Path:
    shape = JobShape(dp=4, layers=2)
    device = np.ones((shape.ranks, shape.iterations))
    device[2] = 1.3
    folder = tmp_path_factory.mktemp("job") / "traces"
    folder.mkdir()
    job = PlantedJob(shape, PlantedFault("slow_gpu", 2, device=device), seed=1)
    for trace in traces_of(job, Clarity(), 1):
        (folder / f"rank{trace.metadata.rank}.json").write_text(json_of(trace))
    return folder
