"""A Dask scheduler and its workers on this computer: ``python -m spmilp.sizing.local_cluster``.

They are the children of a process of their own, so that they need nothing of the program that
sweeps (which Dask's own way would have every worker import again), outlive none of it, and can be
started anew. It writes the scheduler's address to its standard output, and ends when its standard
input does.
"""

import logging
import os
import subprocess
import sys
from pathlib import Path

from spmilp.errors import SpmilpError

SECONDS_TO_CLOSE = 5


class LocalCluster:
    """Starts the process, and ends it with all that it has started.

    Parameters
    ----------
    jobs
        Workers, each a process with one thread and its part of the memory.
    folder
        For what the workers put on the disk, and what they print.
    """

    def __init__(self, jobs: int, folder: Path) -> None:
        self._jobs = jobs
        self._folder = folder
        self._process: subprocess.Popen[str] | None = None

    def start(self) -> str:
        """Start it, again if it has ended, and return the scheduler's address.

        Raises
        ------
        SpmilpError
            If it does not start.
        """
        self.end()
        errors = self._folder / "cluster.err"
        command = [sys.executable, "-m", __spec__.name, str(self._jobs), str(self._folder)]
        with errors.open("w") as stderr:
            self._process = subprocess.Popen(
                command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=stderr,
                text=True,
                start_new_session=True,
            )
        address = self._process.stdout.readline().strip() if self._process.stdout else ""
        if not address:
            self.end()
            lines = errors.read_text(encoding="utf-8", errors="replace").strip().splitlines()
            raise SpmilpError(f"Dask's workers do not start: {''.join(lines[-1:])[:300]}")
        return address

    def end(self) -> None:
        """End it; nobody waits for what workers are still doing."""
        if self._process is None:
            return
        with self._process as process:
            if process.stdin is not None:
                process.stdin.close()
            try:
                process.wait(2 * SECONDS_TO_CLOSE)
            except subprocess.TimeoutExpired:
                process.kill()
        self._process = None


def main() -> None:
    """Run a cluster until standard input ends."""
    from distributed import LocalCluster as Cluster
    from distributed.system import MEMORY_LIMIT

    jobs, folder = int(sys.argv[1]), sys.argv[2]
    cluster = Cluster(
        n_workers=jobs,
        threads_per_worker=1,
        processes=True,
        host="127.0.0.1",
        dashboard_address="127.0.0.1:0",
        worker_dashboard_address="127.0.0.1:0",
        memory_limit=MEMORY_LIMIT // jobs,
        local_directory=folder,
        silence_logs=logging.CRITICAL,
    )
    sys.stdout.write(f"{cluster.scheduler_address}\n")
    sys.stdout.flush()
    while os.read(0, 4096):
        pass
    cluster.close(timeout=SECONDS_TO_CLOSE)


if __name__ == "__main__":
    main()
