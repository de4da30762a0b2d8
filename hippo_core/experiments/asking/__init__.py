"""What all experiments share that ask questions about the worlds of suites: parameters, data sets as needs, the open cell, the rows."""
