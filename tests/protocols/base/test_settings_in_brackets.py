"""A preset with settings in brackets, as commands take it."""

import pytest

from hippo_core.errors import LabError
from hippo_core.protocols.base.parameters import with_settings


@pytest.mark.parametrize(
    ("text", "name", "settings"),
    [
        ("memory/hei_nw", "memory/hei_nw", {}),
        ("memory/hei_nw[]", "memory/hei_nw", {}),
        ("rag_head[k=5;encoder=minilm]", "rag_head", {"k": 5, "encoder": "minilm"}),
        ('m[episodic.code.channels=["minilm", pieces];fusion=sum]', "m", {"episodic.code.channels": ["minilm", "pieces"], "fusion": "sum"}),
    ],
)
def test_values_are_read_as_yaml_lists_whole(text, name, settings):
    assert with_settings(text) == (name, settings)


@pytest.mark.parametrize(("text", "message"), [("m[k=5", "a bracket is open"), ("m[k]", "key=value"), ("m[k=1;k=2]", "k is given twice")])
def test_what_is_wrong_is_said(text, message):
    with pytest.raises(LabError, match=message):
        with_settings(text)
