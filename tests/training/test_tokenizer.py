"""hippo-tiny's tokenizer: learnt again it keeps a line's end, and so does the one that is shipped."""

import pytest
from transformers import AutoTokenizer

from hippo_core.files import root
from recipes import tokenizer as vocabulary


@pytest.fixture(params=["learnt", "shipped"])
def tokenizer(request, monkeypatch):
    if request.param == "shipped":
        return AutoTokenizer.from_pretrained(root() / "data/weights/hippo-tiny", trust_remote_code=False)
    monkeypatch.setattr(vocabulary, "corpus", lambda seed: iter(["Carla sold a lamp in May.", "Who sold a lamp?"]))
    return vocabulary.train(1)


@pytest.mark.parametrize("text", ["Carla\nsold a lamp", "naïve 猫\n\nx", "Question: Who?\nAnswer: Carla\n"])
def test_a_decoded_answer_keeps_its_line_ends_and_bytes(tokenizer, text):
    ids = [*tokenizer(text, add_special_tokens=False).input_ids, tokenizer.eos_token_id]
    assert tokenizer.decode(ids, skip_special_tokens=True) == text


def test_only_what_the_template_writes_is_special(tokenizer):
    assert set(tokenizer.all_special_tokens) == {*vocabulary.SPECIAL.values(), *vocabulary.ROLES}
    assert {str(token) for token in tokenizer.added_tokens_decoder.values()} == set(tokenizer.all_special_tokens)
