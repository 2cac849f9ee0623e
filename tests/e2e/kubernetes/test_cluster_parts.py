"""The parts of the local test cluster that could harm a machine: whom they signal, and which addresses they take."""

import ipaddress
import os
import signal
import socket
import subprocess
from pathlib import Path

import pytest
from cluster import __main__ as cluster_command
from cluster.local import addresses, policy_engine, processes
from cluster.local.kept_images import KeptImages
from cluster.refusal import ClusterFailure
from harness.waiting import wait_until


def test_a_process_is_stopped_by_its_pid_file(tmp_path: Path) -> None:
    processes.start(tmp_path, "sleeper", ["sleep", "600"])
    assert processes.is_running(tmp_path, "sleeper")

    processes.stop(tmp_path, "sleeper")

    assert not processes.is_running(tmp_path, "sleeper")
    assert not (tmp_path / "sleeper.pid").exists()


def test_a_process_that_ignores_the_request_is_ended(tmp_path: Path) -> None:
    script = "trap '' TERM; echo ready; while :; do sleep 0.1; done"
    processes.start(tmp_path, "deaf", ["bash", "-c", script])
    processes.wait_for(lambda: "ready" in (tmp_path / "deaf.log").read_text(), "readiness", tmp_path, "deaf")

    processes.stop(tmp_path, "deaf", patience_s=0.2)

    assert not processes.is_running(tmp_path, "deaf")


def test_a_pid_that_was_given_to_somebody_else_is_left_alone(tmp_path: Path) -> None:
    somebody = subprocess.Popen(["sleep", "600"])
    try:
        (tmp_path / "mine.pid").write_text(f"{somebody.pid} 1\n")

        assert not processes.is_running(tmp_path, "mine")
        processes.stop(tmp_path, "mine")

        assert somebody.poll() is None
    finally:
        somebody.send_signal(signal.SIGKILL)
        somebody.wait(10)


def test_a_process_that_ends_before_it_is_ready_is_told_with_its_last_words(tmp_path: Path) -> None:
    processes.start(tmp_path, "broken", ["bash", "-c", "echo no such option; exit 1"])

    with pytest.raises(ClusterFailure, match="no such option"):
        processes.wait_for(lambda: False, "readiness", tmp_path, "broken")


def test_a_tree_of_processes_ends_as_a_whole() -> None:
    with subprocess.Popen(["bash", "-c", "sleep 598 & echo $!; wait"], stdout=subprocess.PIPE, text=True) as parent:
        assert parent.stdout is not None
        child = int(parent.stdout.readline())

        processes.kill_tree({parent.pid})

        parent.wait(10)
    wait_until(lambda: child not in processes.find("sleep", "598"), "the child's end")


@pytest.mark.skipif(not Path("/sbin/ip").exists() and not Path("/usr/sbin/ip").exists(), reason="needs iproute2")
def test_addresses_are_free_and_survive_a_file(tmp_path: Path) -> None:
    chosen = addresses.choose_addresses()

    assert len(set(chosen.ports.values())) == len(chosen.ports)
    for port in chosen.ports.values():
        with socket.socket() as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            probe.bind(("127.0.0.1", port))
    pods, services = ipaddress.ip_network(chosen.pods), ipaddress.ip_network(chosen.services)
    assert not pods.overlaps(services)
    assert ipaddress.ip_address(chosen.dns_service) in services
    chosen.save(tmp_path / "addresses.json")
    assert addresses.load_addresses(tmp_path / "addresses.json") == chosen
    assert os.listdir(tmp_path) == ["addresses.json"]


IMAGES = ("content.v1.content", "metadata.v1.bolt", "snapshotter.v1.overlayfs")


@pytest.fixture
def kept(tmp_path: Path) -> KeptImages:
    """The files that a cluster left that had one image loaded."""
    version = tmp_path / "containerd.version"
    version.write_text("2.4")
    kept = KeptImages(tmp_path / "kept", tmp_path / "loaded", version)
    kept.record.write_text("store 1\n")
    for name in (*IMAGES, "grpc.v1.cri"):
        file = tmp_path / f"first/io.containerd.{name}/file"
        file.parent.mkdir(parents=True)
        file.write_text(name)
    kept.put_away(tmp_path / "first")
    return kept


def test_the_next_cluster_has_the_images_of_one_that_ended_in_order(tmp_path: Path, kept: KeptImages) -> None:
    assert not kept.record.exists()

    kept.bring_back(tmp_path / "second")

    assert sorted(each.name for each in (tmp_path / "second").iterdir()) == [f"io.containerd.{name}" for name in IMAGES]
    assert (tmp_path / "second/io.containerd.metadata.v1.bolt/file").read_text() == "metadata.v1.bolt"
    assert kept.record.read_text() == "store 1\n"
    assert not kept.folder.exists(), "one that is killed leaves nothing to the next"


def test_another_containerd_gets_no_images_of_the_last_one(tmp_path: Path, kept: KeptImages) -> None:
    kept.version.write_text("2.5")

    kept.bring_back(tmp_path / "second")

    assert not (tmp_path / "second").exists()
    assert not kept.record.exists()
    assert not kept.folder.exists()


def test_a_cluster_without_images_leaves_none(tmp_path: Path) -> None:
    kept = KeptImages(tmp_path / "kept", tmp_path / "loaded", tmp_path / "containerd.version")

    kept.put_away(tmp_path / "first")

    assert not kept.folder.exists()


def test_whoever_starts_the_cluster_is_told_where_its_programs_are(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Running:
        kubeconfig = tmp_path / "kubeconfig"

    def described(path: str) -> list[str]:
        monkeypatch.setenv("PATH", path)
        return cluster_command.describe_use(Running())  # type: ignore[arg-type]

    monkeypatch.setattr(cluster_command, "BINARIES", tmp_path)
    for name in ("kubectl", "helm"):
        (tmp_path / name).touch(0o755)
    last = f"export KUBECONFIG={tmp_path}/kubeconfig"
    assert described("/nowhere") == [f"export PATH=$PATH:{tmp_path}  # has kubectl and helm", last]
    assert described(str(tmp_path)) == [last]


def test_of_an_engine_that_enforced_policies_nothing_stays_and_nothing_of_others_goes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rules = [
        "-P FORWARD ACCEPT",
        "-N KUBE-ROUTER-FORWARD",
        "-N KUBE-FORWARD",
        '-A FORWARD -m comment --comment "kube-router netpol" -j KUBE-ROUTER-FORWARD',
        "-A FORWARD -j KUBE-FORWARD",
    ]
    sets = ["KUBE-SRC-A", "KUBE-DST-B", "kube-router-local-ips", "inet6:KUBE-SRC-C", "KUBE-CLUSTER-IP", "other"]
    made: list[str] = []

    def run(*command: str) -> str:
        if command[-1] == "-S":
            return "\n".join(rules)
        if command[1:] == ("list", "-name"):
            return "\n".join(sets)
        made.append(" ".join(command).replace(" -w -t filter", ""))
        return ""

    (tmp_path / "kube-router.log").touch()
    monkeypatch.setattr(policy_engine, "RUN", tmp_path)
    monkeypatch.setattr(policy_engine, "_run", run)
    policy_engine.stop()
    assert made == [
        *(
            f"{program} {words}"
            for program in ("iptables", "ip6tables")
            for words in ("-D FORWARD -m comment --comment kube-router netpol -j KUBE-ROUTER-FORWARD",
                          "-X KUBE-ROUTER-FORWARD")
        ),
        *(f"ipset destroy {name}" for name in sets[:4]),
    ]  # fmt: skip
