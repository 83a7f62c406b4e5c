"""What is checked: the contract, how an implementation is loaded, and the implementations that come with the suite."""
