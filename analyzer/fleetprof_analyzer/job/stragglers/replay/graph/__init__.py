"""What the graph of a replay needs beside its order."""
