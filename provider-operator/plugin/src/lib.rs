//! What a provider of node images is asked for: an image store, seen through one trait. Knows no Kubernetes and no cloud.
