"""The protocols, a folder each; what all of them share is in `base`."""
