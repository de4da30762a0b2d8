"""What every protocol is described by: its experiments, their parameters, cells, plans and reports."""
