"""The claims of the cheatsheet and the checks that examine implementations against them."""
