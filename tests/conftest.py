"""A real S3 server on this machine, for tests of what is kept in an object store; and Triton's interpreter where there is no GPU."""

import os
import shutil
from urllib.request import Request, urlopen

import pytest

if not shutil.which("nvidia-smi"):
    os.environ.setdefault("TRITON_INTERPRET", "1")  # Triton reads it when it is imported, which other libraries do as they like

os.environ.setdefault("HIPPO_ENCODER", "own")  # what a memory's `encoder: auto` is, whether MiniLM is on the disk or not

# The files that take longest, 30 to 150 seconds each, come first, so that no core waits for the other in the end.
LONGEST = (
    *("lab/executors/test_dask.py", "protocols/questions/test_proof.py", "end_to_end/test_notebooks_run.py", "lab/grid/test_engine.py"),
    *("lab/warm/test_kernels.py", "faults/test_kills.py", "lab/run/test_dependencies.py", "faults/test_disks.py"),
    *("protocols/questions/test_knobs.py", "protocols/questions/test_proof_reader.py", "test_extend.py", "end_to_end/test_dry_runs.py"),
    *("methods/test_controls.py", "lab/test_progress.py"),
)
USER = {"AWS_ACCESS_KEY_ID": "testing", "AWS_SECRET_ACCESS_KEY": "testing", "AWS_DEFAULT_REGION": "us-east-1"}


def pytest_collection_modifyitems(items):
    """Put the longest files first; `make test` hands files out in this order (--no-loadscope-reorder)."""
    order = {f"tests/{name}": position for position, name in enumerate(LONGEST)}
    items.sort(key=lambda item: order.get(item.nodeid.partition("::")[0], len(LONGEST)))


@pytest.fixture(scope="session")
def s3_server():
    """Its address."""
    from moto.server import ThreadedMotoServer

    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0)
    server.start()
    host, port = server.get_host_and_port()
    yield f"http://{host}:{port}"
    server.stop()


@pytest.fixture
def bucket(s3_server, monkeypatch):
    """A bucket on the server; this process and those that it starts find it by their environment."""
    import boto3

    for name, value in {**USER, "AWS_ENDPOINT_URL": s3_server}.items():
        monkeypatch.setenv(name, value)
    boto3.client("s3").create_bucket(Bucket="records")
    yield "s3://records"
    created = boto3.resource("s3").Bucket("records")
    created.objects.delete()
    created.delete()


@pytest.fixture
def guarded(bucket, s3_server, monkeypatch):
    """A bucket that the user of this process has no permission for: the server checks credentials from now on."""
    import boto3
    from s3fs import S3FileSystem

    boto3.client("s3").create_bucket(Bucket="guarded")
    users = boto3.client("iam")
    users.create_user(UserName="nobody")
    key = users.create_access_key(UserName="nobody")["AccessKey"]
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", key["AccessKeyId"])
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", key["SecretAccessKey"])
    S3FileSystem.clear_instance_cache()
    authorize_after(s3_server, 0)
    yield "s3://guarded"
    authorize_after(s3_server, 10**9)
    S3FileSystem.clear_instance_cache()


def authorize_after(server, count):
    """The server lets so many calls pass before it looks at credentials."""
    urlopen(Request(f"{server}/moto-api/reset-auth", data=str(count).encode(), headers={"Content-Type": "text/plain"})).close()
