"""The statistics of the lab in one place: intervals clustered by world (`interval`), paired comparisons (`paired`), effects (`effect`) and
agreement (`kappa`). This face imports nothing."""
