"""What a device remembers as text, written by hand: a fleet writes thousands in every round."""

import json

from retrasyn.device.memory import Memory


def write_quickly(memory: Memory) -> str:
    """Write exactly what `write_memory` would of a memory without its manifest."""
    odometer, quarantine, lots = memory.odometer, memory.quarantine, memory.lots
    return json.dumps(
        {
            "odometer": {"total": odometer.total, "boot": odometer.boot},
            "pinned": "",
            "quarantine": {
                "reason": quarantine.reason,
                "t": quarantine.t,
                "uptime": quarantine.uptime,
                "rounds": quarantine.rounds,
            },
            "lots": None if lots is None else {"phase": lots.phase, "role": lots.role},
            "heads": [
                {"manifest": head.manifest.hex(), "t": head.t, "digest": head.digest.hex()}
                for head in memory.heads
            ],
            "entries": [
                {
                    "manifest": entry.manifest.hex(),
                    "t": entry.t,
                    "uptime": entry.uptime,
                    "epsilon": entry.epsilon,
                    "lookback": entry.lookback,
                    "gap": entry.gap,
                    "period": entry.period,
                }
                for entry in memory.entries
            ],
            "frame": memory.frame.hex(),
            "spent": memory.spent,
        }
    )
