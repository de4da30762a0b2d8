"""What a run found: three sentences made from its numbers, the figure that carries them, and its conditions in words.

The first sentence sets the memory against the best rag (without a memory the best rag against the plain model), the second says whether
the controls hold, the third what of the claims is met, not met and not shown. "Clearly" means a 95% interval that leaves 0 out.
"""

import math
from collections import Counter
from collections.abc import Sequence
from itertools import takewhile
from typing import Any

from hippo_core.files import root
from hippo_core.protocols.questions.figures.headline import BEST_RAG, HeadlineComparison, headline_figure
from hippo_core.protocols.questions.report.contract import valid, violation_messages
from hippo_core.protocols.questions.report.runs import Run
from hippo_core.results import summaries
from hippo_core.results.conditions import base, ordered
from hippo_core.results.criteria import Verdict
from hippo_core.results.figures.palette import style_of
from hippo_core.results.formatting import percent, share, span
from hippo_core.results.frames import Frame
from hippo_core.results.verdicts import claims_by_rival
from hippo_core.suites import suite_constants

FILE = "figures/found.png"
PLAIN = "baselines/span_short"
COMBINED = "memory/all"
STRONG = ("baselines/rag_fitted", "baselines/rag_head", "baselines/rag_sum", "baselines/rag_rerank")
NAMED = 4  # settings named one by one in a sentence; of more only how many, and from where to where


def sentences(run: Run, model: str, verdicts: Sequence[Verdict]) -> list[str]:
    """What the run found of one model."""
    mine = [verdict for verdict in verdicts if verdict.model == model]
    first = _compared(leads(run, model)) + _weak_baselines(run, model)
    records = {cell.record for cell in run.cells if cell.model == model}
    invalid = violation_messages(violation for violation in run.invalid if violation.record in records)
    if invalid:
        invalid.insert(0, "The contract of a meaningful run is broken, and nothing below rests on these cells.")
    return [_begun(sentence) for sentence in (" ".join(invalid), first, _controls(run, model, mine), _claims(mine)) if sentence]


def _weak_baselines(run: Run, model: str) -> str:
    """That the rags are weak ones, where a memory is compared with rags of which none has a published encoder or anything fitted."""
    rows = run.numbers[run.numbers["model"] == model]
    rags = rows[[base(name) in summaries.RIVAL_RAGS for name in rows["condition"]]]
    strong = (rags["encoder"] == "minilm").any() or any(name.startswith(STRONG) for name in map(base, rags["condition"].unique()))
    if rags.empty or strong or memory_of(rows) is None:
        return ""
    return " No rag of this run has a published encoder or anything fitted for it, so these are weak rivals."


def _begun(sentence: str) -> str:
    """A sentence with a capital, unless it begins with the name of a condition."""
    return sentence[0].upper() + sentence[1:] if sentence.startswith(("the ", "all ")) else sentence


def leads(run: Run, model: str) -> list[HeadlineComparison]:
    """In each setting of a model the memory and what it is compared with: the best rag, else the plain model; without a memory the best rag
    and the plain model, and where there is nothing to compare the best condition alone."""
    rows = run.numbers[(run.numbers["model"] == model) & (run.numbers["regime"] == "delayed")]
    options: list[list[tuple[Any, ...]]] = [[], [], [], []]
    for setting, name in run.settings_of(model).items():
        here = rows[rows["setting"] == setting]
        memory, rag = memory_of(here), summaries.best_rag(here, run.validation_of(setting))[0]
        plain = PLAIN if (here["condition"] == PLAIN).any() else None
        for option, conditions in zip(options, [(memory, rag), (memory, plain), (rag, plain), (_best(here), "")], strict=True):
            if None not in conditions:
                option.append((name if len(run.models) == 1 else setting, here, rag, *conditions))
    # The first that any setting allows, so that all lines compare the same two things.
    return [_lead(*arguments) for arguments in next(filter(None, options), [])]


def memory_of(rows: Frame) -> str | None:
    """The memory that rows are about: all memories combined where these were asked, else the first in the order of all tables, else a
    preset of one's own."""
    names = ordered(valid(rows)["condition"])
    own = [name for name in names if name.split("/")[0] not in ("baselines", "controls", "ablations")]
    return COMBINED if COMBINED in own else next((name for name in own if name.startswith("memory/")), next(iter(own), None))


def _best(rows: Frame) -> str | None:
    known = rows[rows["score"].notna()]
    means = known.groupby("condition")["score"].mean()
    return next((name for name in ordered(means.index) if means[name] == means.max()), None)


