"""Our log-likelihoods equal lm-evaluation-harness's (`make peers` installs it), and its lock changes nothing that the lab uses."""

import copy
import json
import math
import re
import sys
from types import SimpleNamespace

import pytest
import yaml

from benchmarks.continual import lm_harness as harness
from hippo_core.errors import LabError
from hippo_core.files import root
from hippo_core.models.score import log_likelihood, text_loss
from tests.models.handmade import WORLD_TEXTS

FACTS = WORLD_TEXTS["test-00000"]
CLOSE = 1e-4  # nats a request


def names(lock: str) -> list[str]:
    """The packages of a lock, each pinned."""
    lines = [line for line in (root() / lock).read_text(encoding="utf-8").splitlines() if line and not line.startswith("#")]
    pins = [re.fullmatch(r"([A-Za-z0-9_.-]+)==[0-9][0-9A-Za-z.]*(; sys_platform == '[a-z]+')?", line) for line in lines]
    assert pins and all(pins)
    return [re.sub(r"[-_.]+", "-", pin[1]).lower() for pin in pins if pin]


def test_peers_and_the_lab_have_no_package_in_common():
    assert not set(names("requirements-peers.lock")) & set(names("requirements.lock"))


@pytest.fixture
def peer(lm):
    """The harness around the same weights, in batches of 3."""
    peers = pytest.importorskip("lm_eval.models.huggingface", reason="lm-evaluation-harness is not installed: make peers")

    def around(**more):
        given = {"tokenizer": copy.deepcopy(lm.tokenizer), "batch_size": 3, "max_length": lm.spec.context_limit}
        return peers.HFLM(pretrained=lm.model, **{**given, **more})

    return around


def requests(*arguments: tuple[str, ...]) -> list[SimpleNamespace]:
    return [SimpleNamespace(args=each, task_name=None) for each in arguments]


@pytest.mark.parametrize("labels", [(" Mara", " Otto"), (" a lamp at the station.", " bread", "\nin the kitchen, of course"), (".",)])
def test_continuations_of_one_and_of_several_tokens(lm, peer, labels):
    pairs = [(fact, label) for fact in FACTS for label in labels]
    theirs = peer().loglikelihood(requests(*pairs), disable_tqdm=True)
    own = log_likelihood(lm, [lm.template.begin + context for context, _ in pairs], [label for _, label in pairs], batch_size=5)
    for likelihood, (nats, greedy) in zip(own, theirs, strict=True):
        assert likelihood.nats == pytest.approx(nats, abs=CLOSE)
        assert likelihood.greedy == greedy


def opened(lm, text: str) -> str:
    """The text behind the token that the harness puts before a rolling text, where our tokenizer does not put it by itself."""
    return text if lm.template.begin else lm.tokenizer.bos_token + text


def test_rolling_texts_of_one_window(lm, peer):
    theirs = peer(add_bos_token=False).loglikelihood_rolling(requests(*((fact,) for fact in FACTS)), disable_tqdm=True)
    assert [-text_loss(lm, [opened(lm, fact)]).nats for fact in FACTS] == pytest.approx(theirs, abs=CLOSE)
    assert -text_loss(lm, [opened(lm, fact) for fact in FACTS], batch_size=3).nats == pytest.approx(sum(theirs), abs=CLOSE)


def test_rolling_texts_of_whole_windows_only(lm, peer):
    text = " ".join(FACTS * 3)
    tokens, window = len(lm.encode(text)), 8
    while tokens % window or tokens == window:
        text = text[:-1]
        tokens = len(lm.encode(text))
    [theirs] = peer(add_bos_token=False, max_length=window).loglikelihood_rolling(requests((text,)), disable_tqdm=True)
    loss = text_loss(lm, [opened(lm, text)], window)
    assert loss.tokens == tokens
    assert -loss.nats == pytest.approx(theirs, abs=CLOSE)


def test_without_the_harness_the_way_out_is_said(lm, monkeypatch):
    monkeypatch.setitem(sys.modules, "lm_eval", None)
    for call in (lambda: harness.around(lm, 1), lambda: harness.evaluated(lm, ["mine"])):
        with pytest.raises(LabError, match=r"is not installed.*pip install 'lm_eval==0.4.13'"):
            call()
    assert f"lm_eval=={harness.VERSION}" in (root() / "requirements-peers.lock").read_text(encoding="utf-8")


def test_a_task_of_ones_own_is_asked(lm, tmp_path):
    pytest.importorskip("lm_eval.tasks", reason="lm-evaluation-harness with its tasks' packages is not installed")
    (tmp_path / "facts.jsonl").write_text("".join(json.dumps({"text": fact}) + "\n" for fact in FACTS), encoding="utf-8")
    task = {"task": "facts", "dataset_path": "json", "dataset_kwargs": {"data_files": {"test": str(tmp_path / "facts.jsonl")}}}
    task |= {"test_split": "test", "output_type": "loglikelihood_rolling", "doc_to_text": "", "doc_to_target": "{{text}}"}
    task["metric_list"] = [{"metric": "bits_per_byte", "aggregation": "bits_per_byte", "higher_is_better": False}]
    (tmp_path / "facts.yaml").write_text(yaml.safe_dump(task), encoding="utf-8")
    bits_per_byte = harness.evaluated(lm, ["facts"], include=tmp_path)["facts"]["bits_per_byte,none"]
    nats = sum(text_loss(lm, [opened(lm, fact)]).nats for fact in FACTS)
    assert bits_per_byte == pytest.approx(nats / math.log(2) / sum(len(fact.encode()) for fact in FACTS), rel=1e-4)
    with pytest.raises(LabError, match="knows no task 'nothing'"):
        harness.evaluated(lm, ["nothing"], include=tmp_path)
