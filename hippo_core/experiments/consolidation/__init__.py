"""The consolidation experiment: what a store holds is rehearsed into the model, and it is asked with its memory off, before and after."""
