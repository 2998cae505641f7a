use std::io::Write as _;

use flate2::Compression;
use flate2::write::{DeflateEncoder, GzEncoder, ZlibEncoder};
use proptest::prelude::*;

use super::*;

const MOST: usize = 100_000;
/// `hello hello hello hello` as brotli's own program writes it.
const BROTLI: &[u8] = &[
    0x1b, 0x16, 0x00, 0xf8, 0x8d, 0x94, 0x6e, 0xde, 0x44, 0x55, 0x86, 0x96, 0x6c, 0x20, 0x6f, 0x21, 0x4f,
    0x1c, 0xe0, 0x38,
];
/// 10 MiB of zeros.
const BROTLI_BOMB: &[u8] = &[
    0xcb, 0xff, 0xff, 0x3f, 0xf8, 0x27, 0x00, 0xe2, 0xb1, 0x40, 0x20, 0xf7, 0xfe, 0x2f, 0xff, 0xff, 0x3f,
    0xf0, 0x4f, 0x00, 0xc4, 0x61, 0x11, 0x80, 0xee, 0xfd, 0x07,
];

/// Bytes in hex.
fn bytes(hex: &str) -> Vec<u8> {
    let byte = |at: usize| u8::from_str_radix(&hex[at..at + 2], 16).unwrap();
    (0..hex.len()).step_by(2).map(byte).collect()
}

fn gzip(body: &[u8]) -> Vec<u8> {
    gzip_by(Compression::fast(), body)
}

fn gzip_by(level: Compression, body: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), level);
    encoder.write_all(body).unwrap();
    encoder.finish().unwrap()
}

fn zlib(body: &[u8]) -> Vec<u8> {
    let mut encoder = ZlibEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(body).unwrap();
    encoder.finish().unwrap()
}

fn bare(body: &[u8]) -> Vec<u8> {
    let mut encoder = DeflateEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(body).unwrap();
    encoder.finish().unwrap()
}

fn zstd(body: &[u8]) -> Vec<u8> {
    ruzstd::encoding::compress_to_vec(body, ruzstd::encoding::CompressionLevel::Fastest)
}

/// Brotli's form for what it does not compress: one stored block, and the empty one that is the last.
fn brotli_stored(body: &[u8]) -> Vec<u8> {
    assert!((1..=1 << 16).contains(&body.len()));
    // a window of 16 bits (one bit 0); not the last (0), four nibbles of length (00), the length less 1, stored (1)
    let bits = (body.len() as u32 - 1) << 4 | 1 << 20;
    let mut out = bits.to_le_bytes()[..3].to_vec();
    out.extend_from_slice(body);
    out.push(0b11);
    out
}

fn read(headers: &[&str], body: &[u8], most: usize) -> Result<Option<Vec<u8>>, EncodingError> {
    let mut out = b"of the one before".to_vec();
    let headers = headers.iter().map(|header| header.as_bytes());
    let is_encoded = decode(headers, body, most, &mut out, &mut Scratch(b"of the one before".to_vec()));
    assert!(out.is_empty() || is_encoded == Ok(true));
    is_encoded.map(|is_encoded| is_encoded.then_some(out))
}

#[test]
fn every_encoding_is_read_by_its_name() {
    let body = b"hello hello hello hello".as_slice();
    for (name, encoded) in [
        ("gzip", gzip(body)),
        ("X-GZip", gzip(body)),
        ("deflate", zlib(body)),
        ("deflate", bare(body)),
        ("br", BROTLI.to_vec()),
        ("br", brotli_stored(body)),
        ("zstd", zstd(body)),
        (" gzip , identity", gzip(body)),
    ] {
        assert_eq!(read(&[name], &encoded, MOST).unwrap().as_deref(), Some(body), "{name}");
    }
    for header in ["", "identity", "identity, ,identity"] {
        assert_eq!(read(&[header], body, MOST), Ok(None), "{header}");
    }
    assert_eq!(read(&[], body, MOST), Ok(None));
    assert_eq!(read(&["gzip"], b"", MOST), Ok(None), "of an answer to HEAD");
}

#[test]
fn several_encodings_are_undone_from_the_last_to_the_first() {
    let twice = zstd(&gzip(b"hello"));
    for headers in [&["gzip, zstd"][..], &["gzip", "zstd"]] {
        assert_eq!(read(headers, &twice, MOST).unwrap().as_deref(), Some(&b"hello"[..]));
    }
    let thrice = gzip(&brotli_stored(&zlib(b"hello")));
    assert_eq!(read(&["deflate,br,gzip"], &thrice, MOST).unwrap().as_deref(), Some(&b"hello"[..]));
    assert!(matches!(read(&["zstd, gzip"], &twice, MOST), Err(EncodingError::Broken { name: "gzip", .. })));
    assert_eq!(read(&["gzip,gzip,gzip,gzip,gzip"], &twice, MOST), Err(EncodingError::TooMany));
}

