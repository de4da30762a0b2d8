"""What is done against forgetting, a file a method; each class says its name."""
