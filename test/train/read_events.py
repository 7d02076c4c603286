"""What TensorBoard finds in folders of event files, as its web server reads them. Prints JSON."""

import json
import sys

from tensorboard.backend.event_processing.plugin_event_multiplexer import EventMultiplexer
from tensorboard.util import tensor_util

found = {}
for folder in json.load(sys.stdin):
    multiplexer = EventMultiplexer(tensor_size_guidance={"scalars": 0, "text": 0})
    multiplexer.AddRunsFromDirectory(folder)
    multiplexer.Reload()
    found[folder] = {}
    for run in multiplexer.Runs():
        tags = {}
        for plugin in ("scalars", "text"):
            for tag in multiplexer.PluginRunToTagToContent(plugin).get(run, {}):
                points = []
                for event in multiplexer.Tensors(run, tag):
                    value = tensor_util.make_ndarray(event.tensor_proto).item()
                    shown = value if plugin == "scalars" else value.decode("utf-8")
                    points.append([event.step, shown, event.wall_time])
                tags[tag] = {"plugin": plugin, "points": points}
        found[folder][run] = tags
json.dump(found, sys.stdout)
