"""What is in the runs that W&B wrote to a folder while it was offline. Prints JSON."""

import glob
import json
import struct
import sys

from wandb.proto import wandb_internal_pb2

# The log format of LevelDB, after seven bytes of W&B: the checksum, the length and the kind of a piece.
FILE_HEADER, BLOCK, HEADER = 7, 32768, 7
FULL, LAST = 1, 4


def records(data):
    at, whole = FILE_HEADER, b""
    while at + HEADER <= len(data):
        left = BLOCK - at % BLOCK
        if left < HEADER:
            at += left
            continue
        size, kind = struct.unpack_from("<HB", data, at + 4)
        if kind == 0:
            return
        whole += data[at + HEADER : at + HEADER + size]
        at += HEADER + size
        if kind in (FULL, LAST):
            record = wandb_internal_pb2.Record()
            record.ParseFromString(whole)
            yield record
            whole = b""


runs = []
for path in sorted(glob.glob(json.load(sys.stdin) + "/wandb/offline-run-*/*.wandb")):
    run = {"steps": []}
    with open(path, "rb") as file:
        for record in records(file.read()):
            kind = record.WhichOneof("record_type")
            if kind == "run":
                config = {item.key: json.loads(item.value_json) for item in record.run.config.update}
                run |= {"id": record.run.run_id, "project": record.run.project, "config": config}
            elif kind == "history":
                values = {item.key or "/".join(item.nested_key): item.value_json for item in record.history.item}
                run["steps"].append({key: json.loads(value) for key, value in values.items()})
    runs.append(run)
json.dump(runs, sys.stdout)
