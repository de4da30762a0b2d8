"""`Memory`: any memory or retrieval of the lab with any of its models, in your own program.

    memory = Memory("smollm2-135m-reader").open("my_memory")
    memory.teach("Anna left her bicycle at the station.", who="Anna", when="Monday")
    print(memory.ask("Where is Anna's bicycle?"))

Whatever a call changes is on the disk when it returns, whole or not at all, and survives a kill at any moment. A folder has one writer and
as many readers as one likes.
"""

import os
import secrets
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing, contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from hippo_core.errors import LabError
from hippo_core.evaluation.asked import asked_of
from hippo_core.files import in_a_line, read_sealed, remove_unwritten, write_sealed
from hippo_core.live import arguments
from hippo_core.live.answer import LISTED, Answer, RecallResult, Slept, TeachResult, number_of, recalled
from hippo_core.methods import base
from hippo_core.methods.base import Method, Observation, Query, Retrieved
from hippo_core.methods.controls import open_controlled
from hippo_core.methods.presets import load_preset
from hippo_core.methods.self_ask import composed_by, left_of, read_of
from hippo_core.models.lazy_model import LazyModel
from hippo_core.models.packages.pins import missing
from hippo_core.models.spec import READER, load_spec
from hippo_core.retrieval.encoded import private
from hippo_core.store import TraceStore
from hippo_core.store.paths import store_path, sync_folder
from hippo_core.store.trace import Decision, Statement, Trace
from hippo_core.suites.types import Item
from hippo_core.text import OWN_ANSWER_TOKENS
from hippo_core.training.consolidation.lineage import Consolidated, Consolidation

if TYPE_CHECKING:
    from hippo_core.models.language_model import LanguageModel

WORLD = "memory"  # all that is told lies in one world
SESSION = "memory"
BLOCK = 64  # sentences that are encoded, and written, together
NUMBERED = "taught"  # the store's note on how many sentences it was told
CONSOLIDATED = "consolidated"  # the folder of what sleep has put into the model
BEGUN = "begun.json"  # what several commits do together, from before the first until after the last: it is done again after a kill
IDENTIFIED = "id"  # the first store's note on which memory it is, so that `begun.json` is obeyed in its own folder alone
CALIBRATED_ON = "episodic"  # the suite whose validation worlds a gate is calibrated on

Progress = Callable[[int, int], object]  # called with how many sentences are told, or steps done, and of how many


class OpenWorld:
    """The traces of a world, opened by a method. `others`: traces of another world, for the control `shuffled`."""

    def __init__(self, method: Method, traces: Sequence[Trace], others: Sequence[Trace] = ()) -> None:
        self.method, self.traces, self.others = method, list(traces), others
        self.sources = tuple(dict.fromkeys(trace.source for trace in sorted(traces, key=lambda trace: (trace.time, trace.id))))
        with private():
            self._retrieve = open_controlled(method, self.traces, others)

    def recall(self, question: str, listed: int = LISTED, gold: Sequence[str] = ()) -> RecallResult:
        """What is recalled for a question. `gold`: sources of the right traces, which the controls oracle and random read."""
        return recalled(question, self._retrieved(question, gold), len(self.traces), listed)

    def ask(self, question: str, tokens: int = OWN_ANSWER_TOKENS, gold: Sequence[str] = (), recall: bool = True) -> Answer:
        """The answer, of at most so many tokens. `recall` False: nothing is recalled."""
        begin = time.perf_counter()
        retrieved = self._retrieved(question, gold, tokens) if recall else Retrieved(())
        masked = self.method.settings.control == "empty"
        [delivered] = self.method.delivery.ask([asked_of(self.method, question, retrieved)], tokens, masked=masked)
        total = (time.perf_counter() - begin) * 1e3
        recalled_traces = replace(recalled(question, retrieved, len(self.traces)), off=not recall)
        read = read_of(question, retrieved, delivered, masked)
        behind = () if masked else left_of(retrieved, delivered)
        order = {(trace.memory, number_of(trace)): rank for rank, trace in enumerate(behind)}
        shown = sorted(
            (trace for trace in recalled_traces.traces if (trace.memory, trace.id) in order),
            key=lambda shown_trace: order[shown_trace.memory, shown_trace.id],
        )
        computed = retrieved.computed_tokens + delivered.computed_tokens + delivered.generated_tokens
        counts = {"prompt": delivered.prompt_tokens, "traces": delivered.trace_tokens, "generated": delivered.generated_tokens}
        counts |= {"computed": computed}
        ms = {**recalled_traces.ms, "answer": delivered.latency_ms, "total": total}
        by = composed_by(read, retrieved, delivered)
        details = {"read": read, "inner_read": retrieved.inner_read, "composed_by": by, "cut": delivered.cut}
        return Answer(delivered.text, question, tuple(shown), recalled_traces, delivered.prompt, counts, ms, **details)

    def _retrieved(self, question: str, gold: Sequence[str], budget: int = OWN_ANSWER_TOKENS) -> Retrieved:
        world = self.traces[0].world if self.traces else ""
        item = Item("asked", world, question, ("",), tuple(gold), "asked", taught=self.sources)
        with private():
            return self._retrieve(item, Query(question, self.sources, room=budget)).retrieved


