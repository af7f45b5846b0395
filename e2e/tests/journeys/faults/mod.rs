//! Faults that users of cluster stacks met before, each with a test that fails when it comes back. Their numbers are those of
//! the list that they were collected in.
//!
//! Where a fault belongs to a journey of its own (releases selected, objects drifting), its test is there and has its number too.

mod provider;
