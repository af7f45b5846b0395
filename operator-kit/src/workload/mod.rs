//! The clusters that Clusters describe: how they are reached.

pub mod addresses;
pub mod kubeconfig;
