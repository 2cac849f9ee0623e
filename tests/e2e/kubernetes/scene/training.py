"""A training Job: torchrun, four ranks over gloo, PyTorch from a volume. Knows nothing of fleetprof.

Jobs of one pod leave PyTorch's compiler out, in torchrun as well; those of several have the image's own torchrun.

It trains until `finish`, and then ends in the orderly way; `assert_undisturbed` says that it did.
"""

import re
from dataclasses import dataclass, field
from typing import Any

from cluster.images.building import TRAINER
from harness.training.local_job import NO_COMPILER, TORCHRUN, TRAINING

from scene.api import Api, Object, wait_until
from scene.namespaces import TORCH_CLAIM

_PORT = 29500


@dataclass
class Training:
    """A training Job of `pods` × `ranks_per_pod` ranks; an iteration takes `pause_s` and a little work."""

    api: Api
    namespace: str
    name: str
    pods: int = 1
    ranks_per_pod: int = 4
    pod_labels: dict[str, str] = field(default_factory=dict)
    pod_annotations: dict[str, str] = field(default_factory=dict)
    resources: Object = field(default_factory=lambda: {"requests": {"cpu": "50m", "memory": "256Mi"}})
    seconds: int = 900
    pause_s: float = 0.2
    one_per_node: bool = False
    tolerations: list[str] = field(default_factory=list)

    def start(self) -> None:
        """Creates the Job and what it needs; returns at once."""
        self.api.create(*self.objects())

    def await_steps(self) -> None:
        """Returns once every rank has made its first iterations."""
        wait_until(self._all_run, lambda: f"pods of {self.name}\n{self.api.explain(self.namespace)}", 240)
        # One program looks from inside; each look from outside would start a dozen, while the ranks start.
        looks = f"until set -- /scratch/progress.* && [ -e $1 ] && [ $# = {self.ranks_per_pod} ]; do sleep 0.5; done"
        for pod in self.list_pods():
            self.execute(pod, "timeout", "240", "sh", "-c", looks)

    def finish(self) -> None:
        """Asks the training to end, and waits for the Job's end."""
        for pod in self.list_pods():
            self.execute(pod, "touch", "/scratch/stop")
        # Before either there is SuccessCriteriaMet or FailureTarget, while pods still end.
        wait_until(
            lambda: self.conditions().keys() & {"Complete", "Failed"},
            lambda: f"the end of {self.name}: {self.output()}",
        )

    def starve(self) -> None:
        """From now on each iteration waits long for its data."""
        for pod in self.list_pods():
            self.execute(pod, "touch", "/scratch/starve")

    def feed(self) -> None:
        """The data comes as before."""
        for pod in self.list_pods():
            self.execute(pod, "rm", "/scratch/starve")

    def assert_undisturbed(self) -> None:
        """Every rank trained to the end that was asked for, in one attempt, with exit code 0."""
        job = self.get()
        assert self.conditions().get("Complete") == "True", (job["status"], self.output())
        assert job["status"].get("failed", 0) == 0
        ends = dict(re.findall(r"^rank (\d+) ended after (\d+) iterations$", self.output(), re.MULTILINE))
        assert sorted(map(int, ends)) == list(range(self.pods * self.ranks_per_pod)), self.output()
        assert len(set(ends.values())) == 1, ends
        for pod in self.list_pods():
            (trainer,) = [each for each in pod["status"]["containerStatuses"] if each["name"] == "trainer"]
            assert trainer["restartCount"] == 0
            assert trainer["state"]["terminated"]["exitCode"] == 0

    def hang(self) -> None:
        """Rank 1 stands from now on, and the others wait for it."""
        self.execute(self.list_pods()[0], "touch", "/scratch/hang")

    def get(self) -> Object:
        """The Job."""
        job = self.api.get("Job", self.name, self.namespace, "batch/v1")
        assert job is not None
        return job

    def conditions(self) -> dict[str, str]:
        """Type → status of the Job's conditions; empty while it runs."""
        return {each["type"]: each["status"] for each in self.get()["status"].get("conditions") or []}

    def list_pods(self) -> list[Object]:
        """Its pods, in order of their index."""
        pods = self.api.list("Pod", self.namespace, labels=f"job-name={self.name}")
        return sorted(pods, key=lambda pod: pod["metadata"]["name"])

    def execute(self, pod: Object, *command: str, container: str = "trainer") -> str:
        """Runs a program beside the training."""
        name = pod["metadata"]["name"]
        return self.api.kubectl("exec", name, "-n", self.namespace, "-c", container, "--", *command, timeout_s=300)

    def output(self) -> str:
        """The output of the trainers."""
        return "".join(self.api.logs(pod["metadata"]["name"], self.namespace, "trainer") for pod in self.list_pods())

    def remove(self) -> None:
        """Deletes it and waits for the end of its pods."""
        self.api.delete("Job", self.name, self.namespace, "batch/v1", propagationPolicy="Foreground")
        self.api.await_gone("Job", self.name, self.namespace, "batch/v1")
        self.api.delete("Service", self.name, self.namespace)
        self.api.delete("ConfigMap", self.name, self.namespace)

    def objects(self) -> list[Object]:
        """The Job, its scripts, and the Service by which its pods find each other."""
        metadata = {"name": self.name, "namespace": self.namespace}
        scripts = {
            "train.py": TRAINING.read_text(),
            "torchrun": TORCHRUN.read_text(),
            "no_compiler.py": NO_COMPILER.read_text(),
        }
        service = {"clusterIP": "None", "publishNotReadyAddresses": True, "selector": {"job-name": self.name}}
        return [
            {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": scripts},
            {"apiVersion": "v1", "kind": "Service", "metadata": metadata, "spec": service},
            {"apiVersion": "batch/v1", "kind": "Job", "metadata": metadata, "spec": self._job_spec()},
        ]

    def _job_spec(self) -> Object:
        template: Object = {
            "metadata": {"labels": {"app": self.name, **self.pod_labels}, "annotations": self.pod_annotations},
            "spec": self._pod_spec(),
        }
        count = {"completions": self.pods, "parallelism": self.pods, "completionMode": "Indexed", "backoffLimit": 0}
        return {**count, "template": template}

    def _pod_spec(self) -> Object:
        mounts = {"script": "/training", "torch": "/torch", "scratch": "/scratch"}
        trainer = {
            "name": "trainer",
            "image": TRAINER,
            "command": self._command(),
            "env": [
                {"name": "OMP_NUM_THREADS", "value": "1"},
                {"name": "HOME", "value": "/scratch"},
                {"name": "TMPDIR", "value": "/scratch"},
            ],
            "resources": self.resources,
            "volumeMounts": [{"name": name, "mountPath": path} for name, path in mounts.items()],
            "securityContext": {
                "allowPrivilegeEscalation": False,
                "readOnlyRootFilesystem": True,
                "capabilities": {"drop": ["ALL"]},
            },
        }
        volumes: list[Any] = [
            {"name": "script", "configMap": {"name": self.name}},
            {"name": "torch", "persistentVolumeClaim": {"claimName": TORCH_CLAIM, "readOnly": True}},
            {"name": "scratch", "emptyDir": {}},
        ]
        apart = {"labelSelector": {"matchLabels": {"app": self.name}}, "topologyKey": "kubernetes.io/hostname"}
        return {
            "affinity": {
                "podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [apart] * self.one_per_node}
            },
            "tolerations": [{"key": taint, "operator": "Exists"} for taint in self.tolerations],
            "restartPolicy": "Never",
            "subdomain": self.name,
            "automountServiceAccountToken": False,
            "securityContext": {
                "runAsNonRoot": True,
                "runAsUser": 1000,
                "runAsGroup": 1000,
                "seccompProfile": {"type": "RuntimeDefault"},
            },
            "containers": [trainer],
            "volumes": volumes,
        }

    def _command(self) -> list[str]:
        launcher, meeting = ["python", "/training/torchrun"], ["--standalone"]
        if self.pods > 1:
            leader = f"{self.name}-0.{self.name}.{self.namespace}.svc"
            index = "$(JOB_COMPLETION_INDEX)"
            launcher = ["torchrun"]
            meeting = [f"--nnodes={self.pods}", f"--node-rank={index}", f"--master-addr={leader}"]
            meeting.append(f"--master-port={_PORT}")
        script = ["/training/train.py", "--progress", "/scratch/progress", "--stop-when", "/scratch/stop"]
        script += ["--starve-when", "/scratch/starve"]
        script += ["--fault", "hang", "--fault-rank", "1", "--fault-when", "/scratch/hang"]
        pace = ["--pause", str(self.pause_s), "--seconds", str(self.seconds)]
        return [*launcher, *meeting, f"--nproc-per-node={self.ranks_per_pod}", *script, *pace]

    def _all_run(self) -> bool:
        pods = self.list_pods()
        return len(pods) == self.pods and all(pod["status"].get("phase") == "Running" for pod in pods)
