"""What an operation is, what a graph is: the nouns that every later stage hands on."""
