"""The unchanged job, replayed with every wait computed anew, takes as long as was recorded."""

from pathlib import Path

import pytest
from fleetprof_analyzer.capture.folder import SeveralJobs
from fleetprof_analyzer.capture.replayed.reading import read_folder
from fleetprof_analyzer.whatif.prediction import measure_quality
from fleetprof_analyzer.whatif.replay.job import read_job
from harness.repository import ROOT
from harness.traces.simulated.cases import draw_simulated

SHARED = ROOT.parent / "shared" / "traces"
REAL = ["dlrm_v100_8ranks", "df_index_v100", "gpu_only_mi210", "inference_h100_mi300/h100_falconsai.json.gz",
        "inference_h100_mi300/mi300_falconsai.json.gz", "mi250_amd", "nccl_a100",
        *(f"resnet50_v100_old/{one}worker0{two}pt.trace.json.gz"
          for one, two in (("", "."), ("d3fb40.", "."), ("", ".1623143089861."), ("", ".1623143566756."))),
        "sampled_2of128"]  # fmt: skip
LAYOUTS = ["ddp", "tp", "fsdp", "hsdp", "launch", "pipeline", "sparse", "experts_fsdp", "batched"]


@pytest.mark.skipif(not SHARED.is_dir(), reason="no published traces here")
@pytest.mark.parametrize("source", REAL)
def test_a_real_trace_takes_as_long_as_recorded(source: str) -> None:
    quality = measure_quality(read_folder(SHARED / source))
    assert quality.error == pytest.approx(0, abs=0.005)
    assert quality.worst_error < 0.01


@pytest.mark.skipif(not SHARED.is_dir(), reason="no published traces here")
@pytest.mark.parametrize("kind", ["shapes", "full"])
def test_ranks_without_a_device_take_as_long_as_recorded(kind: str, tmp_path: Path) -> None:
    for trace in (SHARED / "ddp4_gloo_cpu").glob(f"*{kind}*"):
        (tmp_path / trace.name).symlink_to(trace)
    assert measure_quality(read_folder(tmp_path)).error == pytest.approx(0, abs=0.005)


@pytest.mark.parametrize("doubled", [1, 2])
def test_two_recordings_of_a_job_are_not_one_job(tmp_path: Path, doubled: int) -> None:
    documents = list(draw_simulated("ddp", "none", 2).job.documents())[:2]
    for rank, document in [*enumerate(documents), *list(enumerate(documents))[:doubled]]:
        folder = tmp_path / str(len(list(tmp_path.rglob("*.json"))) // 2)
        folder.mkdir(exist_ok=True)
        (folder / f"rank{rank}.json").write_bytes(document)
    with pytest.raises(SeveralJobs, match="several recordings"):
        read_folder(tmp_path)


@pytest.mark.parametrize("layout", LAYOUTS)
def test_a_simulated_job_takes_as_long_as_recorded(layout: str) -> None:
    case = draw_simulated(layout, "none", 2)
    quality = measure_quality(read_job(list(enumerate(case.job.traces()))))
    assert quality.error == pytest.approx(0, abs=0.005)
    assert quality.worst_error < 0.01
    assert quality.recorded_ns == pytest.approx(1000 * case.job.iteration_us, rel=0.01)
