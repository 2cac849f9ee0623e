"""What is worth doing: findings from measures, with places, and advice that follows from causes."""
