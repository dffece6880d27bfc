"""Applies one operation by name to each image of a batch, without a loop over images.

Images are sorted by operation, each operation runs on its slice of the batch, and the original order is restored.
"""

import numpy as np
import torch
from torch import Tensor

from papi.data.views.colour import COLOUR_OPERATIONS
from papi.data.views.geometry import NEAREST_MOVES, SHEARS, move_nearest

# Operations that move nearest pixels are last, so that their images are contiguous at the end of a sorted batch.
OPERATIONS = ("identity", *COLOUR_OPERATIONS, *SHEARS, *NEAREST_MOVES)
OPERATION_NUMBER = {name: number for number, name in enumerate(OPERATIONS)}


def apply_operations(images: Tensor, operations: np.ndarray, parameters: np.ndarray, fill: int) -> Tensor:
    """Apply to image i of `(B, C, H, W) uint8` the operation `OPERATIONS[operations[i]]` with `parameters[i]`.

    `operations` `(B,)` are integers, `parameters` `(B,)` float64; `fill` is the grey level of pixels from outside.
    """
    height, width = images.shape[2:]
    order = np.argsort(operations, kind="stable")
    batch = images.index_select(0, torch.from_numpy(order).to(images.device))
    ends = np.bincount(operations, minlength=len(OPERATIONS)).cumsum().tolist()
    done, affine = [batch[: ends[0]]], []
    for name, start, end in zip(OPERATIONS[1:], ends, ends[1:], strict=False):
        if start == end:
            continue
        values = parameters[order[start:end]]
        if name in NEAREST_MOVES:
            affine.append(NEAREST_MOVES[name](values, height, width))
        elif name in SHEARS:
            done.append(SHEARS[name](batch[start:end], values, fill))
        else:
            done.append(COLOUR_OPERATIONS[name](batch[start:end], values))
    if affine:
        moves = np.concatenate(affine)
        done.append(move_nearest(batch[len(batch) - len(moves) :], moves, fill))
    return torch.cat(done).index_select(0, torch.from_numpy(np.argsort(order)).to(images.device))
