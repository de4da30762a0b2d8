"""A Dask cluster on this machine for the tests of this folder."""

from tests.lab.clusters import cluster, scheduler  # noqa: F401
