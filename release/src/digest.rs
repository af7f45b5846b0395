//! Content digests: SHA-256 of bytes, of streams, and of a whole release through its manifest.

use std::{fmt, io, str::FromStr};

use aws_lc_rs::digest::{Context, SHA256};
use thiserror::Error;

use crate::FileRef;

/// A SHA-256 digest, written `sha256:<64 lower-case hex digits>`.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Digest([u8; 32]);

impl Digest {
    /// The digest of these bytes.
    pub fn of(bytes: &[u8]) -> Self {
        let mut hasher = Hasher::new();
        hasher.update(bytes);
        hasher.finish()
    }

    /// The digest of a release: of one line `<hex> <size> <name>` per file, sorted by name, so that every source of the same files
    /// gives the same digest.
    pub(crate) fn of_release(files: &[FileRef]) -> Self {
        let mut files: Vec<&FileRef> = files.iter().collect();
        files.sort_by(|left, right| left.name.cmp(&right.name));
        let mut hasher = Hasher::new();
        for FileRef { name, size, sha256 } in files {
            hasher.update(format!("{} {size} {name}\n", sha256.hex()).as_bytes());
        }
        hasher.finish()
    }

    /// The 64 digits without the name of the algorithm.
    pub fn hex(&self) -> String {
        hex::encode(self.0)
    }
}

impl AsRef<[u8]> for Digest {
    fn as_ref(&self) -> &[u8] {
        &self.0
    }
}

impl fmt::Display for Digest {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "sha256:{}", self.hex())
    }
}

impl fmt::Debug for Digest {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, formatter)
    }
}

/// A text that is not `sha256:<64 lower-case hex digits>`.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{text:?} is not a digest of the form sha256:<64 hex digits>")]
pub struct InvalidDigest {
    text: String,
}

impl FromStr for Digest {
    type Err = InvalidDigest;

    fn from_str(text: &str) -> Result<Self, InvalidDigest> {
        let mut bytes = [0; 32];
        let digits = text
            .strip_prefix("sha256:")
            .filter(|digits| !digits.contains(|c: char| c.is_ascii_uppercase()));
        match digits.map(|digits| hex::decode_to_slice(digits, &mut bytes)) {
            Some(Ok(())) => Ok(Self(bytes)),
            _ => Err(InvalidDigest { text: text.to_owned() }),
        }
    }
}

/// A digest that is being made. It is made by the cryptography of TLS, which is fast also on processors without instructions for it.
struct Hasher(Context);

impl Hasher {
    fn new() -> Self {
        Self(Context::new(&SHA256))
    }

    fn update(&mut self, bytes: &[u8]) {
        self.0.update(bytes);
    }

    fn finish(self) -> Digest {
        let mut digest = [0; 32];
        digest.copy_from_slice(self.0.finish().as_ref());
        Digest(digest)
    }
}

/// Digests and counts what is read through it.
pub(crate) struct HashingReader<R> {
    inner: R,
    hasher: Hasher,
    count: u64,
}

impl<R: io::Read> HashingReader<R> {
    pub(crate) fn new(inner: R) -> Self {
        Self {
            inner,
            hasher: Hasher::new(),
            count: 0,
        }
    }

    /// Reads what is left; then gives digest and size of everything that was read.
    pub(crate) fn finish(mut self) -> io::Result<(Digest, u64)> {
        io::copy(&mut self, &mut io::sink())?;
        Ok((self.hasher.finish(), self.count))
    }
}

impl<R: io::Read> io::Read for HashingReader<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.inner.read(buffer)?;
        self.hasher.update(&buffer[..count]);
        self.count += count as u64;
        Ok(count)
    }
}

/// Digests and counts what is written through it.
pub(crate) struct HashingWriter<W> {
    inner: W,
    hasher: Hasher,
    count: u64,
}

impl<W: io::Write> HashingWriter<W> {
    pub(crate) fn new(inner: W) -> Self {
        Self {
            inner,
            hasher: Hasher::new(),
            count: 0,
        }
    }

    /// Bytes written so far.
    pub(crate) fn count(&self) -> u64 {
        self.count
    }

    /// What was written to, with digest and size of everything that was written.
    pub(crate) fn finish(self) -> (W, Digest, u64) {
        (self.inner, self.hasher.finish(), self.count)
    }
}

impl<W: io::Write> io::Write for HashingWriter<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let count = self.inner.write(bytes)?;
        self.hasher.update(&bytes[..count]);
        self.count += count as u64;
        Ok(count)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.inner.flush()
    }
}

#[cfg(test)]
mod tests {
    use std::slice;

    use super::*;

    #[test]
    fn digest_survives_printing_and_refuses_other_spellings() {
        let digest = Digest::of(b"abc");
        assert_eq!(
            digest.to_string(),
            "sha256:ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
        );
        assert_eq!(digest.to_string().parse(), Ok(digest));
        for text in [
            digest.hex(),
            digest.to_string().to_uppercase(),
            format!("sha256:{}", digest.hex().to_uppercase()),
            "sha256:00".to_owned(),
        ] {
            assert!(text.parse::<Digest>().is_err(), "{text}");
        }
    }

    #[test]
    fn digest_of_a_release_ignores_the_order_of_files_and_sees_every_part() {
        let file = |name: &str, content: &[u8]| FileRef {
            name: name.to_owned(),
            size: content.len() as u64,
            sha256: Digest::of(content),
        };
        let (one, two) = (file("one", b"1"), file("two", b"2"));
        let whole = Digest::of_release(&[one.clone(), two.clone()]);
        assert_eq!(whole, Digest::of_release(&[two.clone(), one.clone()]));
        assert_ne!(whole, Digest::of_release(slice::from_ref(&one)));
        assert_ne!(whole, Digest::of_release(&[one.clone(), file("two", b"3")]));
        assert_ne!(whole, Digest::of_release(&[one, file("three", b"2")]));
    }

    #[test]
    fn finishing_digests_also_what_nobody_read() {
        let mut reader = HashingReader::new(&b"abcdef"[..]);
        io::Read::read_exact(&mut reader, &mut [0; 2]).unwrap();
        assert_eq!(reader.finish().unwrap(), (Digest::of(b"abcdef"), 6));
    }
}
