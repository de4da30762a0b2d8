"""Workers by SLURM: a scheduler in this process, and each worker a job of its own. Run it on the login node, in the lab's environment.

    pip install dask-jobqueue
    python params/clusters/slurm.py 8 &                     # 8 jobs; its scheduler's address is written to scheduler.json
    make grid GRID=full EXECUTOR=dask SCHEDULER=scheduler.json

Change what stands in JOB to what your cluster asks for. A job of one core and 8 GB runs one cell at a time. For GPUs: one job a GPU, of
4 cores with `job_extra_directives=["--gres=gpu:1"]` and `worker_extra_args=["--resources", "GPU=1 GPU_GB=24"]`: up to four cells whose
models declare memory share the GPU, and one that fills more than half of it has it alone. The checkout lies on a folder that all nodes
see; where there is none, give RECORDS=s3://bucket/prefix and a checkout on every node.
"""

import signal
import sys
from pathlib import Path

from dask_jobqueue import SLURMCluster

JOB = {
    "cores": 1,
    "processes": 1,
    "memory": "8GB",
    "walltime": "04:00:00",
    "queue": None,  # the partition
    "account": None,
    "job_extra_directives": [],
    "worker_extra_args": [],
    "job_script_prologue": ["export OMP_NUM_THREADS=1"],
    "local_directory": "/tmp",
    "log_directory": "executed/.slurm",
}

if __name__ == "__main__":
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 2
    with SLURMCluster(**JOB) as cluster:
        cluster.scale(jobs=count)
        address = Path("scheduler.json")
        address.write_text(f'{{"address": "{cluster.scheduler_address}"}}\n')
        print(f"{count} workers asked for; make grid EXECUTOR=dask SCHEDULER={cluster.scheduler_address}", flush=True)
        signal.sigwait({signal.SIGINT, signal.SIGTERM})
        address.unlink()