#[test]
fn members_and_frames_follow_each_other() {
    let twice = [gzip(b"ab"), gzip(b"cd")].concat();
    assert_eq!(read(&["gzip"], &twice, MOST).unwrap().as_deref(), Some(&b"abcd"[..]));
    let twice = [zstd(b"ab"), zstd(b"cd")].concat();
    assert_eq!(read(&["zstd"], &twice, MOST).unwrap().as_deref(), Some(&b"abcd"[..]));
}

#[test]
fn only_so_many_members_and_frames_are_read() {
    for (name, empty) in [("gzip", gzip(b"")), ("zstd", bytes("28b52ffd2000010000"))] {
        assert_eq!(read(&[name], &empty.repeat(1_000), MOST), Ok(Some(Vec::new())), "{name}");
        let error = read(&[name], &empty.repeat(1_001), MOST).unwrap_err();
        let begin = format!("the body cannot be read as {name}: it has more than 1000 ");
        assert!(error.to_string().starts_with(&begin), "{error}");
    }
}

#[test]
fn frames_that_hold_something_else_are_skipped() {
    // `abc` is skipped, then comes `a`, and nothing is skipped
    let around = bytes("502a4d180300000061626328b52ffd2001090000615f2a4d1800000000");
    assert_eq!(read(&["zstd"], &around, MOST).unwrap().as_deref(), Some(&b"a"[..]));
    let error = read(&["zstd"], &around[..10], MOST).unwrap_err();
    assert_eq!(error.to_string(), "the body cannot be read as zstd: it ends too early");
}

#[test]
fn a_checksum_of_zstd_is_compared() {
    let right = bytes("28b52ffd04588100007b2262616c616e6365223a313030307da9c0f182");
    let body = br#"{"balance":1000}"#;
    assert_eq!(read(&["zstd"], &right, MOST).unwrap().as_deref(), Some(&body[..]));
    let damaged = bytes("28b52ffd04588100007b2262616c616e6365223a393030307da9c0f182");
    // also where another frame follows
    for encoded in [damaged.clone(), [damaged, right].concat()] {
        let error = read(&["zstd"], &encoded, MOST).unwrap_err();
        let words = "the body cannot be read as zstd: it is damaged: its checksum is wrong";
        assert_eq!(error.to_string(), words);
    }
}

#[test]
fn what_is_wrong_is_told_in_plain_words() {
    let words = |name: &str, encoded: &[u8]| match read(&[name], encoded, MOST) {
        Err(EncodingError::Broken { reason, .. }) => reason,
        other => panic!("{name}: {other:?}"),
    };
    for (name, whole) in [("gzip", gzip(b"hello")), ("zstd", zstd(b"hello"))] {
        for end in 1..whole.len() {
            assert_eq!(words(name, &whole[..end]), "it ends too early", "{name} {end}");
        }
        let more = [whole, b"and more".to_vec()].concat();
        assert_eq!(words(name, &more), "there are bytes behind its end", "{name}");
    }
    // a block of a kind that there is not, and no frame at all
    for damaged in [bytes("28b52ffd2001070000"), b"plain text".to_vec()] {
        assert_eq!(words("zstd", &damaged), "it is damaged");
    }
    assert_eq!(words("zstd", &bytes("28b52ffd21070101000061")), "it needs a dictionary");
}

#[test]
fn large_buffers_are_given_back() {
    let zeros = vec![0; 16 << 20];
    // as large in between
    let twice = gzip(&gzip_by(Compression::none(), &zeros));
    let (mut out, mut room) = (Vec::new(), Scratch::default());
    assert_eq!(decode([b"gzip, gzip".as_slice()], &twice, 17 << 20, &mut out, &mut room), Ok(true));
    assert_eq!(out.len(), zeros.len());
    assert!(room.0.capacity() > RETAINED_BYTES);
    forget(&mut out, &mut room);
    assert!(out.is_empty() && out.capacity() <= RETAINED_BYTES, "{}", out.capacity());
    assert!(room.0.is_empty() && room.0.capacity() <= RETAINED_BYTES, "{}", room.0.capacity());
}

#[test]
fn what_cannot_be_read_is_told_by_its_name() {
    let error = read(&["compress\r\u{1}"], b"x", MOST).unwrap_err();
    let words = "the body is encoded with \"compress\\r\\u{1}\", which is not known here: gzip, deflate, br and zstd are";
    assert_eq!(error.to_string(), words);
    for (name, encoded) in [
        ("gzip", gzip(b"hello")),
        ("deflate", zlib(b"hello")),
        ("br", BROTLI.to_vec()),
        ("zstd", zstd(b"hello")),
    ] {
        let cut = read(&[name], &encoded[..encoded.len() - 2], MOST).unwrap_err();
        let begin = format!("the body cannot be read as {name}: ");
        assert!(cut.to_string().starts_with(&begin), "{cut}");
        let other = read(&[name], b"no such thing, but plain text", MOST).unwrap_err();
        assert!(other.to_string().starts_with(&begin), "{other}");
    }
}