class LiveMemory:
    """A memory of a model, kept in a folder.

    Args:
        model: a model of params/models, a folder with a config.json, a .gguf file, or a language model that is loaded already; left out,
            the shipped one that reads everyday sentences.
        method: a preset of params/presets, such as memory/hei_nw or baselines/rag_bm25.
        settings: settings of the preset to replace, by dotted key, such as {"episodic.use_completion": "hopfield", "k": 3}.

    Raises:
        LabError: an unknown model, preset or setting, or a model that is not on the disk; it says how to get it.
    """

    def __init__(
        self, model: "str | LanguageModel" = READER, method: str = "memory/hei_nw", settings: Mapping[str, Any] | None = None
    ) -> None:
        arguments.name(method, "method is the name of a preset, such as memory/hei_nw")
        if not hasattr(model, "spec"):
            arguments.name(model, "model is the name of a model, or one that is loaded")
        keyed = settings is None or (isinstance(settings, Mapping) and all(isinstance(key, str) for key in settings))
        arguments.require(keyed, 'settings are values by dotted key, such as {"k": 3}', settings)
        try:
            self.preset = load_preset(method, settings or {})
        except RecursionError:
            raise LabError("settings are nested too deep; give values by dotted key") from None
        self._lm: Any = _lazy(model) if isinstance(model, str) else model
        self.method = self.preset.method(self._lm, self.preset.settings)
        self._stores: dict[str, TraceStore] = {}
        self._resources = ExitStack()
        self._opened: dict[bool, tuple[object, OpenWorld]] = {}  # of the unchanged model, and of the consolidated one
        self._open_consolidation: Consolidation | None = None
        self._read_only = False
        self.folder: Path | None = None

    def open(self, folder: str | Path, read_only: bool = False) -> Self:
        """Keep everything in this folder, made if missing; what it already stores is loaded.

        Raises:
            LabError: another process writes to it, it holds the store of another model or method, or it is damaged.
        """
        path = arguments.folder(folder)
        arguments.flag(read_only, "read_only")
        self.close()
        self.folder, self._read_only = path, read_only
        self._open_consolidation = Consolidation(self._lm, self.folder / CONSOLIDATED)
        with ExitStack() as resources:
            resources.callback(self._stores.clear)
            for name, writer in self._writers.items():
                self._stores[name] = resources.enter_context(self._store(self.folder / name, writer, read_only))
            if not read_only:  # put right what a kill has left
                remove_unwritten(self.folder / BEGUN)
                self._finish()
                self._consolidation.tidy()
            self._resources = resources.pop_all()
        return self

    def _store(self, folder: Path, writer: base.Memory, read_only: bool) -> TraceStore:
        path = store_path(folder, SESSION, writer.algorithm())
        if path.exists():
            return TraceStore.open(folder, SESSION, writer.identity(), read_only=read_only)
        others = sorted(file.parent.parent.name for file in folder.glob(f"*/{SESSION}/{path.name}"))
        if others:
            raise LabError(f"{folder} holds a store of {', '.join(others)}, this is {writer.algorithm()}; name another folder or method")
        if read_only:
            raise LabError(f"there is no memory in {folder}; open it for writing and teach it first, or name another folder")
        try:
            return TraceStore.create(folder, SESSION, writer.identity())
        except (NotADirectoryError, PermissionError, FileExistsError) as error:
            raise LabError(f"no memory can be made in {folder} ({in_a_line(error)}); name another folder") from None

    @property
    def _writers(self) -> Mapping[str, base.Memory]:
        """What writes the stores, by the name of the part: the method itself; of a retrieval one that keeps every sentence as it is."""
        return self.method.parts if isinstance(self.method, base.Memory) else {"": base.Memory(self._lm, base.MemorySettings())}

    @property
    def stores(self) -> Mapping[str, TraceStore]:
        """The open stores, by part; without a folder they lie in a temporary one, removed when the memory is closed."""
        if not self._stores:
            with ExitStack() as resources:
                folder = resources.enter_context(tempfile.TemporaryDirectory(prefix="hippo-memory-"))
                self.open(folder)
                resources.callback(self._resources.close)
                self._resources = resources.pop_all()
        return self._stores

    def teach(
        self,
        texts: str | Sequence[str],
        when: str = "",
        who: str = "",
        pin: bool = False,
        provenance: str = "",
        progress: Progress | None = None,
    ) -> list[TeachResult]:
        """Tell one sentence or many, in order. They are written in blocks of 64, each whole or not at all.

        Args:
            when: the occasion, who: the teller, provenance: where it comes from, by which it can be forgotten. All are kept beside the
                text; what the model reads is the text alone.
            pin: ask a gate to keep it.
            progress: called after each block.

        Raises:
            LabError: a text is empty, or too long for the model; then nothing is written.
        """
        texts = arguments.sentences(texts)
        arguments.require(progress is None or callable(progress), "progress is a function, or None", progress)
        fields = {"teller": who, "pin": pin, "provenance": provenance, "context_key": when}
        taught: list[TeachResult] = []
        for block in self.tell([Observation(Statement("", WORLD, text, 0), **fields) for text in texts]):
            taught += block
            if progress:
                progress(len(taught), len(texts))
        return taught

    def tell(self, observations: Sequence[Observation]) -> Iterator[list[TeachResult]]:
        """Tell what a teller says, block by block, as the iterator is drawn from; it may be left between two blocks. Sentences are numbered
        in the order of their telling, and all lie in one world, whatever the observations say."""
        observations = self._checked(observations)
        self._finish()
        for start in range(0, len(observations), BLOCK):
            block = observations[start : start + BLOCK]
            first = 1 + max(self._count(store) for store in self.stores.values())
            observed = [_observation(number, one.statement.text, one.told) for number, one in enumerate(block, first)]
            begun = {"tell": [{"text": observation.statement.text, **observation.told} for observation in observed], "first": first}
            with self._all_stores(begun if len(self.stores) > 1 else None):
                decided = self._teach(observed, self.stores)
            self._end()
            yield [_taught(decision) for decision in decided]

    def _teach(self, observed: Sequence[Observation], parts: Iterable[str]) -> list[Decision]:
        """Tell a block to these parts; what the last one decided."""
        decided = refused = [Decision(observation.statement, 0.0, {}, {}, "refuse") for observation in observed]
        for name in parts:
            writer, store, calibration = self._writers[name], self.stores[name], self._calibration(name)
            with private():
                decided = writer.teach(observed, store, calibration) if writer.writes else refused
            store.note(NUMBERED, observed[-1].statement.time)
        return decided

    @contextmanager
    def _all_stores(self, begun: Mapping[str, Any] | None = None) -> Iterator[None]:
        """What is written to the stores within is on the disk when the block ends, none of it after an error. A kill can come between the
        commits of two stores: `begun` says what is done, so that `_finish` can end it; `_end` says that it is."""
        assert self.folder is not None
        with ExitStack() as blocks:
            for store in self.stores.values():
                blocks.enter_context(store.together())
            yield
            if begun is not None:
                write_sealed(self.folder / BEGUN, {**begun, "memory": self._identified})
                sync_folder(self.folder)

    def _end(self) -> None:
        assert self.folder is not None
        (self.folder / BEGUN).unlink(missing_ok=True)

    def _finish(self) -> None:
        """Finish what a kill or a full disk interrupted."""
        stores = self.stores
        assert self.folder is not None
        path = self.folder / BEGUN
        if self._read_only or not os.path.lexists(path):
            return
        begun = read_sealed(path, "move it away, open the memory again, and do what it says once more if it is yours")
        if begun.pop("memory", None) != self._identified or path.is_symlink():
            raise LabError(f"{path} was written for another memory; move it away, then open this one again")
        try:
            forgotten = arguments.forgotten(begun["forget"]) if "forget" in begun else None
            observed = [] if forgotten else [_begun(number, fields) for number, fields in enumerate(begun["tell"], begun["first"])]
            last = observed[-1].statement.time if observed else 0
        except (LabError, LookupError, TypeError, AttributeError) as error:
            raise LabError(f"{path} does not say what was begun ({in_a_line(error)}); move it away, then open this memory again") from None
        if forgotten:
            self._forget(forgotten, again=True)
            return
        with self._all_stores():
            self._teach(observed, [name for name, store in stores.items() if self._count(store) < last])
        self._end()

    @property
    def _identified(self) -> str:
        """The number that this folder's memory was given when a writer first opened it."""
        [store, *_] = self.stores.values()
        if IDENTIFIED not in store.meta:
            store.note(IDENTIFIED, secrets.token_hex(16))
        return store.meta[IDENTIFIED]

    def _checked(self, observations: Sequence[Observation]) -> list[Observation]:
        """All that is told, in its normal form; LabError, before any of it is written, where one cannot be."""
        from hippo_core.models.prompt import too_long

        observed = arguments.observations(observations)
        texts = [observation.statement.text for observation in observed]
        long = too_long(self._lm, texts, self.preset.settings.decoding, OWN_ANSWER_TOKENS) if self.preset.taught else []
        if long:
            limit = f"the {self._lm.spec.context_limit} tokens of {self._lm.spec.name}"
            raise LabError(f"text {long[0] + 1} of {len(texts)} does not fit into {limit} with a question and an answer; split it")
        return observed

    def _count(self, store: TraceStore) -> int:
        count = store.meta.get(NUMBERED, 0)
        if type(count) is not int or count < 0:
            raise store.file.damaged("how many sentences it was told is no number")
        return count

    def _calibration(self, name: str) -> Any:
        """What a gate was calibrated to, on validation worlds of `episodic` when it is first needed, and noted in the store."""
        store, writer = self.stores[name], self._writers[name]
        if not writer.settings.calibrates:
            return None
        if "calibration" not in store.meta:
            from hippo_core.suites import get_suite
            from hippo_core.suites.draw import drawn_worlds, suite_settings

            settings = suite_settings(CALIBRATED_ON, "default", self._lm.spec.context_limit, None)
            worlds = drawn_worlds(get_suite(CALIBRATED_ON).name, "default", 320, 1337, "val", settings)
            store.note("calibration", writer.calibrate([Observation.of(fact) for fact in world.facts] for world in worlds))
        return store.meta["calibration"]

    def ask(self, question: str, tokens: int = OWN_ANSWER_TOKENS, recall: bool = True) -> Answer:
        """The model's answer, of at most so many tokens, with what the memory brings, and where it comes from. `recall` False: the memory
        is off, and the model answers from what sleep has put into it, if anything."""
        question = arguments.sentence(question, "the question", "a question")
        tokens = arguments.integer(tokens, "tokens", most=self._lm.spec.context_limit)
        arguments.flag(recall, "recall")
        consolidation = self._consolidation
        if not consolidation.fits(question):
            return self._world().ask(question, tokens, recall=recall)
        with consolidation.on():
            return replace(self._world(consolidated=True).ask(question, tokens, recall=recall), consolidated=True)

    def recall(self, question: str, k: int = LISTED) -> RecallResult:
        """The k best traces for a question, without asking the model."""
        return self._world().recall(arguments.sentence(question, "the question", "a question"), arguments.integer(k, "k"))

    def _world(self, consolidated: bool = False) -> OpenWorld:
        """The traces as they stand now, opened by the method and kept until a store changes. The consolidated model has a method of its
        own, as keys and values of traces are others there."""
        state = (*((name, store.changes) for name, store in self.stores.items()), self._consolidation.version if consolidated else None)
        known = self._opened.get(consolidated)
        if known is None or known[0] != state:
            method = self.preset.method(self._lm, self.preset.settings) if consolidated else self.method
            if known is None or consolidated:
                method.warm_up()
            known = self._opened[consolidated] = (state, OpenWorld(method, self.traces()))
        return known[1]

    def traces(self) -> list[Trace]:
        """All traces that can be recalled, in order of telling, of each part."""
        return [replace(trace, memory=name) for name, store in self.stores.items() for trace in store.traces(WORLD)]

    @property
    def language_model(self) -> "LanguageModel":
        """The model that answers; it is loaded when something of it is first needed."""
        return self._lm

    def __len__(self) -> int:
        return sum(store.size(WORLD) for store in self.stores.values())

    def forget(self, what: int | str) -> int:
        """Remove the sentence of a number, or all of a provenance, for good, and all that sleep has put into the model.

        While another process reads the store, a warning says that the words are still in its file. Returns how many traces went.
        LabError where there is no such number or provenance.
        """
        what = arguments.forgotten(what)
        self._finish()
        return self._forget(what)

    def _forget(self, what: int | str, again: bool = False) -> int:
        """`again`: it goes on after a kill, so that nothing need be left of it."""
        with self._all_stores({"forget": what}):
            removed = sum(self._delete(name, what) for name in self.stores)
            if not removed and not again:
                kind = "a provenance that was given to `teach`" if isinstance(what, str) else "a number that `teach` or `recall` has given"
                raise LabError(f"nothing is stored of {arguments.brief(what)}; expected {kind}")
        for store in self.stores.values():
            store.compact()
        self.wake()
        self._end()
        return removed

    def _delete(self, name: str, what: int | str) -> int:
        writer, store, calibration = self._writers[name], self.stores[name], self._calibration(name)
        with private():
            if isinstance(what, str):
                return writer.delete(store, provenance=what, calibration=calibration)
            ids = [trace.id for trace in store.traces(WORLD) if trace.source == str(what)]
            return writer.delete(store, ids, calibration=calibration) if ids else 0

    def sleep(self, consolidate: str = "", steps: int = 200, progress: Progress | None = None) -> Slept:
        """Rehearse what is stored: traces are cued with noise and recalled, which strengthens those that are found.

        Args:
            consolidate: a way into the model (`lora`, `gated_lora`, `sparse`), in place of an earlier one; empty: the model
                stays as it is. After a kill it is there whole or not at all, as is the rehearsal of each part.
            steps: of training.
            progress: called after each step, and before the first. What it raises stops the sleep, as Ctrl-C does: everything is as before.

        Raises:
            LabError: the method has no replay and nothing is to be consolidated, an unknown way, steps below 1, nothing can be asked about
                what is stored, or the folder is open for reading only.
        """
        if not isinstance(consolidate, str):
            raise LabError(f"consolidate is the name of a way, such as lora, or empty, got {arguments.brief(consolidate)}")
        steps = arguments.integer(steps, "steps")
        arguments.require(progress is None or callable(progress), "progress is a function, or None", progress)
        begin, rows = time.perf_counter(), list[Mapping[str, Any]]()
        sleeping = {name: writer for name, writer in self._writers.items() if "replay" in writer.steps}
        if not sleeping and not consolidate:
            raise LabError(f"{self.preset.name} has no replay, so that it can only sleep to consolidate; memory/hei_nw has one")
        consolidation = self._consolidation
        self._require_writer()
        self._finish()
        if consolidate:
            with closing(consolidation.learn(self.traces(), consolidate, steps)) as learning:  # also where what `progress` raises is kept
                for done in learning:
                    if progress:
                        progress(done, steps)
        for name, writer in sleeping.items():
            with self.stores[name].together():
                own = list(writer.replay(WORLD, self.stores[name]))
                self.stores[name].note("replay", {"items": len(own), "cycles": len({row["cycle"] for row in own})})
            rows += own
        counts = [sum(int(row[column]) for row in rows) for column in ("recalled", "merged")]
        return Slept(len(rows), len({row["cycle"] for row in rows}), *counts, ms=(time.perf_counter() - begin) * 1e3)

    def wake(self) -> None:
        """Take out of the model what sleep has put into it, for good; the store stays as it is. LabError where it is open for reading."""
        consolidation = self._consolidation
        self._require_writer()
        consolidation.remove()

    @property
    def consolidated(self) -> Consolidated | None:
        """What sleep has put into the model: sentences, way and time; None where there is nothing. LabError where it is damaged."""
        return self._consolidation.consolidated

    @property
    def _consolidation(self) -> Consolidation:
        _ = self.stores  # opens a folder where none is open
        assert self._open_consolidation is not None
        return self._open_consolidation

    def _require_writer(self) -> None:
        if self._read_only:
            raise LabError(f"{self.folder} is open read-only; open it for writing to change what sleep has put into the model")

    def close(self) -> None:
        """Give the folder back. Everything is on the disk already. LabError, when that is done, where the model is in mid-sleep."""
        try:
            if self._open_consolidation is not None:
                self._open_consolidation.detach()
        finally:
            self._close_stores()

    def _close_stores(self) -> None:
        self._opened, stores, resources = {}, list(self._stores.values()), self._resources
        self._stores, self._resources = {}, ExitStack()
        for store in stores:
            store.file.rows("PRAGMA busy_timeout = 200")
        with suppress(LabError):  # a reader has it open: nothing is lost, the log lies beside the file until a writer closes it
            resources.close()
        self.method.forget()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()

    def __repr__(self) -> str:
        where = f" in {self.folder}" if self.folder else ""
        return f"Memory({self._lm.spec.name!r}, {self.preset.name!r}{where})"


def _lazy(model: str) -> LazyModel:
    spec = load_spec(model)
    if reason := missing(spec):
        other = '; or take Memory("hippo-tiny"), which reads only sentences like those of the shipped suites' if model == READER else ""
        raise LabError(f"{reason}{other}")
    return LazyModel(spec)


def _taught(decision: Decision) -> TeachResult:
    return TeachResult(int(decision.statement.source), decision.statement.text, decision.action, decision.S, dict(decision.contributions))


def _observation(number: int, text: str, fields: Mapping[str, Any]) -> Observation:
    return Observation(Statement(str(number), WORLD, text, number), **fields)


def _begun(number: int, fields: Mapping[str, Any]) -> Observation:
    rest = {name: value for name, value in fields.items() if name != "text"}
    return arguments.observation(_observation(arguments.integer(number, "its number"), fields["text"], rest), f"text {number}")
