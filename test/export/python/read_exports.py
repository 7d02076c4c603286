"""Loads exported files as their users would, and prints what they have as JSON."""

import json
import sys

from atif import Trajectory
from datasets import load_dataset

found = {}
for name, path in json.loads(sys.argv[1]).items():
    if name.startswith("atif"):
        with open(path, encoding="utf-8") as file:
            documents = [Trajectory.model_validate_json(line) for line in file]
        found[name] = [document.to_json_dict() for document in documents]
    else:
        kind = "parquet" if path.endswith(".parquet") else "json"
        data = load_dataset(kind, data_files=path, split="train")
        features = {key: repr(value) for key, value in data.features.items()}
        found[name] = {"columns": data.column_names, "features": features, "rows": data.to_list()}
json.dump(found, sys.stdout)
