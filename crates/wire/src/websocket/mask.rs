//! The masking of payloads.

/// Masks `bytes`, or unmasks them, which is the same; `offset` says how many bytes of the payload stand before them.
///
/// Works a word at a time, in a form that compilers turn into vector instructions.
pub fn mask(bytes: &mut [u8], key: [u8; 4], offset: usize) {
    let mut turned = key;
    turned.rotate_left(offset % 4);
    let [a, b, c, d] = turned;
    let word = u64::from_ne_bytes([a, b, c, d, a, b, c, d]);
    let (words, tail) = bytes.as_chunks_mut::<8>();
    for eight in words {
        *eight = (u64::from_ne_bytes(*eight) ^ word).to_ne_bytes();
    }
    for (byte, key) in tail.iter_mut().zip([a, b, c, d, a, b, c, d]) {
        *byte ^= key;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_length_and_offset_as_byte_by_byte() {
        let key = [0x37, 0xfa, 0x21, 0x3d];
        for offset in 0..9 {
            for length in 0..40 {
                let plain: Vec<u8> = (0..length).map(|i| (i * 7) as u8).collect();
                let expected: Vec<u8> =
                    plain.iter().enumerate().map(|(i, byte)| byte ^ key[(i + offset) % 4]).collect();
                let mut masked = plain;
                mask(&mut masked, key, offset);
                assert_eq!(masked, expected, "length {length}, offset {offset}");
            }
        }
    }
}
