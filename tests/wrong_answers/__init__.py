"""Wrong answers to each lesson's exercises, and the name that the checker must give them."""
