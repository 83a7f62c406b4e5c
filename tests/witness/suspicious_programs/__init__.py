"""Programs that are right and look as if something were wrong, by what is suspicious about them."""
