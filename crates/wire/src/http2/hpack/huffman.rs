//! The code of texts (RFC 7541, appendix B). It is canonical: how long each code is says what it is.

/// The lengths of all codes in bits, by byte; the last is of what ends a text and never stands in one.
#[rustfmt::skip]
const LENGTHS: [u8; 257] = [
    13, 23, 28, 28, 28, 28, 28, 28, 28, 24, 30, 28, 28, 30, 28, 28, 28, 28, 28, 28, 28, 28, 30, 28, 28, 28,
    28, 28, 28, 28, 28, 28, 6, 10, 10, 12, 13, 6, 8, 11, 10, 10, 8, 11, 8, 6, 6, 6, 5, 5, 5, 6, 6, 6, 6, 6, 6,
    6, 7, 8, 15, 6, 12, 10, 13, 6, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 8, 7, 8,
    13, 19, 13, 14, 6, 15, 5, 6, 5, 6, 5, 6, 6, 6, 5, 7, 7, 6, 6, 6, 5, 6, 7, 6, 5, 5, 6, 7, 7, 7, 7, 7, 15,
    11, 14, 13, 28, 20, 22, 20, 20, 22, 22, 22, 23, 22, 23, 23, 23, 23, 23, 24, 23, 24, 24, 22, 23, 24, 23,
    23, 23, 23, 21, 22, 23, 22, 23, 23, 24, 22, 21, 20, 22, 22, 23, 23, 21, 23, 22, 22, 24, 21, 22, 23, 23,
    21, 21, 22, 21, 23, 22, 23, 23, 20, 22, 22, 22, 23, 22, 22, 23, 26, 26, 20, 19, 22, 23, 22, 25, 26, 26,
    26, 27, 27, 26, 24, 25, 19, 21, 26, 27, 27, 26, 27, 24, 21, 21, 26, 26, 28, 27, 27, 27, 20, 24, 20, 21,
    22, 21, 21, 23, 22, 22, 25, 25, 24, 24, 26, 23, 26, 27, 26, 26, 27, 27, 27, 27, 27, 28, 27, 27, 27, 27,
    27, 26, 30,
];
const END: u16 = 256;
/// The longest code.
const MOST_BITS: usize = 30;
/// Codes of so many bits at most are found by one look.
const SHORT_BITS: u32 = 8;

/// Codes of one length.
#[derive(Clone, Copy)]
struct Level {
    /// The first of them.
    first: u32,
    /// How many there are.
    count: u32,
    /// Where their bytes stand in `sorted`.
    begin: u32,
}

struct Tables {
    /// The bytes in order of their codes.
    sorted: [u16; 257],
    /// By length in bits.
    levels: [Level; MOST_BITS + 1],
    /// What the next bits are: a byte, and the length of its code; 0 where that is longer.
    short: [(u8, u8); 1 << SHORT_BITS],
}

const TABLES: Tables = tables();

const fn tables() -> Tables {
    let mut sorted = [0; 257];
    let mut levels = [Level { first: 0, count: 0, begin: 0 }; MOST_BITS + 1];
    let mut short = [(0, 0); 1 << SHORT_BITS];
    let (mut code, mut found, mut bits) = (0u32, 0, 1);
    while bits <= MOST_BITS {
        code <<= 1;
        levels[bits] = Level { first: code, count: 0, begin: found as u32 };
        let mut byte = 0;
        while byte < LENGTHS.len() {
            if LENGTHS[byte] as usize == bits {
                sorted[found] = byte as u16;
                found += 1;
                levels[bits].count += 1;
                if bits <= SHORT_BITS as usize {
                    let room = SHORT_BITS as usize - bits;
                    let mut next = (code as usize) << room;
                    let end = next + (1 << room);
                    while next < end {
                        short[next] = (byte as u8, bits as u8);
                        next += 1;
                    }
                }
                code += 1;
            }
            byte += 1;
        }
        bits += 1;
    }
    Tables { sorted, levels, short }
}

/// Appends a text that is coded. Whether it is one; else a part of it may have been appended.
pub(super) fn decode(coded: &[u8], out: &mut Vec<u8>) -> bool {
    static TABLES: Tables = self::TABLES;
    // The shortest code has five bits.
    out.reserve(coded.len() * 8 / 5);
    let mut rest = coded;
    // What is to be read stands in the highest bits; behind it are zeros.
    let (mut window, mut filled) = (0u64, 0u32);
    loop {
        while filled <= 56 {
            let Some((byte, behind)) = rest.split_first() else { break };
            window |= u64::from(*byte) << (56 - filled);
            filled += 8;
            rest = behind;
        }
        let (byte, bits) = TABLES.short[(window >> (64 - SHORT_BITS)) as usize];
        let bits = u32::from(bits);
        if bits != 0 && bits <= filled {
            out.push(byte);
            window <<= bits;
            filled -= bits;
            continue;
        }
        if bits != 0 || filled < SHORT_BITS {
            // The text ends with less than a byte of the code that ends it, which is all ones.
            return filled < 8 && rest.is_empty() && window == ones(filled);
        }
        let Some((byte, bits)) = long(&TABLES, window) else { return false };
        if bits > filled {
            // Only what ends a text is longer than what is there, and it may not have a whole byte.
            return false;
        }
        out.push(byte);
        window <<= bits;
        filled -= bits;
    }
}

