"""What a sleep brings into a model's weights, and what it costs."""
