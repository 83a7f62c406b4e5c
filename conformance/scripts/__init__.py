"""Scripts that show a fault without Lockstep: their texts, and what runs all of those that the mutants have."""
