"""The disk of the fuzz and the real store tell the same after the same misfortunes."""

import shutil
import tempfile
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st

from retrasyn.device import SQLiteStore
from retrasyn.device.memory import DeviceMemory
from support.ledger_fuzz import Disk, DiskStore, PowerCut


class Real:
    """The real store in a folder."""

    def __init__(self, folder):
        self.path = Path(folder) / "ledger"
        self.witness = Path(folder) / "ledger.witness"
        self.copy = None
        self.store = SQLiteStore(self.path)
        self.start()

    def start(self):
        return self.store.load()  # it lets the file go and trusts nothing it knew

    def save(self, memory):
        self.store.save(memory)

    def cut_before_the_witness(self, memory):
        before = self.witness.read_bytes() if self.witness.exists() else None
        self.store.save(memory)
        if before is None:
            self.witness.unlink()
        else:
            self.witness.write_bytes(before)

    def keep_copy(self):
        self.store.close()
        self.copy = self.path.read_bytes() if self.path.exists() else None

    def put_back(self):
        self.lose_row()
        if self.copy is not None:
            self.path.write_bytes(self.copy)

    def lose_row(self):
        self.store.close()
        for file in self.path.parent.glob("ledger*"):
            if file != self.witness:
                file.unlink()

    def lose_witness(self):
        self.store.close()
        self.witness.unlink(missing_ok=True)

    def damage(self):
        self.store.close()
        if self.path.exists():
            self.path.write_bytes(b"noise" * 1000)


class Played:
    """The disk of the fuzz."""

    def __init__(self):
        self.disk, self.copy = Disk(), None
        self.start()

    def start(self):
        self.store = DiskStore(self.disk)
        return self.store.load()

    def save(self, memory):
        self.store.save(memory)

    def cut_before_the_witness(self, memory):
        self.disk.cut_at = 1
        try:
            self.store.save(memory)
        except PowerCut:
            return

    def keep_copy(self):
        self.copy = self.disk.row

    def put_back(self):
        self.disk.row = self.copy

    def lose_row(self):
        self.disk.row = None

    def lose_witness(self):
        self.disk.witness = None

    def damage(self):
        if self.disk.row is not None:
            self.disk.row = (*self.disk.row[:2], "damaged")


WITH_A_MEMORY = ("save", "cut_before_the_witness")
WITHOUT = ("keep_copy", "put_back", "lose_row", "lose_witness", "damage")


@settings(max_examples=25)
@given(
    st.lists(st.sampled_from([*WITH_A_MEMORY * 3, *WITHOUT, "keep_copy", "put_back"]), max_size=8)
)
def test_both_disks_believe_and_doubt_the_same(misfortunes):
    folder = tempfile.mkdtemp()
    try:
        real, played = Real(folder), Played()
        for number, name in enumerate(misfortunes):
            memories = (DeviceMemory(spent=number),) if name in WITH_A_MEMORY else ()
            getattr(real, name)(*memories)
            getattr(played, name)(*memories)
            assert real.start() == played.start(), misfortunes[: number + 1]
        real.store.close()
    finally:
        shutil.rmtree(folder)
