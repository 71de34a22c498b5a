"""Graph rewriting: rules, the fixed-point driver, CSE, inlining and the registry of rules."""
