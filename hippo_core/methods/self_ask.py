"""A question with another in it, asked step by step: the answer to the inner one stands in its place (self-ask, Press et al. 2022, arXiv
2210.03350; here with fixed forms in the place of a model that breaks the question up).

    Which directions lead from the mill to the employer of the one who sold a guitar?
    Who sold a guitar?  Carla                             ->   Which directions lead from the mill to the employer of Carla?
    What is the employer of Carla?  the Marlow company    ->   Which directions lead from the mill to the Marlow company?
"""

import math
import re
from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple, TypedDict

from hippo_core.methods.base import Query, Read, Retrieved
from hippo_core.methods.read import read_of

if TYPE_CHECKING:
    from hippo_core.delivery.types import Delivery

INNER = (  # what may stand at the end of a question in the place of a name, the question that it is, and whether only a text answers it
    (re.compile(r"\bthe (?:one|person|man|woman) who (?P<rest>[^?]+)\?$"), "Who {rest}?", True),
    (re.compile(r"\b(?P<rest>the [a-z]+ of [A-Z][\w'’-]*)\?$"), "What is {rest}?", False),
)


class StepAnswer(NamedTuple):
    """The answer to an inner question, "" where there is none, and what it took."""

    answer: str
    cost: Retrieved


class Costs(TypedDict):
    """The fields of `Retrieved` that add up over searches."""

    recall_ms: float
    completion_ms: float
    encode_ms: float
    computed_tokens: float
    once_tokens: float


def costs(searches: Iterable[Retrieved]) -> Costs:
    """What several searches took together; `recall_ms` is NaN where none of them searched."""
    found = list(searches)
    searched = [one.recall_ms for one in found if not math.isnan(one.recall_ms)]
    return {
        "recall_ms": math.fsum(searched) if searched else math.nan,
        "completion_ms": math.fsum(one.completion_ms for one in found),
        "encode_ms": math.fsum(one.encode_ms for one in found),
        "computed_tokens": math.fsum(one.computed_tokens for one in found),
        "once_tokens": math.fsum(one.once_tokens for one in found),
    }


class Steps(NamedTuple):
    """What was retrieved at each step, for the question as it was put first, each with its question as `rephrased`; and what all of it
    took, the inner questions and their answers too. `inner_read`: what the model read and said of these."""

    retrieved: list[Retrieved]
    costs: Costs
    inner_read: tuple[Read, ...]

    def at(self, number: int) -> Retrieved:
        """What one step retrieved, at the cost of all."""
        return replace(self.retrieved[number], **self.costs, inner_read=self.inner_read)


def by_steps(query: Query, retrieve: Callable[[Query], Retrieved], answered: Callable[[Query, bool], StepAnswer]) -> Steps:
    """Retrieve for a question and for what it becomes as its inner questions are answered. `answered` is asked these, and told whether only
    a text answers them."""
    steps, asked, inner_costs = [retrieve(query)], query.text, list[Retrieved]()
    for form, words, from_text in INNER:
        if (hit := form.search(asked)) and (inner := words.format_map(hit.groupdict())) != asked:
            said = answered(replace(query, text=inner), from_text)
            inner_costs.append(said.cost)
            if said.answer:
                asked = f"{asked[: hit.start()]}{said.answer}?"
                step = retrieve(replace(query, text=asked))
                steps.append(replace(step, rephrased=step.rephrased or asked))
    return Steps(steps, costs([*steps, *inner_costs]), tuple(one for cost in inner_costs for one in cost.inner_read))


def read(delivery: "Delivery", query: Query, found: Retrieved) -> StepAnswer:
    """What the model says to an inner question with what was found for it, in as much room as any answer has; its time is that of a
    completion."""
    from hippo_core.delivery.types import Question
    from hippo_core.models.abstention import NEVER

    asked = Question(found.rephrased or query.text, found.delivered, NEVER, found.together)
    [answer] = delivery.ask([asked], query.room)
    tokens = found.computed_tokens + answer.computed_tokens + answer.generated_tokens
    seen = (*read_of(query.text, found, answer, False), Read(answer.text.strip(), "model"))
    cost = replace(found, completion_ms=found.completion_ms + answer.latency_ms, computed_tokens=tokens, inner_read=seen)
    return StepAnswer(answer.text.strip(), cost)
