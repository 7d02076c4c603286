"""Computes for one LoRA policy: training, and sampling for small models. Started by src/train/lora/sidecar.ts.

Frames, in both directions: the length of a header as a u32 (little-endian), the header as JSON, then binary parts whose
lengths are `parts` of the header. Requests `{ id, op, args, parts }` arrive on standard input and are executed one at a time;
answers `{ id, ok, result | error, parts }` are written to the original standard output. The first frame says "ready".
"""

import json
import os
import queue
import struct
import sys
import threading
import time
import traceback

# Libraries print, and programs that they start may read: neither may touch the frames. So this precedes every
# other import.
REQUESTS = os.fdopen(os.dup(0), "rb", buffering=1 << 20)
ANSWERS = os.fdopen(os.dup(1), "wb", buffering=0)
os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
os.dup2(2, 1)
sys.stdout = sys.stderr

PROTOCOL = 1
MAX_HEADER = 64 << 20
MESSAGE_CHARS = 4000
# As in src/train/heartbeat.ts.
HEARTBEAT_SECONDS = 1
WRITING = threading.Lock()


def read_exactly(size):
    """Reads the next bytes. At the end of input, the parent has exited: exit, even in the middle of a computation."""
    data = REQUESTS.read(size)
    if len(data) < size:
        os._exit(0)
    return data


def read_frame():
    (size,) = struct.unpack("<I", read_exactly(4))
    if size > MAX_HEADER:
        raise ValueError(f"invalid frame: a header of {size} bytes")
    header = json.loads(read_exactly(size))
    return header, [read_exactly(length) for length in header["parts"]]


def read_frames(requests):
    """Runs in a separate thread, so that the end of input is noticed while the main thread computes."""
    try:
        while True:
            requests.put(read_frame())
    except BaseException:  # noqa: BLE001 - without a reader, the process must not go on
        traceback.print_exc()
        os._exit(3)


def write_all(data):
    view = memoryview(data).cast("B")
    while len(view) > 0:
        view = view[ANSWERS.write(view) :]


def answer(header, parts=()):
    parts = [memoryview(part).cast("B") for part in parts]
    text = json.dumps({**header, "parts": [len(part) for part in parts]}, allow_nan=False).encode()
    try:
        with WRITING:
            write_all(struct.pack("<I", len(text)) + text)
            for part in parts:
                write_all(part)
    except BrokenPipeError:
        os._exit(0)


def send_heartbeats():
    """Runs in a separate thread: PyTorch releases the interpreter while it computes, so silence means that the process is
    stopped."""
    while True:
        time.sleep(HEARTBEAT_SECONDS)
        answer({"heartbeat": True})


def execute(operation, header, parts):
    """An operation returns its result, or its result and binary parts."""
    found = operation(header.get("args") or {}, parts)
    return found if isinstance(found, tuple) else (found, ())


def serve(requests, operations):
    while True:
        header, parts = requests.get()
        try:
            operation = operations.get(header["op"])
            if operation is None:
                raise ValueError(f"unknown operation {header['op']}")
            result, binary = execute(operation, header, parts)
            answer({"id": header["id"], "ok": True, "result": result}, binary)
        except Exception as error:  # noqa: BLE001 - sent to the driver as the answer
            traceback.print_exc()
            answer({"id": header["id"], "ok": False, "error": described(error)})


def described(error):
    """Our own errors have a `code` of manyworlds. System error codes, such as ENOSPC, are in the text."""
    message = str(error) or type(error).__name__
    if len(message) > MESSAGE_CHARS:
        message = message[:MESSAGE_CHARS] + " …"
    return {"type": getattr(error, "code", None) or type(error).__name__, "message": message}


def main():
    requests = queue.Queue()
    threading.Thread(target=read_frames, args=(requests,), daemon=True).start()
    threading.Thread(target=send_heartbeats, daemon=True).start()
    import torch

    import lora_model
    import lora_training

    state = lora_model.State()
    operations = {"open": lambda args, _: lora_model.open_model(state, args), **lora_training.ops(state)}
    try:
        import lora_sampling

        operations.update(lora_sampling.ops(state))
    except ModuleNotFoundError as error:
        if error.name != "lora_sampling":
            raise
    answer({"ready": True, "protocol": PROTOCOL, "pid": os.getpid(), "torch": torch.__version__})
    serve(requests, operations)


if __name__ == "__main__":
    main()
