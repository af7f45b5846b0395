//! SHA-1 (RFC 3174). Charts use it to name things, and certificates to name keys; nothing is protected by it.

/// The digest of a text.
pub(crate) fn sha1(text: &[u8]) -> Vec<u8> {
    let mut message = text.to_vec();
    message.push(0x80);
    while message.len() % 64 != 56 {
        message.push(0);
    }
    message.extend_from_slice(&(text.len() as u64 * 8).to_be_bytes());
    let mut state = [0x6745_2301u32, 0xefcd_ab89, 0x98ba_dcfe, 0x1032_5476, 0xc3d2_e1f0];
    for block in message.chunks(64) {
        sha1_block(&mut state, block);
    }
    state.iter().flat_map(|word| word.to_be_bytes()).collect()
}

#[expect(clippy::many_single_char_names, reason = "the names of the standard")]
fn sha1_block(state: &mut [u32; 5], block: &[u8]) {
    let mut words: Vec<u32> = block
        .chunks_exact(4)
        .map(|word| u32::from_be_bytes([word[0], word[1], word[2], word[3]]))
        .collect();
    for index in 16..80 {
        let mixed = words[index - 3] ^ words[index - 8] ^ words[index - 14] ^ words[index - 16];
        words.push(mixed.rotate_left(1));
    }
    let [mut a, mut b, mut c, mut d, mut e] = *state;
    for (index, word) in words.iter().enumerate() {
        let (mix, constant) = match index {
            0..20 => ((b & c) | (!b & d), 0x5a82_7999),
            20..40 => (b ^ c ^ d, 0x6ed9_eba1),
            40..60 => ((b & c) | (b & d) | (c & d), 0x8f1b_bcdc),
            _ => (b ^ c ^ d, 0xca62_c1d6),
        };
        let next = a
            .rotate_left(5)
            .wrapping_add(mix)
            .wrapping_add(e)
            .wrapping_add(constant)
            .wrapping_add(*word);
        (e, d, c, b, a) = (d, c, b.rotate_left(30), a, next);
    }
    for (word, added) in state.iter_mut().zip([a, b, c, d, e]) {
        *word = word.wrapping_add(added);
    }
}
