"""The sleeps experiment: group after group of new facts is slept on, and after every sleep all groups are asked with the memory off."""
