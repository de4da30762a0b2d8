"""A real S3 server on this machine, for tests of what is kept in an object store."""

import pytest

USER = {"AWS_ACCESS_KEY_ID": "testing", "AWS_SECRET_ACCESS_KEY": "testing", "AWS_DEFAULT_REGION": "us-east-1"}


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
    found = boto3.resource("s3").Bucket("records")
    found.objects.delete()
    found.delete()
