"""The cache experiment: a model's keys and values are damaged, repaired and read; what comes back is measured."""
