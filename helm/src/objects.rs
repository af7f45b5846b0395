//! What every template finds beside its values: `.Chart`, `.Files`, `.Capabilities`, as Go values with their types.

mod capabilities;
mod chart;
mod complex;
mod files;
pub(crate) mod time;
mod values;

pub(crate) use capabilities::Capabilities;
pub(crate) use chart::chart_object;
pub(crate) use complex::Complex;
pub(crate) use files::Files;
pub(crate) use values::ValuesMethods;
