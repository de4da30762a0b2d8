"""What the spatial suite can be told."""

from typing import Literal

from pydantic import Field

from hippo_core.suites.types import Settings


class SpatialSettings(Settings):
    """A world of the spatial suite. The map decides how many facts there are."""

    n_facts: Literal[0] = 0  # as many as the map needs
    n_items: int = Field(5, ge=1)
    graph_share: float = Field(0.4, ge=0, le=1)  # share of worlds that are graphs; the others are grids
    grid_size: int = Field(4, ge=2, le=6)  # cells on a side
    obstacles: float = Field(0.15, ge=0, le=0.4)  # share of the grid's cells that are blocked
    graph_places: int = Field(10, ge=4, le=30)
    graph_extra: int = Field(3, ge=0)  # links of a graph beyond those of a tree
    dead_ends: int = Field(0, ge=0)  # places with a single way out, at least
    alternative_routes: bool = False  # between the ends of a path there is a second route that shares no link with the first
    min_steps: int = Field(2, ge=2)  # of a path that is asked for
    max_steps: int = Field(4, ge=2)
    n_objects: int = Field(5, ge=1)
    n_procedures: int = Field(2, ge=1)
    min_procedure: int = Field(4, ge=1)  # steps of a procedure
    max_procedure: int = Field(6, ge=1)
    n_walkers: int = Field(2, ge=0)
    trajectory_steps: int = Field(4, ge=1)
    new_names: float = Field(0.25, ge=0, le=1)  # share of worlds whose walkers have names that no training saw
    path_share: float = Field(0.3, ge=0)  # the four shares of questions; only their ratio counts
    recall_share: float = Field(0.1, ge=0)
    procedure_share: float = Field(0.4, ge=0)
    trajectory_share: float = Field(0.2, ge=0)  # in a graph, where there are no directions to follow, these are recall questions