def _lead(name: str, rows: Frame, rag: str | None, a: str, b: str) -> HeadlineComparison:
    table = summaries.estimate(rows, ["condition"]).set_index("condition")
    pair = summaries.pair(rows, (a, "delayed"), (b, "delayed")) if b else None
    difference, low, high = (pair.difference, pair.low, pair.high) if pair else (math.nan,) * 3
    about = suite_constants(str(rows["suite"].iloc[0])).get("asks", "")
    return HeadlineComparison(name, a, b, rag or "", table, difference, low, high, about)


def _compared(headlines: Sequence[HeadlineComparison]) -> str:
    """The first sentence: how the one condition compares with the other, setting by setting."""
    paired = [lead for lead in headlines if not math.isnan(lead.difference)]
    if not paired:
        alone = [f"{style_of(lead.a).label} answers {percent(lead.mean(lead.a))} right on {lead.setting}" for lead in headlines[:NAMED]]
        return f"{'; '.join(alone)}; {_nothing_compared(headlines)}." if alone else "Nothing was scored."
    if len(paired) == 1:
        [lead] = paired
        scores = f"{lead.subject} answers {percent(lead.mean(lead.a))} of the questions on {lead.setting} right"
        clear = "" if lead.low > 0 or lead.high < 0 else ", no clear difference"
        clear = ", in too few worlds for an interval" if math.isnan(lead.low) else clear
        return f"{scores}, {lead.rival} {percent(lead.mean(lead.b))}: {_by([lead])}{clear}."
    first, second = _compared_names(paired)
    worth = [lead for lead in paired if not lead.at_chance]
    better, more = [lead for lead in worth if lead.low > 0], f"{first} answers clearly more questions right than {second} on"
    others = [
        ("clearly fewer on", [lead for lead in worth if lead.high < 0]),
        ("no clear difference on", [lead for lead in worth if lead.low <= 0 <= lead.high]),
        ("too few worlds to tell on", [lead for lead in worth if math.isnan(lead.low)]),
        (f"{second} is at chance, so that nothing can be said, on", [lead for lead in paired if lead.at_chance]),
    ]
    parts = [_listed(more, better, len(paired)) if better else f"{more} none of {len(paired)} settings"]
    parts += [_listed(words, some, len(paired)) for words, some in others if some]
    return "; ".join(parts) + "."


def _nothing_compared(headlines: Sequence[HeadlineComparison]) -> str:
    """That nothing is compared, and which baselines were asked all the same: a rag with other settings stands for no best rag."""
    asked = dict.fromkeys(name for lead in headlines for name in lead.table.index if name.startswith("baselines/") and name != lead.a)
    if not asked:
        return "there is nothing to compare it with"
    return f"not compared in this sentence, though asked too: {', '.join(style_of(name).label for name in ordered(asked))}"


def _compared_names(paired: Sequence[HeadlineComparison]) -> tuple[str, str]:
    """What is compared, in words, where it differs from setting to setting too."""
    subjects, references = ({getattr(lead, role) for lead in paired} for role in ("subject", "rival"))
    several = "the best rag" if any(lead.a == lead.rag for lead in paired) else "the memory"
    return subjects.pop() if len(subjects) == 1 else several, references.pop() if len(references) == 1 else "the best rag"


def _listed(words: str, some: Sequence[HeadlineComparison], of: int) -> str:
    if len(some) <= NAMED:
        return f"{words} {', '.join(f'{lead.setting} ({_by([lead])})' for lead in some)}"
    return f"{words} {len(some)} of {of} settings ({_by(some)})"


def _by(some: Sequence[HeadlineComparison]) -> str:
    if len(some) == 1:
        [lead] = some
        interval = "" if math.isnan(lead.low) else f", {span(lead.low, lead.high, sign=True)}"
        return share(lead.difference, sign=True) + interval
    return " to ".join(share(end([lead.difference for lead in some]), sign=True) for end in (min, max))


def _controls(run: Run, model: str, verdicts: Sequence[Verdict]) -> str:
    """The second sentence: whether the controls and the instrument hold."""
    controls = _met_in_words([verdict for verdict in verdicts if verdict.about == "control"], "control", "controls")
    expected = [verdict for verdict in verdicts if verdict.about == "instrument"]
    instrument = _met_in_words(expected, "expectation", "expectations", " of the instrument")
    rows = run.numbers[(run.numbers["model"] == model) & (run.numbers["regime"] == "delayed")]
    means = rows.groupby("condition")["score"].mean()
    words = {"controls/shuffled_store": "another world's traces", "controls/oracle_store": "the right trace"}
    shares = [f"{percent(means[name])} with {of_what}" for name, of_what in words.items() if name in means.index]
    answered = f"answers right: {', '.join(shares)}" if controls and shares else ""
    return "; ".join(filter(None, [controls or "No control of a memory was judged", answered, instrument])) + "."


