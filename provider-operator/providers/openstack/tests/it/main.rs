//! Tests of the room through its public face, in one binary.

#[cfg(test)]
mod answers;
#[cfg(test)]
mod client;
#[cfg(test)]
mod fixture;
#[cfg(test)]
mod others;
#[cfg(test)]
mod records;
#[cfg(test)]
mod sources;
#[cfg(test)]
mod store;
#[cfg(test)]
mod upload;
