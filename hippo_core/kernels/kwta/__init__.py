"""k-winners-take-all: a dense row becomes a sparse code of its largest entries, as the dentate gyrus separates patterns.

    q = round(127 x / max|x|)        half to even, in float32: x / max|x| first, then times 127
    code = the K entries of the largest |q|, ties to the lower index; zeros never win

x is float32 [N, D], without unit; the code has int32 indices [N, K] in ascending order and int8 values [N, K], padded by index -1 and
value 0 where fewer than K entries of a row are not zero. Since q are integers and every step is exact or one IEEE rounding, all versions
give the same bits. Marr 1971 has the idea; k-WTA as in Makhzani and Frey 2013 (arXiv 1312.5663), where winners keep their floats: here
they are quantised *before* they are chosen, so that rounding cannot change who wins.
"""

import torch
from torch import Tensor

from hippo_core.errors import LabError
from hippo_core.kernels.code import Code, version


def kwta(x: Tensor, winners: int, impl: str = "cpu") -> Code:
    """The sparse code of each row of `x` float32 [N, D], of at most `winners` entries; no row or a row of zeros are fine.

    LabError for another dtype or shape, for fewer than one winner, for NaN or infinity (naming the row), and as `code.version` raises.
    """
    if x.ndim != 2 or x.dtype != torch.float32 or not x.shape[1]:
        raise LabError(f"kwta expects float32 [N, D] with D of at least 1, got {x.dtype} {[*x.shape]}")
    if winners < 1:
        raise LabError(f"kwta expects at least 1 winner, got {winners}")
    kernel = version("kwta", impl, x.device)
    x = x.detach().contiguous()
    largest = torch.maximum(x.amax(1), -x.amin(1))  # of each row's |x|; NaN and infinity stay what they are
    if not largest.isfinite().all():
        row = int(largest.isfinite().logical_not().nonzero()[0])
        raise LabError(
            f"kwta expects finite numbers, row {row} has {'NaN' if largest[row].isnan() else 'an infinite one'}; mend the encoder"
        )
    return kernel.kwta(x, largest, winners)
