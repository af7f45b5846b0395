//! Tests of the room through its public face, in one binary.

#[cfg(test)]
mod addon_charts;
#[cfg(test)]
mod bundle_limits;
#[cfg(test)]
mod bundle_verdicts;
#[cfg(test)]
mod cosign;
#[cfg(test)]
mod directory_source;
#[cfg(test)]
mod directory_watch;
#[cfg(test)]
mod fixture;
#[cfg(test)]
mod fuzz_seeds;
#[cfg(test)]
mod github_downloads;
#[cfg(test)]
mod github_source;
#[cfg(test)]
mod hostile_releases;
#[cfg(test)]
mod http_client;
#[cfg(test)]
mod http_source;
#[cfg(test)]
mod lab;
#[cfg(test)]
mod layers;
#[cfg(test)]
mod long_answers;
#[cfg(test)]
mod manifests;
#[cfg(test)]
mod oci_faults;
#[cfg(test)]
mod oci_names;
#[cfg(test)]
mod oci_source;
#[cfg(test)]
mod oci_stub;
#[cfg(test)]
mod pack_mistakes;
#[cfg(test)]
mod packing;
#[cfg(test)]
mod packing_dependencies;
#[cfg(test)]
mod packing_registries;
#[cfg(test)]
mod registry;
#[cfg(test)]
mod repeated_secrets;
#[cfg(test)]
mod scripted_source;
#[cfg(test)]
mod signature_faults;
#[cfg(test)]
mod signed_files;
#[cfg(test)]
mod signed_manifests;
#[cfg(test)]
mod sigstore;
#[cfg(test)]
mod source_contract;
#[cfg(test)]
mod store_downloads;
#[cfg(test)]
mod store_evidence;
#[cfg(test)]
mod store_lives;
#[cfg(test)]
mod store_processes;
#[cfg(test)]
mod store_room;
#[cfg(test)]
mod stub;
#[cfg(test)]
mod tokens;
