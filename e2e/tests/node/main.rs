//! What a kubelet of tests does with Jobs, said once and held against each that this machine can run: the real one and the one that stands in.

mod contract;
mod gone;
mod jobs;