#[test]
fn a_bomb_is_not_read_further_than_the_limit() {
    let zeros = vec![0; 10 << 20];
    let bombs = [
        ("gzip", gzip(&zeros)),
        ("deflate", zlib(&zeros)),
        ("br", BROTLI_BOMB.to_vec()),
        ("zstd", zstd(&zeros)),
    ];
    for (name, bomb) in bombs {
        let error = read(&[name], &bomb, MOST).unwrap_err();
        let words = format!("the body is larger than the limit of {MOST} bytes once its {name} is read");
        assert_eq!(error.to_string(), words);
    }
    // also in between, where what comes out of it is small
    let twice = gzip(&gzip(&zeros));
    assert!(matches!(read(&["gzip, gzip"], &twice, 1_000), Err(EncodingError::TooLarge { .. })));
    let just = gzip(&[7; MOST]);
    assert_eq!(read(&["gzip"], &just, MOST).unwrap().map(|body| body.len()), Some(MOST));
    assert!(matches!(read(&["gzip"], &just, MOST - 1), Err(EncodingError::TooLarge { .. })));
}

#[test]
fn zstd_asks_for_no_more_memory_than_a_body_may_have() {
    // a frame's header with this window, then a block of one byte `a`, the last
    let windowed = |window: u8| [bytes("28b52ffd00"), vec![window], bytes("09000061")].concat();
    assert_eq!(memory_asked_by(&windowed(0)), Some(Memory::Window(1 << 10)));
    assert_eq!(memory_asked_by(&windowed(13 << 3)), Some(Memory::Window(8 << 20)));
    assert_eq!(memory_asked_by(&windowed(255)), Some(Memory::Window((1 << 41) + 7 * (1 << 38))));
    assert_eq!(read(&["zstd"], &windowed(13 << 3), MOST).unwrap().as_deref(), Some(&b"a"[..]));
    for window in [(13 << 3) + 1, 17 << 3, 255] {
        let error = read(&["zstd"], &windowed(window), MOST).unwrap_err();
        assert!(error.to_string().ends_with("and may have 8388608"), "{error}");
    }
    // frames that are kept whole say how large they are, in 1, 2, 4 or 8 bytes
    for (header, wanted) in [
        ("28b52ffd2005", 5),
        ("28b52ffd21ff05", 5),
        ("28b52ffd600100", 257),
        ("28b52ffda000000100", 1 << 16),
        ("28b52ffde00000000000010000", 1 << 40),
    ] {
        assert_eq!(memory_asked_by(&bytes(header)), Some(Memory::Content(wanted)), "{header}");
        for end in 0..bytes(header).len() {
            assert_eq!(memory_asked_by(&bytes(header)[..end]), None, "{header} {end}");
        }
    }
    let large = [bytes("28b52ffde00000000000010000"), bytes("09000061")].concat();
    assert_eq!(
        read(&["zstd"], &large, MOST),
        Err(EncodingError::TooLarge { name: "zstd", limit_bytes: MOST })
    );
    // of as many bytes as there may be
    assert!(read(&["zstd"], &bytes("28b52ffd200109000061"), 1).is_ok());
    assert_eq!(memory_asked_by(b"plain text"), None);
}

proptest! {
    #[test]
    fn what_was_encoded_is_read(body in prop::collection::vec(any::<u8>(), 1..5_000), order in 0usize..3) {
        let (header, encoded) = match order {
            0 => ("deflate, zstd, gzip", gzip(&zstd(&bare(&body)))),
            1 => ("br, deflate", zlib(&brotli_stored(&body))),
            _ => ("gzip, br", brotli_stored(&gzip(&body))),
        };
        prop_assert_eq!(read(&[header], &encoded, MOST), Ok(Some(body)));
    }

    #[test]
    fn any_bytes_are_read_within_the_limit(
        header in "(gzip|deflate|br|zstd)(, ?(gzip|deflate|br|zstd))?",
        mut body in prop::collection::vec(any::<u8>(), 0..300),
        begin in 0usize..4,
        most in 0usize..2_000,
    ) {
        // half of them begin as they should
        let begins: [&[u8]; 4] = [b"", b"\x1f\x8b\x08\x00", b"\x28\xb5\x2f\xfd", b"\x78\x9c"];
        body.splice(0..0, begins[begin].iter().copied());
        if let Ok(Some(decoded)) = read(&[&header], &body, most) {
            prop_assert!(decoded.len() <= most);
        }
    }
}
