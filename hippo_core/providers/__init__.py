"""Models that answer a prompt, wherever they run: in this process, behind a command, behind an endpoint.

from hippo_core.providers import load_provider
load_provider("local:hippo-tiny").answer("Who has the lamp?", max_tokens=8)
"""

from hippo_core.providers.base import Completion, Provider
from hippo_core.providers.names import load_provider
