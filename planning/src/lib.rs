//! Every decision: pure, total, deterministic
