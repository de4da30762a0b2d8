"""Ask a model under one method: the experiment of notebook 02."""
