"""What is asked: cases, the strategies that draw them, the data they stand for, and the checks that judge them."""
