"""Whether service.json is JSON and has values for the keys that are named: the exit status is 1 where it has not."""

import json
import sys
from pathlib import Path

settings = json.loads(Path("service.json").read_text())
sys.exit(int(any(settings.get(key) is None for key in sys.argv[1:])))
