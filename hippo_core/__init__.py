"""The hippocampal memory lab: kernels, memories, models, suites, methods, deliveries, experiments, results and the lab that runs them."""

__version__ = "0.1.0"
