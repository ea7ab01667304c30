"""Makes faster or smaller variants of a model's network, measures them beside the original, and says which derived versions may be published."""
