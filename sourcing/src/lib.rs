//! Sources of releases as objects and flags name them, with what Secrets hold. What is asked of a source, and when, is decided by operators.
