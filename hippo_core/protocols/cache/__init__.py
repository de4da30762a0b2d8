"""The key-value cache of a model, damaged and repaired: what faults there are (`corruption`), what is done about them (`defences`)."""
