"""The statistics of the lab in one place: intervals clustered by world (`interval`), paired comparisons and effects (`paired`), agreement
(`kappa`). This face imports nothing."""
