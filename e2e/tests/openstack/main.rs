//! Node images in a real Keystone and a real Glance, brought there by provider operators that run as users run them, on a real control plane. Each test
//! has a namespace, a project, a source of files and an operator to itself, and ends with exactly the images in its project that it expects.
//!
//! What the real services cannot be made to do is shown on the fake of `openstack-lab`, of which the same facts are true; `acceptance` says where.

mod acceptance;
mod behind;
mod by_tls;
mod conforms;
mod credentials;
mod crowd;
mod faults;
mod imports;
mod journeys;
mod on_the_way;
mod options;
mod orc;
mod orphans;
mod packed;
mod patience;
mod predecessor;
mod quota;
mod refused;
mod secrets;
mod sources;
mod surroundings;
mod takeover;
mod together;
