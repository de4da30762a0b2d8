"""The conversation experiment: techniques choose what of a long dialogue a model is shown; what it still knows is measured."""
