"""Turn a GGUF file into a folder of safetensors once: de-quantizing it at every load takes twenty times as long."""

import errno
import os
from contextlib import redirect_stderr
from io import StringIO
from pathlib import Path
from typing import Any

import torch
from transformers import AutoModelForCausalLM, AutoTokenizer

from hippo_core.errors import LabError
from hippo_core.models.load import HARMLESS, quiet

FULL = os.strerror(errno.ENOSPC)


def convert_gguf(path: Path, architecture: str, out: Path) -> None:
    """Write model (bfloat16, safetensors), configuration and tokenizer of a GGUF file into the folder `out`. LabError where it cannot be
    read or is of another architecture; OSError (ENOSPC) where the disk is full."""
    where = {"pretrained_model_name_or_path": str(path.parent), "gguf_file": path.name, **HARMLESS}
    with quiet(), redirect_stderr(StringIO()):  # its progress bar does not ask whether bars are wanted
        try:
            model: Any = AutoModelForCausalLM.from_pretrained(**where, dtype=torch.bfloat16)
            tokenizer = AutoTokenizer.from_pretrained(**where)
        except Exception as error:
            raise LabError(f"cannot read {path.name}: {' '.join(str(error).split())[:200]}") from error
        if model.config.model_type != architecture:
            raise LabError(f"{path.name} is a {model.config.model_type}, expected a {architecture}")
        _plain(model)
        try:
            model.save_pretrained(out)
            tokenizer.save_pretrained(out)
            (out / "model.safetensors").chmod(0o644)
        except Exception as error:  # the libraries tell a full disk in words only
            raise OSError(errno.ENOSPC, FULL, str(out)) if FULL in str(error) else error from None


def _plain(model: Any) -> None:
    """Forget that the weights were quantized: they are not any more, and would be taken for it when the folder is loaded."""
    model.is_quantized = False
    model.hf_quantizer = None
    if hasattr(model.config, "quantization_config"):
        del model.config.quantization_config
