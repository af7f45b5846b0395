//! Reading base 32 (RFC 4648).

/// Decodes with Go's idea of where the first wrong byte is. Line ends do not count.
pub(super) fn decoded(text: &[u8]) -> Result<Vec<u8>, usize> {
    let text: Vec<u8> = text
        .iter()
        .copied()
        .filter(|byte| !matches!(byte, b'\r' | b'\n'))
        .collect();
    let mut bytes = Vec::with_capacity(text.len() / 8 * 5);
    let mut position = 0;
    while position < text.len() {
        let (mut bits, mut digits) = (0u64, 0);
        while digits < 8 {
            let Some(byte) = text.get(position).copied() else {
                return Err(text.len() - digits);
            };
            position += 1;
            if byte == b'=' && digits >= 2 && text.len() - position < 8 {
                check_padding(&text, position, digits)?;
                position = text.len();
                break;
            }
            let digit = digit_of(byte).ok_or(position - 1)?;
            bits |= u64::from(digit) << (35 - 5 * digits);
            digits += 1;
        }
        let [_, _, _, decoded @ ..] = bits.to_be_bytes();
        bytes.extend_from_slice(&decoded[..digits * 5 / 8]);
    }
    Ok(bytes)
}

/// Checks the padding behind its first sign.
fn check_padding(text: &[u8], position: usize, digits: usize) -> Result<(), usize> {
    let missing = 7 - digits;
    let rest = &text[position..];
    if rest.len() < missing {
        return Err(text.len());
    }
    if let Some(wrong) = rest.iter().take(missing).position(|byte| *byte != b'=') {
        return Err(position + wrong - 1);
    }
    if matches!(digits, 3 | 6) {
        return Err(position - 1);
    }
    Ok(())
}

fn digit_of(byte: u8) -> Option<u8> {
    match byte {
        b'A'..=b'Z' => Some(byte - b'A'),
        b'2'..=b'7' => Some(byte - b'2' + 26),
        _ => None,
    }
}
