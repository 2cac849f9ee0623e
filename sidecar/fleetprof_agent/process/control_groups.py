"""The folders of the control groups that limit a process, of one controller.

Guarantees: nothing is raised; what cannot be read is empty. Sources: cgroups(7), proc(5).
"""

from __future__ import annotations

import os

from fleetprof_agent.errors import pass_on


def find_groups(controller: str, probes: tuple[str, str], own: str, proc: str = "/proc") -> list[tuple[str, int]]:
    """(folder, version - 2 for 0, 1 for 1 -) of a process's groups: its own, and those above it, the innermost first.

    `own` is the process's folder in `proc`; a group counts that has the file `probes[version]`.
    """
    paths: dict[int, str] = {}
    for line in read_text(own + "/cgroup").splitlines():
        _, _, rest = line.partition(":")
        controllers, _, path = rest.partition(":")
        if not controllers:
            paths[0] = path
        elif controller in controllers.split(","):
            paths[1] = path
    found = []
    for line in read_text(proc + "/self/mountinfo").splitlines():
        fields, _, source = line.partition(" - ")
        words, kind = fields.split(), source.split()
        if len(words) < 5 or not kind:
            continue
        version = {"cgroup2": 0, "cgroup": 1}.get(kind[0])
        if version not in paths or (version == 1 and controller not in kind[-1].split(",")):
            continue
        found += [(folder, version) for folder in _folders(words[4], words[3], paths[version])]
    return [(folder, version) for folder, version in found if os.path.exists(folder + "/" + probes[version])]


def read_text(path: str) -> str:
    """The text of a small file; "" when it cannot be read."""
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            return file.read()
    except OSError as error:
        pass_on(error)
        return ""


def _folders(mount: str, root: str, path: str) -> list[str]:
    """From a group's folder up to where the hierarchy is mounted; that alone where the group is not below it."""
    if root != "/" and (path == root or path.startswith(root + "/")):
        path = path[len(root) :]
    folder = mount + path.rstrip("/")
    if ".." in path.split("/") or not os.path.isdir(folder):
        return [mount]
    folders = [folder]
    while len(folder) > len(mount):
        folder = os.path.dirname(folder)
        folders.append(folder)
    return folders
