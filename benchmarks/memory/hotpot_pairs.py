"""Both passages that a question of HotpotQA takes, as far as its own ten paragraphs tell: the file does not name them.

One holds the answer. The other is the only one of the ten that names it or is named by it; where none or several do, the only one besides
that the question names. Where two hold the answer it is these. Of a question that this leaves open nothing is said.
"""

import json

from hippo_core.evaluation.run import passages_of
from hippo_core.methods.relational.passages import PassageGraph
from hippo_core.suites.natural.hotpotqa import FILE, paragraphs_of
from hippo_core.suites.types import World
from hippo_core.text_files import read_text


def pairs(world: World) -> dict[str, frozenset[str]]:
    """By question the ids of its two passages."""
    traces = passages_of(world)
    graph, numbers = PassageGraph.of(traces), {trace.text: number for number, trace in enumerate(traces)}
    own = {f"hotpotqa.q{number}": paragraphs_of(question) for number, question in enumerate(json.loads(read_text(FILE)))}
    sources, gained = {trace.source: number for number, trace in enumerate(traces)}, {}
    for item in world.items:
        ten, gold = [numbers[text] for text in own[item.id]], {sources[fact] for fact in item.gold_facts}
        joined = {near for near in ten if graph.links(near) & gold or any(near in graph.links(other) for other in gold)} - gold
        for both in (gold, gold | joined, gold | (graph.named(item.question) & {*ten})):
            if gold and len(both) == 2:
                gained[item.id] = frozenset(traces[number].source for number in both)
                break
    return gained
