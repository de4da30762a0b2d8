"""The lab: parameters checked, notebooks run as cells of a grid, progress shown, records kept. Notebooks use `begin` and `finish`."""

from hippo_core.lab.run.notebook import begin, describe_worlds, figure, finish, preview, sentence
from hippo_core.lab.run.shown import table
