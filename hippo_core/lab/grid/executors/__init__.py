"""Where cells run: in threads of this process (local), or on the workers of a Dask cluster; the engine uses both in the same way."""
