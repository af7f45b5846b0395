//! What holds for every provider, held for images in registries.

#[cfg(test)]
mod images;
