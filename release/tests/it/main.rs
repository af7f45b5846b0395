//! Tests of the room through its public face, in one binary.

#[cfg(test)]
mod directory_source;
#[cfg(test)]
mod directory_watch;
#[cfg(test)]
mod fixture;
#[cfg(test)]
mod hostile_releases;
#[cfg(test)]
mod pack_mistakes;
#[cfg(test)]
mod packing;
#[cfg(test)]
mod source_contract;