def _met_in_words(verdicts: Sequence[Verdict], singular: str, plural: str, of: str = "") -> str:
    judged = [verdict for verdict in verdicts if verdict.verdict != "not judged"]
    n_met = sum(verdict.verdict == "met" for verdict in judged)
    if not judged:
        return ""
    if n_met == len(judged):
        return f"the one {singular}{of} holds" if n_met == 1 else f"all {n_met} {plural}{of} hold"
    failed = Counter(verdict.verdict for verdict in judged if verdict.verdict != "met")
    return f"{n_met} of {len(judged)} {plural}{of} hold ({', '.join(f'{count} {name}' for name, count in failed.items())})"


def _claims(verdicts: Sequence[Verdict]) -> str:
    """The third sentence: what of the claims about the memory is met, what is not, and what is not shown."""
    claims = [verdict for verdict in verdicts if verdict.about == "claim"]
    counts = Counter(verdict.verdict for verdict in claims)
    judged = len(claims) - counts["not judged"]
    if not judged:
        why = f"; {counts['not judged']} could not be judged, for reasons given below" if claims else ""
        return f"No claim about a memory was judged{why}."
    words = {"not met": "", "not shown": ", the value being there but too uncertain"}
    if judged == 1:
        [only] = [verdict for verdict in claims if verdict.verdict != "not judged"]
        parts = [f"The one claim about the memory is {only.verdict}{words.get(only.verdict, '')} (“{only.question}”)"]
    else:
        parts = [f"Of {judged} claims about the memory {counts['met']} {'is' if counts['met'] == 1 else 'are'} met"]
        for name in [name for name in words if counts[name]]:
            example = next(verdict.question for verdict in claims if verdict.verdict == name)
            parts.append(f"{counts[name]} {'is' if counts[name] == 1 else 'are'} {name}{words[name]} (“{example}”)")
    parts += [f"{counts['not judged']} could not be judged"] if counts["not judged"] else []
    parts += [rival_note] if (rival_note := claims_by_rival(map(vars, verdicts))) else []
    return "; ".join(parts) + "."


def claim(headlines: Sequence[HeadlineComparison]) -> str:
    """The title of the figure."""
    paired = [lead for lead in headlines if not math.isnan(lead.difference)]
    if not paired:
        return "Answers right, setting by setting"
    worth = [lead for lead in paired if not lead.at_chance]
    n_better = sum(lead.low > 0 for lead in worth)
    first, second = _compared_names(paired)
    above = " where that beats a guess" if len(worth) < len(paired) else ""
    where = f"on {n_better} of {len(worth)} settings{above}" if len(paired) > 1 else f"on {paired[0].setting}"
    if len(paired) == 1 and not n_better:
        return f"{first} and {second} on {paired[0].setting}"
    return _begun(f"{first} is clearly ahead of {second} {where}")


CAPTION = (
    "Answers right after a new session. Each line is one kind of questions, with the memory made for them, further right is better: "
    "dots in colour are memories, the green diamond is what the best search without a memory reaches. Bars are 95% intervals, clustered by "
    f"world, the short upright line is a guess. {BEST_RAG} is the one that was chosen on validation worlds, where there are any."
)


def picture(run: Run) -> tuple[str, bytes] | None:
    """The figure and its title; None where nothing was scored in the delayed regime."""
    headlines = [lead for model in run.models for lead in leads(run, model)]
    return (claim(headlines), headline_figure(claim(headlines), headlines)) if headlines else None


def legend(run: Run) -> list[dict[str, Any]]:
    """Every condition of the run in the words of its preset, in the order of all tables; a preset is described once."""
    lines, seen = [], set[str]()
    for name in ordered(run.rows["condition"]):
        words = "The same, with this setting" if base(name) in seen else described(base(name))
        lines.append({"look": style_of(name), "label": style_of(name).label, "words": words})
        seen.add(base(name))
    return lines


def described(preset: str) -> str:
    """The first sentence of the comment at the top of a preset's file; empty where there is no such file."""
    path = root() / "params" / "presets" / f"{preset}.yaml"
    lines = path.read_text(encoding="utf-8").splitlines() if path.is_file() else []
    comment = takewhile(lambda line: line.startswith("#"), lines)
    return " ".join(line.removeprefix("#").strip() for line in comment).partition(". ")[0].rstrip(".")