/// So many ones in the highest bits.
fn ones(bits: u32) -> u64 {
    if bits == 0 { 0 } else { u64::MAX << (64 - bits) }
}

/// The byte whose code is too long for one look, and its length.
fn long(tables: &Tables, window: u64) -> Option<(u8, u32)> {
    for bits in SHORT_BITS as usize + 1..=MOST_BITS {
        let level = &tables.levels[bits];
        let place = ((window >> (64 - bits)) as u32).wrapping_sub(level.first);
        if place < level.count {
            let byte = tables.sorted[(level.begin + place) as usize];
            return (byte != END).then_some((byte as u8, bits as u32));
        }
    }
    None
}

/// Appends a text in the code.
#[cfg(test)]
pub(super) fn encode(text: &[u8], out: &mut Vec<u8>) {
    let (mut window, mut filled) = (0u64, 0u32);
    for byte in text {
        let bits = LENGTHS[usize::from(*byte)];
        let level = &TABLES.levels[usize::from(bits)];
        let begin = level.begin as usize;
        let place = TABLES.sorted[begin..].iter().position(|sorted| *sorted == u16::from(*byte)).unwrap();
        window = window << bits | u64::from(level.first + place as u32);
        filled += u32::from(bits);
        while filled >= 8 {
            filled -= 8;
            out.push((window >> filled) as u8);
        }
    }
    if filled > 0 {
        out.push((window << (8 - filled)) as u8 | (0xff >> filled) as u8);
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn decoded(coded: &[u8]) -> Option<Vec<u8>> {
        let mut text = Vec::new();
        decode(coded, &mut text).then_some(text)
    }

    #[test]
    fn codes_are_those_of_the_standard() {
        // some lines of its table: the first and the last of several lengths
        for (byte, code, bits) in [
            (b'0', 0x0, 5),
            (b't', 0x9, 5),
            (b' ', 0x14, 6),
            (b'u', 0x2d, 6),
            (b':', 0x5c, 7),
            (b'&', 0xf8, 8),
            (b'!', 0x3f8, 10),
            (b'#', 0xffa, 12),
            (b'~', 0x1ffd, 13),
            (0, 0x1ff8, 13),
            (b'^', 0x3ffc, 14),
            (b'\\', 0x7fff0, 19),
            (1, 0x7f_ffd8, 23),
            (249, 0xfff_fffe, 28),
            (255, 0x3ff_ffee, 26),
            (22, 0x3fff_fffe, 30),
        ] {
            let padded = (u64::from(u32::MAX) << 8 | 0xff) >> bits | u64::from(code as u32) << (40 - bits);
            let bytes = padded.to_be_bytes();
            let coded = &bytes[3..3 + usize::div_ceil(bits, 8)];
            assert_eq!(decoded(coded), Some(vec![byte]), "{byte}");
        }
    }

    #[test]
    fn what_ends_otherwise_is_no_text() {
        assert_eq!(decoded(&[]), Some(Vec::new()));
        // a whole byte of what ends a text, and all of it
        assert_eq!(decoded(&[0xff]), None);
        assert_eq!(decoded(&[0xff, 0xff, 0xff, 0xff]), None);
        assert_eq!(decoded(&[0x07, 0xff]), None);
        // `0`, and bits that are no ones
        assert_eq!(decoded(&[0x00]), None);
        assert_eq!(decoded(&[0x07]), Some(vec![b'0']));
        assert_eq!(decoded(&[0x06]), None);
    }

    proptest! {
        #[test]
        fn what_is_coded_is_read_again(text in prop::collection::vec(any::<u8>(), 0..200)) {
            let mut coded = Vec::new();
            encode(&text, &mut coded);
            prop_assert_eq!(decoded(&coded), Some(text));
        }

        #[test]
        fn what_is_read_is_coded_as_it_came(coded in prop::collection::vec(any::<u8>(), 0..60)) {
            if let Some(text) = decoded(&coded) {
                let mut again = Vec::new();
                encode(&text, &mut again);
                prop_assert_eq!(again, coded);
            }
        }
    }
}
