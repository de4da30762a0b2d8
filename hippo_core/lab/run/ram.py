"""How much memory a kernel may take: half of the machine while others run, so that one cell that eats memory does not end them too."""

from pathlib import Path

import psutil

USABLE = 0.9  # of the machine's memory is for cells
CGROUP = Path("/sys/fs/cgroup/memory.max")
SIGNS = ("can't allocate memory", "out of memory", "unable to allocate", "cannot allocate memory")


def kernel_memory_limit(jobs: int) -> float:
    """GB for a kernel on this machine or in the part of it that this process is confined to: all of it alone, a half beside others, however
    many: cells are seldom at their peaks together."""
    total = psutil.virtual_memory().total
    confined = CGROUP.read_text().strip() if CGROUP.is_file() else "max"
    return USABLE * min(total, int(confined) if confined.isdigit() else total) / min(jobs, 2) / 1e9


def limit(gb: float) -> list[str]:
    """Arguments by which a kernel confines itself when it starts: more is a MemoryError in its notebook. RLIMIT_DATA (heap and private
    writable mappings) and not the address space, of which torch reserves far more than it uses."""
    return [f"--IPKernelApp.exec_lines=__import__('resource').setrlimit(__import__('resource').RLIMIT_DATA, ({int(gb * 1e9)},) * 2)"]


def ran_out(error: Exception) -> bool:
    """Whether this error of papermill's says that a notebook had not memory enough, of the machine or of a GPU."""
    name, words = getattr(error, "ename", ""), str(getattr(error, "evalue", "")).lower()
    return "MemoryError" in name or any(sign in words for sign in SIGNS)
