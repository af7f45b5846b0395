//! Base64 as Go reads it.

/// Decodes with Go's idea of where the first wrong byte is. Line ends are skipped.
pub(crate) fn decode(text: &[u8]) -> Result<Vec<u8>, usize> {
    let is_line_end = |byte: u8| byte == b'\n' || byte == b'\r';
    let skip = |mut position: usize| {
        while text.get(position).is_some_and(|byte| is_line_end(*byte)) {
            position += 1;
        }
        position
    };
    let mut bytes = Vec::with_capacity(text.len() / 4 * 3);
    let mut position = 0;
    loop {
        let mut quantum = Vec::with_capacity(4);
        let mut is_last = false;
        while quantum.len() < 4 {
            let Some(byte) = text.get(position).copied() else {
                if quantum.is_empty() {
                    return Ok(bytes);
                }
                return Err(position - quantum.len());
            };
            position += 1;
            if let Some(digit) = digit_of(byte) {
                quantum.push(digit);
            } else if byte == b'=' {
                position = padding_end(text, position, quantum.len(), skip)?;
                is_last = true;
                break;
            } else if !is_line_end(byte) {
                return Err(position - 1);
            }
        }
        let bits = quantum.iter().fold(0u32, |bits, digit| bits << 6 | u32::from(*digit));
        let bits = bits << (6 * (4 - quantum.len()));
        let [_, decoded @ ..] = bits.to_be_bytes();
        bytes.extend_from_slice(&decoded[..quantum.len() - 1]);
        if is_last {
            return Ok(bytes);
        }
    }
}

/// Checks the padding after its first sign; nothing may follow it.
fn padding_end(text: &[u8], mut position: usize, digits: usize, skip: impl Fn(usize) -> usize) -> Result<usize, usize> {
    match digits {
        0 | 1 => return Err(position - 1),
        2 => {
            position = skip(position);
            match text.get(position) {
                None => return Err(text.len()),
                Some(b'=') => position += 1,
                Some(_) => return Err(position - 1),
            }
        }
        _ => {}
    }
    position = skip(position);
    if position < text.len() {
        Err(position)
    } else {
        Ok(position)
    }
}

fn digit_of(byte: u8) -> Option<u8> {
    match byte {
        b'A'..=b'Z' => Some(byte - b'A'),
        b'a'..=b'z' => Some(byte - b'a' + 26),
        b'0'..=b'9' => Some(byte - b'0' + 52),
        b'+' => Some(62),
        b'/' => Some(63),
        _ => None,
    }
}
