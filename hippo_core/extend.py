"""All that a memory, a suite, an experiment, a delivery, a defence, a technique or a learner of one's own is made from, in one module.

    from hippo_core.extend import Memory, MemorySettings, Query, Retrieved

A name is imported when it is first asked for, so that who writes a suite loads no torch. A record follows the module that a name is from,
not all of them (source_code.py).
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from hippo_core.source_code import behind_face

if TYPE_CHECKING:  # the list: `behind_face` reads it
    from hippo_core.delivery.types import Delivery as Delivery
    from hippo_core.errors import LabError as LabError
    from hippo_core.evaluation.run import answer as answer
    from hippo_core.evaluation.table import ITEMS as ITEMS
    from hippo_core.methods.base import Count as Count
    from hippo_core.methods.base import Memory as Memory
    from hippo_core.methods.base import MemorySettings as MemorySettings
    from hippo_core.methods.base import Method as Method
    from hippo_core.methods.base import Observation as Observation
    from hippo_core.methods.base import Query as Query
    from hippo_core.methods.base import Retrieve as Retrieve
    from hippo_core.methods.base import Retrieved as Retrieved
    from hippo_core.methods.base import in_order as in_order
    from hippo_core.models import minilm as minilm
    from hippo_core.protocols.base.experiment import Experiment as Experiment
    from hippo_core.protocols.base.experiment import planned as planned
    from hippo_core.protocols.base.parameters import Parameters as Parameters
    from hippo_core.protocols.base.qa.parameters import AskingParameters as AskingParameters
    from hippo_core.protocols.cache.defences.base import Defence as Defence
    from hippo_core.protocols.cache.defences.base import DefenceInput as DefenceInput
    from hippo_core.protocols.conversation.techniques.base import Retriever as Retriever
    from hippo_core.protocols.conversation.techniques.base import Technique as Technique
    from hippo_core.protocols.questions.protocol import ANSWER as ANSWER
    from hippo_core.results.records.table import Table as Table
    from hippo_core.results.report.sections import Section as Section
    from hippo_core.results.report.sections import measures as measures
    from hippo_core.retrieval.lexicon import words as words
    from hippo_core.store.trace import Decision as Decision
    from hippo_core.store.trace import Trace as Trace
    from hippo_core.suites.draw import worlds as worlds
    from hippo_core.suites.lexicon import names as names
    from hippo_core.suites.types import Fact as Fact
    from hippo_core.suites.types import Item as Item
    from hippo_core.suites.types import Settings as Settings
    from hippo_core.suites.types import Suite as Suite
    from hippo_core.suites.types import World as World
    from hippo_core.suites.types import WorldSpec as WorldSpec


def __getattr__(name: str) -> Any:
    if name not in behind_face():
        raise AttributeError(f"hippo_core.extend has no {name!r}; it has {', '.join(sorted(behind_face()))}")
    module = import_module(behind_face()[name])
    return getattr(module, name) if hasattr(module, name) else import_module(f"{behind_face()[name]}.{name}")


def __dir__() -> list[str]:
    return sorted(behind_face())
