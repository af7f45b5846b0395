//! What users do, on a real control plane: each test is a journey through a namespace of its own, with an operator of its own.
//!
//! After each journey every decision that its operator recorded is made again, and must come out the same to the bit.

mod subscribe;
