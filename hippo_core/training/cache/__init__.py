"""What the experiment `cache` runs: the probes that read a cache, the training of a repair, and the loop over faults and defences."""
