"""The suite: cases, the strategies that draw them, their data, and the checks that judge them."""
