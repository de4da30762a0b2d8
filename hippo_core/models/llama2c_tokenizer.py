"""A llama2.c tokenizer file as a byte-fallback BPE: pieces with scores become merges, the best score merged first.

File: int32 longest piece, then for each piece float32 score, int32 length, bytes; little-endian. Piece 0 is the unknown token, 1 begins
and 2 ends a text, 3 to 258 are the bytes, the rest are pieces with real spaces in them.
"""

import struct
from pathlib import Path
from typing import NamedTuple

from tokenizers import AddedToken, Tokenizer, decoders, normalizers, processors
from tokenizers.models import BPE
from transformers import PreTrainedTokenizerFast

from hippo_core.errors import LabError

SPECIAL = ("<unk>", "<s>", "</s>")
FIRST_PIECE = len(SPECIAL) + 256
SPACE = "\u2581"


class Piece(NamedTuple):
    """A token's text, a space written as U+2581, and its score."""

    text: str
    score: float


def read_pieces(path: Path, count: int) -> list[Piece]:
    """The `count` pieces of a llama2.c tokenizer file; LabError unless the file holds exactly these."""
    try:
        data = path.read_bytes()
        pieces, offset = [], 4
        for _ in range(count):
            score, length = struct.unpack_from("<fi", data, offset)
            offset += 8 + length
            if length < 0 or offset > len(data):
                raise ValueError("a piece reaches beyond the end")
            pieces.append(Piece(data[offset - length : offset].decode().replace(" ", SPACE), score))
    except OSError as error:
        raise LabError(f"cannot read {path}: {error.strerror}") from None
    except (struct.error, ValueError) as error:
        raise LabError(f"{path} is no llama2.c tokenizer of {count} pieces: {error}") from None
    if offset != len(data) or len(pieces) < FIRST_PIECE or pieces[3].text != "<0x00>":
        raise LabError(f"{path} is no llama2.c tokenizer of {count} pieces: it belongs to another checkpoint, or has another format")
    return [Piece(text, 0.0) for text in SPECIAL] + pieces[len(SPECIAL) :]


def build_tokenizer(pieces: list[Piece], longest: int) -> PreTrainedTokenizerFast:
    """A tokenizer for Hugging Face models; `longest` is the number of positions of its model. Texts are opened by <s>."""
    vocabulary = {piece.text: index for index, piece in enumerate(pieces)}
    words = Tokenizer(BPE(vocabulary, _merges(pieces), unk_token=SPECIAL[0], fuse_unk=True, byte_fallback=True))
    words.normalizer = normalizers.Sequence([normalizers.Prepend(SPACE), normalizers.Replace(" ", SPACE)])
    words.decoder = decoders.Sequence([decoders.Replace(SPACE, " "), decoders.ByteFallback(), decoders.Fuse(), decoders.Strip(" ", 1, 0)])
    words.post_processor = processors.TemplateProcessing(single="<s> $A", pair="<s> $A <s> $B", special_tokens=[("<s>", 1)])
    words.add_special_tokens([AddedToken(token, special=True, normalized=False) for token in SPECIAL])
    return PreTrainedTokenizerFast(
        tokenizer_object=words, unk_token=SPECIAL[0], bos_token=SPECIAL[1], eos_token=SPECIAL[2], model_max_length=longest
    )


def _merges(pieces: list[Piece]) -> list[tuple[str, str]]:
    """Every way to make a piece out of two others, in the order in which scores would have them merged."""
    scores = {piece.text: piece.score for piece in pieces[FIRST_PIECE:]}
    splits = [
        (-score, text[:cut], text[cut:])
        for text, score in scores.items()
        for cut in range(1, len(text))
        if text[:cut] in scores and text[cut:] in scores
    ]
    return [(left, right) for _, left, right in sorted(splits)]
