"""What harbor's validator says about documents of ATIF, and what its models make of them. Prints JSON."""

import json
import sys

from harbor.models.trajectories import Trajectory
from harbor.utils.trajectory_validator import TrajectoryValidator

found = []
for document in json.load(sys.stdin):
    validator = TrajectoryValidator()
    if validator.validate(document, validate_images=False):
        found.append({"errors": [], "again": Trajectory.model_validate(document).to_json_dict()})
    else:
        found.append({"errors": validator.get_errors()})
json.dump(found, sys.stdout)
