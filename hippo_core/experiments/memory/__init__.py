"""The memory experiment: teach a store, replay it, ask with it. Each is a process of its own; all that passes between them is the store."""
