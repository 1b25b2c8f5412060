"""Rules over a store and what lies beside it, and the engine that runs them."""
