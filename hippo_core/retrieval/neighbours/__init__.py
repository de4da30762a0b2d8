"""Nearest neighbours of dense vectors among up to millions, by a sparse code that is learnt from them."""
