//! `release create` as people call it: what it prints and how it ends.

#[cfg(test)]
mod addons;
#[cfg(test)]
mod class;
#[cfg(test)]
mod command;
#[cfg(test)]
mod dependencies;
#[cfg(test)]
mod fixture;
#[cfg(test)]
mod registries;
#[cfg(test)]
mod stages;
#[cfg(test)]
mod templates_of_values;
