//! The add-ons of workload clusters through the whole life of a Cluster, on the real Cluster API and real API servers: the shim plays the providers,
//! kwok the kubelets, and the operator is asked by the lifecycle hooks.
//!
//! Letters with numbers, at the top of files and in the names of tests, are the journeys (`A8`, `a8_`) that they make and the faults of the Go operator (`F8`, `f8_`)
//! that they would fail with.

mod by_hand;
mod changed;
mod definitions;
mod deleted;
mod drift;
mod faulty;
mod fleet;
mod ground;
mod hostile;
mod installed;
mod kubeadm;
mod management;
mod moments;
mod moved;
mod oldest;
mod passed_over;
mod paused;
mod predecessor;
mod preempted;
mod real;
mod replicas;
mod reshaped;
mod rights;
mod rotated;
mod shared;
mod single;
mod skipped;
mod stack;
mod tera;
mod upgraded;
mod values;
