"""Makes the calls of a training with Tinker's own SDK, and prints what it hears: JSON in, JSON out."""

import json
import os
import sys

os.environ["TINKER_TELEMETRY"] = "0"

import numpy as np
import tinker
from tinker import types

order = json.load(sys.stdin)
service = tinker.ServiceClient(base_url=order["baseURL"], api_key=order["key"])


def tensors(inputs):
    kind = {"target_tokens": np.int64}
    return {
        name: types.TensorData.from_numpy(np.asarray(values, dtype=kind.get(name, np.float32)))
        for name, values in inputs.items()
    }


def data(rows):
    return [
        types.Datum(model_input=types.ModelInput.from_ints(row["tokens"]), loss_fn_inputs=tensors(row["inputs"]))
        for row in rows
    ]


def passed(result):
    return {
        "logProbs": [output["logprobs"].data for output in result.loss_fn_outputs],
        "metrics": dict(result.metrics),
    }


said = {"passes": []}
model = service.create_lora_training_client(base_model=order["base"], rank=order["rank"], seed=0)
for one in order["passes"]:
    run = model.forward if one["forwardOnly"] else model.forward_backward
    said["passes"].append(passed(run(data(one["data"]), one["lossFn"], one["config"] or None).result()))
step = model.optim_step(types.AdamParams(**order["adam"])).result()
said["optimStep"] = step.metrics
said["published"] = model.save_weights_for_sampler("manyworlds-000001").result().path
said["state"] = model.save_state("manyworlds-000001", overwrite=True).result().path

again = service.create_training_client_from_state_with_optimizer(said["state"])
first = order["passes"][0]
said["again"] = passed(again.forward(data(first["data"]), first["lossFn"], first["config"] or None).result())

sampler = service.create_sampling_client(model_path=said["published"])
prompt = types.ModelInput.from_ints(order["prompt"])
params = types.SamplingParams(max_tokens=4, seed=3, temperature=1.0)
sampled = sampler.sample(prompt=prompt, num_samples=2, sampling_params=params).result()
said["samples"] = [
    {"ids": list(one.tokens), "logProbs": list(one.logprobs), "stop": one.stop_reason} for one in sampled.sequences
]
said["promptLogProbs"] = sampler.compute_logprobs(prompt).result()

try:
    service.create_lora_training_client(base_model="toy/unknown", rank=4, seed=0)
except Exception as error:  # noqa: BLE001 - the test compares the message
    said["unknown"] = str(error)
print(json.dumps(said))
