"""A question with another in it, asked step by step: the answer to the inner one stands in its place (self-ask, Press et al. 2022, arXiv
2210.03350; here with fixed forms in the place of a model that breaks the question up).

    Which directions lead from the mill to the employer of the one who sold a guitar?
    Who sold a guitar?  Carla                             ->   Which directions lead from the mill to the employer of Carla?
    What is the employer of Carla?  the Marlow company    ->   Which directions lead from the mill to the Marlow company?

And what the model read for a question, part by part, with who wrote each part; and who composed the answer.
"""

import math
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from hippo_core.methods.base import Query, Read, Retrieved
from hippo_core.store.trace import Trace
from hippo_core.text import on_one_line

if TYPE_CHECKING:
    from hippo_core.delivery.types import Delivered, Delivery

INNER = (  # what may stand at the end of a question in the place of a name, the question that it is, and whether only a text answers it
    (re.compile(r"\bthe (?:one|person|man|woman) who (?P<rest>[^?]+)\?$"), "Who {rest}?", True),
    (re.compile(r"\b(?P<rest>the [a-z]+ of [A-Z][\w'’-]*)\?$"), "What is {rest}?", False),
)


class StepAnswer(NamedTuple):
    """The answer to an inner question, "" where there is none, and its cost."""

    answer: str
    cost: Retrieved


def costs(searches: Iterable[Retrieved]) -> dict[str, Any]:
    """The total cost of several searches, by field of `Retrieved`; `recall_ms` is NaN where none of them searched."""
    results = list(searches)
    searched = [result.recall_ms for result in results if not math.isnan(result.recall_ms)]
    added = ("completion_ms", "encode_ms", "computed_tokens", "once_tokens")
    return {
        "recall_ms": math.fsum(searched) if searched else math.nan,
        **{name: math.fsum(getattr(result, name) for result in results) for name in added},
    }


class Steps(NamedTuple):
    """The steps of a question."""

    retrieved: list[Retrieved]  # at each step, for the question as it was put first, each with its question as `rephrased`
    costs: dict[str, Any]  # of all of it, the inner questions and their answers too
    inner_read: tuple[Read, ...]  # what the model read and said of these

    def at(self, number: int) -> Retrieved:
        """What one step retrieved, at the cost of all."""
        return replace(self.retrieved[number], **self.costs, inner_read=self.inner_read)


def by_steps(query: Query, retrieve: Callable[[Query], Retrieved], answered: Callable[[Query, bool], StepAnswer]) -> Steps:
    """Retrieve for a question and for what it becomes as its inner questions are answered by `answered`, which also gets whether only a
    text answers them."""
    steps, asked, inner_costs = [retrieve(query)], query.text, list[Retrieved]()
    for form, words, from_text in INNER:
        if (hit := form.search(asked)) and (inner := words.format_map(hit.groupdict())) != asked:
            inner_answer = answered(replace(query, text=inner), from_text)
            inner_costs.append(inner_answer.cost)
            if inner_answer.answer:
                asked = f"{asked[: hit.start()]}{inner_answer.answer}?"
                step = retrieve(replace(query, text=asked))
                steps.append(replace(step, rephrased=step.rephrased or asked))
    return Steps(steps, costs([*steps, *inner_costs]), tuple(part_read for cost in inner_costs for part_read in cost.inner_read))


def read(delivery: "Delivery", query: Query, retrieved: Retrieved) -> StepAnswer:
    """The model's answer to an inner question from what was retrieved, as long as any answer; its time counts as completion."""
    from hippo_core.delivery.types import Question
    from hippo_core.models.abstention import NEVER

    asked = Question(retrieved.rephrased or query.text, retrieved.delivered, NEVER, retrieved.together)
    [answer] = delivery.ask([asked], query.room)
    tokens = retrieved.computed_tokens + answer.computed_tokens + answer.generated_tokens
    seen = (*read_of(query.text, retrieved, answer, False), Read(answer.text.strip(), "model"))
    cost = replace(retrieved, completion_ms=retrieved.completion_ms + answer.latency_ms, computed_tokens=tokens, inner_read=seen)
    return StepAnswer(answer.text.strip(), cost)


ComposedBy = Literal["model", "program, model copies", "program"]


def left_of(retrieved: Retrieved, delivered: "Delivered") -> tuple[Trace, ...]:
    """The traces whose words, or the method's own words for them, reached the model."""
    return retrieved.shown[len(retrieved.shown) if retrieved.restates and delivered.dropped else delivered.dropped :]


def read_of(question: str, retrieved: Retrieved, delivered: "Delivered", masked: bool) -> tuple[Read, ...]:
    """What the model read of a question's own, in order: the lines before it, and the question as it was asked. `masked`: the model saw no
    line."""
    lines = () if masked else retrieved.delivered[delivered.dropped :]
    asked = Read(retrieved.rephrased, "program") if retrieved.rephrased not in ("", question) else Read(question, "asker")
    return (*(Read(on_one_line(trace.text), "program" if retrieved.restates else "teller") for trace in lines), asked)


def composed_by(read: Sequence[Read], retrieved: Retrieved, delivered: "Delivered") -> ComposedBy:
    """Who composed an answer: a program alone, a program whose words the model copies, or the model that read facts."""
    if delivered.decided or not delivered.generated_tokens:
        return "program"
    by_program = any(part.by == "program" for part in read[:-1])
    return "program, model copies" if by_program and not retrieved.reworded else "model"
