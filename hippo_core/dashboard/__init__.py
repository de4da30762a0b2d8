"""The panels of the dashboard notebook. Each is a module of its own and is imported from there, so that one needs no more than it shows."""
