"""Whether a model that lies on this disk is there, and the way to get it where it is not. Loads no torch."""

from hippo_core.models.packages.pins import packages
from hippo_core.models.spec import ModelSpec


def missing(spec: ModelSpec) -> str | None:
    """What a local model lacks, its weights or its adapter, and the way to get it, in one line; None where nothing is missing.

    Of a model on the Hugging Face hub only the adapter is looked for.
    """
    if spec.is_local and not spec.path.exists():
        return f"model {spec.name}: no weights at {spec.source}; {_remedy(spec)}"
    if spec.adapter_path and not spec.adapter_path.is_dir():
        return f"model {spec.name}: no adapter at {spec.adapter}; run `make base-model MODEL={spec.path.name}`"
    return None


def _remedy(spec: ModelSpec) -> str:
    if spec.path in {package.folder for package in packages().values()}:
        return "run `make models`"
    return "run `make base-model`" if spec.name == "hippo-tiny" else "put the weights there, or change `source`"
