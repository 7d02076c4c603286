"""The training half of the sidecar."""


def ops(state):
    return {}
