"""Images that outlive their cluster: what containerd has unpacked is put away for the next cluster.

To load the images anew takes half a minute of processor time, though few of their layers have changed.

Guarantees: only a node that ended in order leaves anything, and what it leaves is images alone; the next cluster takes
all of it away, so a run that is killed leaves nothing to the one after it; another containerd gets nothing.
"""

import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from cluster.places import BINARIES, CACHE, KUBECONFIG

_RECORD: Final = KUBECONFIG.with_name("images-loaded")
_IMAGES: Final = (
    "io.containerd.content.v1.content",
    "io.containerd.metadata.v1.bolt",
    "io.containerd.snapshotter.v1.overlayfs",
)


@dataclass(frozen=True)
class KeptImages:
    """The images kept in `folder`; `record` says which images are loaded, `version` of which containerd they are."""

    folder: Path = CACHE / "cluster-images"
    record: Path = _RECORD
    version: Path = BINARIES / "containerd.version"

    def bring_back(self, root: Path) -> None:
        """Before containerd starts with that root: gives it what an earlier cluster left."""
        mark = self.folder / self.version.name
        if mark.is_file() and mark.read_text() == self.version.read_text():
            root.mkdir(parents=True)
            for name in _IMAGES:
                (self.folder / name).rename(root / name)
            (self.folder / self.record.name).rename(self.record)
        shutil.rmtree(self.folder, ignore_errors=True)

    def put_away(self, root: Path) -> None:
        """After containerd ended in order; nothing happens where no images were loaded."""
        if not self.record.is_file():
            return
        shutil.rmtree(self.folder, ignore_errors=True)
        self.folder.mkdir(mode=0o700)
        for name in _IMAGES:
            (root / name).rename(self.folder / name)
        self.record.rename(self.folder / self.record.name)
        # Last: only with it is all of it there.
        shutil.copyfile(self.version, self.folder / self.version.name)
