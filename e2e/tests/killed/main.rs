//! Whoever brings an image is killed, stopped or told to end, at each point of its way, and so is the cloud: the image is there in the end, once and verified,
//! or the failure is told, and the project holds what it should. Provider operators run as users run them, between a real control plane and a real Keystone and
//! Glance, each test in a namespace and a project of its own.

mod cloud;
mod effects;
mod filestore;
mod lease;
mod orphans;
mod patience;
mod told_to_end;
