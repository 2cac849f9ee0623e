"""What is worth doing: findings from measures, with places and the facts that their sentences need."""
