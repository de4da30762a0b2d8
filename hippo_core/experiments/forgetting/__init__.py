"""The forgetting experiment: a small transformer learns tasks one after another, and after every phase all of them are examined."""
