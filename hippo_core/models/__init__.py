"""Models: what is known of one, loading it, what it is asked, greedy generation, likelihoods and hidden states.

Import the modules themselves: `spec` is light, the others bring torch with them.
"""

import logging

logging.getLogger("bitsandbytes").setLevel(logging.ERROR)  # on some processors it misses a package that the lab does not use
