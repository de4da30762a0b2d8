"""The lab's figures: how they look, what they show, and the claim that each makes."""
