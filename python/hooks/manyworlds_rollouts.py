"""A client of `manyworlds rollout-server`. Uses only the standard library."""

import json
import os
import ssl
import urllib.error
import urllib.request

TOKEN_VARIABLE = "MANYWORLDS_TOKEN_FILE"


class RolloutServerError(RuntimeError):
    """The rollout server refused a request or failed. `code` is stable; see docs/training-language-models.md."""

    def __init__(self, status, code, message):
        super().__init__(f"{message} [{code}]")
        self.status, self.code = status, code


class RolloutClient:
    """Calls a rollout server with the token of its `--token-file`; by default the file named by MANYWORLDS_TOKEN_FILE."""

    def __init__(self, url, *, token=None, token_file=None, ca_file=None, timeout=3600.0):
        self.url, self.timeout = url.rstrip("/"), timeout
        self._token = token or _read_token(token_file)
        self._context = ssl.create_default_context(cafile=ca_file) if self.url.startswith("https:") else None

    def rollouts(self, tasks, *, rollouts=1, model=None, seed=None, sampling=None, deadline_ms=None):
        """Runs each task `rollouts` times. Returns `run`, `store`, and `groups` in the order of `tasks`."""
        asked = {"tasks": tasks, "rollouts": rollouts, "model": model, "seed": seed, "sampling": sampling}
        asked["deadlineMs"] = deadline_ms
        body = json.dumps({key: value for key, value in asked.items() if value is not None}).encode()
        headers = {"authorization": f"Bearer {self._token}", "content-type": "application/json"}
        request = urllib.request.Request(f"{self.url}/v1/rollouts", data=body, headers=headers, method="POST")
        try:
            with urllib.request.urlopen(request, timeout=self.timeout, context=self._context) as response:
                return json.load(response)
        except urllib.error.HTTPError as error:
            raise _refusal(error) from None
        except urllib.error.URLError as error:
            raise RolloutServerError(
                None, "UNREACHABLE", f"the rollout server at {self.url} is not reachable: {error.reason}"
            ) from error


def _refusal(error):
    text = error.read().decode(errors="replace")
    try:
        found = json.loads(text)["error"]
        return RolloutServerError(error.code, found["code"], found["message"])
    except (ValueError, KeyError, TypeError):
        return RolloutServerError(error.code, "HTTP", f"the server answered HTTP {error.code}: {text[:500]}")


def _read_token(path):
    path = path or os.environ.get(TOKEN_VARIABLE)
    if not path:
        raise ValueError(
            f"the token of the rollout server is missing; set token=, token_file= or the environment variable {TOKEN_VARIABLE}"
        )
    with open(path, encoding="utf-8") as file:
        return file.read().strip()
