"""Experiments: each protocol is one folder with its descriptor, parameters, run, and what it says of its results.

A descriptor (`Experiment`) is all that the lab knows of one. Ours are in `OURS`; anybody's own goes by its module path.
"""

from hippo_core.experiments.base import OURS, Experiment, experiment_of, load_experiment, planned
from hippo_core.experiments.parameters import Parameters
