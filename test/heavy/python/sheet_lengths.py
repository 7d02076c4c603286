"""How rows are put together: for each group of four, the length of each input of the model, and whether it needs a mask."""

import json
import sys
from types import SimpleNamespace

import numpy as np

given = json.load(sys.stdin)
sys.path.insert(0, given["folder"])
from lora_sheets import sheets_of  # noqa: E402

ROWS = 4
VOCABULARY = 64


def lengths(common, own, trained):
    draw = np.random.default_rng(1)
    prompt = draw.integers(0, VOCABULARY, common)
    ids = [np.concatenate([prompt, draw.integers(0, VOCABULARY, own)]) for _ in range(ROWS)]
    # Trained are the first token that is not shared, and the last ones.
    samples = [np.r_[common, np.arange(common + own - trained, common + own)] for _ in range(ROWS)]
    begins = np.arange(ROWS + 1) * (trained + 1)
    sheets = sheets_of(SimpleNamespace(ids=ids, samples=samples, begins=begins), 1 << 30, VOCABULARY)
    return [[sheet.ids.shape[1], sheet.mask is not None] for sheet in sheets]


print(json.dumps([lengths(**group) for group in given["groups"]]))
