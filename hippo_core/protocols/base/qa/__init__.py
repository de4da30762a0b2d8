"""What protocols that ask questions of suites share: parameters, plans, cells."""
