//! Node images in an OpenStack cloud, through a client of our own for Keystone v3 and Glance v2.
