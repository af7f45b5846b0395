//! The thread that unpacks: blocks, reads bytes of strangers, and ends with an error for everything that is not a whole packed file.

use std::io::{self, BufRead, Read};

use bytes::{Buf, Bytes};
use bzip2::bufread::MultiBzDecoder;
use flate2::bufread::MultiGzDecoder;
use lzma_rust2::XzReader;
use ruzstd::decoding::{BlockDecodingStrategy, FrameDecoder};
use tokio::sync::mpsc::{Receiver, Sender};

use super::{Compression, Limits};
use crate::{ContentError, ErrorClass};

/// Bytes that are given at once.
const PIECE: usize = 256 * 1024;
/// What a decoder of LZMA2 needs besides its window, in KiB.
const BESIDES_WINDOW: u32 = 1024;

/// Unpacks what comes and gives it on, until the input ends or nobody reads any more.
pub(super) fn work(
    kind: Compression,
    input: Receiver<Bytes>,
    output: &Sender<Result<Bytes, ContentError>>,
    limits: Limits,
) {
    let mut input = Input {
        pieces: input,
        piece: Bytes::new(),
        count: 0,
    };
    let unpacked = match kind {
        Compression::Gzip => copy(MultiGzDecoder::new(input), output, limits, |it| it.get_mut()),
        Compression::Bzip2 => copy(MultiBzDecoder::new(input), output, limits, |it| it.get_mut()),
        Compression::Xz => {
            let reader = XzReader::new_mem_limit(input, true, limits.window / 1024 + BESIDES_WINDOW);
            copy(reader, output, limits, XzReader::inner_mut)
        }
        Compression::Zstd => copy(Frames::new(input, limits), output, limits, |it| &mut it.input),
        // Nothing is packed.
        Compression::Auto | Compression::None => copy(&mut input, output, limits, |it| *it),
    };
    if let Err(error) = unpacked {
        // Whom it would be told is gone.
        let _ = output.blocking_send(Err(error));
    }
}

fn copy<D: Read>(
    mut decoder: D,
    output: &Sender<Result<Bytes, ContentError>>,
    limits: Limits,
    input: impl for<'a> Fn(&'a mut D) -> &'a mut Input,
) -> Result<(), ContentError> {
    let mut given = 0_u64;
    loop {
        let piece = piece(&mut decoder).map_err(|error| broken(&error))?;
        if piece.is_empty() {
            break;
        }
        given += piece.len() as u64;
        let taken = input(&mut decoder).count;
        if given > limits.ratio_from && given / limits.ratio > taken {
            return Err(too_much(limits.ratio));
        }
        if output.blocking_send(Ok(piece)).is_err() {
            return Ok(());
        }
    }
    let rest = input(&mut decoder).fill_buf().map_err(|error| broken(&error))?;
    if rest.is_empty() { Ok(()) } else { Err(more()) }
}

/// As many bytes as are given at once; fewer only at the end.
fn piece(decoder: &mut impl Read) -> io::Result<Bytes> {
    let mut piece = vec![0; PIECE];
    let mut filled = 0;
    while filled < PIECE {
        match decoder.read(&mut piece[filled..]) {
            Ok(0) => break,
            Ok(count) => filled += count,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    piece.truncate(filled);
    Ok(Bytes::from(piece))
}

fn broken(error: &io::Error) -> ContentError {
    let words = match error.kind() {
        io::ErrorKind::UnexpectedEof => "the packed file ends too early; publish it whole".to_owned(),
        io::ErrorKind::OutOfMemory => {
            "the packed file asks for too much memory; pack it as one file, with a window of at most 128 MiB".to_owned()
        }
        _ => format!("the file cannot be unpacked ({error}); correct the compression, or pack it anew"),
    };
    ContentError::new(ErrorClass::SourceNotAnImage, words)
}

fn more() -> ContentError {
    let words = "something else comes after the packed file; publish the packed file alone";
    ContentError::new(ErrorClass::SourceNotAnImage, words)
}

fn too_much(ratio: u64) -> ContentError {
    let words = format!("the file becomes more than {ratio} times as large when it is unpacked, which no image does");
    ContentError::new(ErrorClass::SourceNotAnImage, words)
}

/// The pieces of the source as a file.
pub(super) struct Input {
    pieces: Receiver<Bytes>,
    piece: Bytes,
    /// Bytes that were taken.
    count: u64,
}

impl BufRead for Input {
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        while self.piece.is_empty() {
            match self.pieces.blocking_recv() {
                Some(piece) => self.piece = piece,
                None => break,
            }
        }
        Ok(&self.piece)
    }

    fn consume(&mut self, count: usize) {
        self.piece.advance(count);
        self.count += count as u64;
    }
}

impl Read for Input {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let there = self.fill_buf()?;
        let count = there.len().min(buffer.len());
        buffer[..count].copy_from_slice(&there[..count]);
        self.consume(count);
        Ok(count)
    }
}

/// The frames of zstd, one after another, also those that say nothing. A frame's own sum is compared.
struct Frames {
    input: Input,
    decoder: FrameDecoder,
    is_in_frame: bool,
}

impl Frames {
    fn new(input: Input, limits: Limits) -> Self {
        let mut decoder = FrameDecoder::new();
        decoder.set_max_window_size(limits.window.into());
        Self {
            input,
            decoder,
            is_in_frame: false,
        }
    }

    /// Begins the next frame, if there is one.
    fn begin(&mut self) -> io::Result<bool> {
        while !self.input.fill_buf()?.is_empty() {
            let mut magic = [0; 4];
            self.input.read_exact(&mut magic)?;
            if !matches!(u32::from_le_bytes(magic), 0x184d_2a50..=0x184d_2a5f) {
                let frame = Read::chain(&magic[..], &mut self.input);
                self.decoder.reset(frame).map_err(io::Error::other)?;
                return Ok(true);
            }
            let mut length = [0; 4];
            self.input.read_exact(&mut length)?;
            let length = u64::from(u32::from_le_bytes(length));
            if io::copy(&mut (&mut self.input).take(length), &mut io::sink())? < length {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
        }
        Ok(false)
    }

    /// A frame has no checksum, or the right one.
    fn is_sound(&self) -> bool {
        let promised = self.decoder.get_checksum_from_data();
        promised.is_none() || promised == self.decoder.get_calculated_checksum()
    }
}

impl Read for Frames {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        loop {
            if !self.is_in_frame {
                self.is_in_frame = self.begin()?;
                if !self.is_in_frame {
                    return Ok(0);
                }
            }
            while self.decoder.can_collect() == 0 && !self.decoder.is_finished() {
                self.decoder
                    .decode_blocks(&mut self.input, BlockDecodingStrategy::UptoBlocks(1))
                    .map_err(io::Error::other)?;
            }
            let count = self.decoder.read(buffer)?;
            if count > 0 || buffer.is_empty() {
                return Ok(count);
            }
            if !self.is_sound() {
                return Err(io::Error::other("the checksum of a frame is another one"));
            }
            self.is_in_frame = false;
        }
    }
}
