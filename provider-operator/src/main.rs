//! The provider operator: node images into a cloud.

fn main() {}
