//! A Keystone and a Glance in this process, and the facts that hold for them and for the real ones alike.
