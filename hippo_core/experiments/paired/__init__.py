"""The experiment `paired`: a suite of a folder, asked under conditions side by side."""
