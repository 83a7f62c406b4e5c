"""Points for claims: a rubric, the score of one run under it, and a whole course, one pytest for each hand-in."""
