"""Tensor operations of the memory. Each folder is one kernel: its contract, a reference in plain torch, versions for a CPU and a GPU."""
