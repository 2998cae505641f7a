//! The standard's examples (RFC 7541, appendix C), and lists of all kinds.

use std::collections::VecDeque;

use proptest::prelude::*;

use super::*;

const LIMIT_BYTES: usize = 64 << 10;

fn hex(text: &str) -> Vec<u8> {
    let digits: Vec<u8> = text.chars().filter_map(|c| c.to_digit(16)).map(|digit| digit as u8).collect();
    digits.chunks(2).map(|pair| pair[0] << 4 | pair[1]).collect()
}

type List = Vec<(String, String)>;

fn list(fields: &Fields) -> List {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    fields.iter_all().map(|(name, value)| (text(name), text(value))).collect()
}

fn read(decoder: &mut Decoder, block: &[u8]) -> Result<List, HpackError> {
    let mut fields = Fields::default();
    decoder.decode(block, LIMIT_BYTES, &mut fields).map(|is_whole| {
        assert!(is_whole);
        list(&fields)
    })
}

fn pairs(pairs: &[(&str, &str)]) -> List {
    pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
}

#[test]
fn numbers_are_those_of_the_standard() {
    // C.1
    for (bits, number, bytes) in
        [(5, 10, &[0x0a][..]), (5, 1337, &[0x1f, 0x9a, 0x0a]), (8, 42, &[0x2a]), (5, 31, &[0x1f, 0])]
    {
        let mut out = Vec::new();
        write_number(0, bits, number, &mut out);
        assert_eq!(out, bytes);
        assert_eq!(Input(bytes).number(bits), Ok(number));
    }
    assert_eq!(Input(&[0x1f, 0x80]).number(5), Err(HpackError::Truncated));
    assert_eq!(Input(&[0x1f, 0xff, 0xff, 0xff, 0xff, 0]).number(5), Err(HpackError::Number));
}

#[test]
fn single_headers_are_those_of_the_standard() {
    // C.2
    for (block, name, value, size) in [
        (
            "400a 6375 7374 6f6d 2d6b 6579 0d63 7573 746f 6d2d 6865 6164 6572",
            "custom-key",
            "custom-header",
            1,
        ),
        ("040c 2f73 616d 706c 652f 7061 7468", ":path", "/sample/path", 0),
        ("1008 7061 7373 776f 7264 0673 6563 7265 74", "password", "secret", 0),
        ("82", ":method", "GET", 0),
    ] {
        let mut decoder = Decoder::default();
        assert_eq!(read(&mut decoder, &hex(block)), Ok(pairs(&[(name, value)])));
        assert_eq!(decoder.get(62).is_ok(), size == 1);
    }
}

#[test]
fn requests_are_those_of_the_standard() {
    // C.3 and C.4
    let plain = [
        "8286 8441 0f77 7777 2e65 7861 6d70 6c65 2e63 6f6d",
        "8286 84be 5808 6e6f 2d63 6163 6865",
        "8287 85bf 400a 6375 7374 6f6d 2d6b 6579 0c63 7573 746f 6d2d 7661 6c75 65",
    ];
    let coded = [
        "8286 8441 8cf1 e3c2 e5f2 3a6b a0ab 90f4 ff",
        "8286 84be 5886 a8eb 1064 9cbf",
        "8287 85bf 4088 25a8 49e9 5ba9 7d7f 8925 a849 e95b b8e8 b4bf",
    ];
    for blocks in [plain, coded] {
        let mut decoder = Decoder::default();
        let get = |scheme, path| {
            vec![(":method", "GET"), (":scheme", scheme), (":path", path), (":authority", "www.example.com")]
        };
        let mut next = |block: &str| read(&mut decoder, &hex(block)).unwrap();
        assert_eq!(next(blocks[0]), pairs(&get("http", "/")));
        let cached = [get("http", "/"), vec![("cache-control", "no-cache")]].concat();
        assert_eq!(next(blocks[1]), pairs(&cached));
        let custom = [get("https", "/index.html"), vec![("custom-key", "custom-value")]].concat();
        assert_eq!(next(blocks[2]), pairs(&custom));
        assert_eq!((decoder.table.size, decoder.get(65)), (164, Err(HpackError::Index)));
        assert_eq!(decoder.get(64), Ok((&b":authority"[..], &b"www.example.com"[..])));
    }
}

#[test]
fn answers_with_a_small_table_are_those_of_the_standard() {
    // C.5 and C.6
    let plain = [
        "4803 3330 3258 0770 7269 7661 7465 611d 4d6f 6e2c 2032 3120 4f63 7420 3230 3133 2032 303a 3133 3a32 3120 \
         474d 546e 1768 7474 7073 3a2f 2f77 7777 2e65 7861 6d70 6c65 2e63 6f6d",
        "4803 3330 37c1 c0bf",
        "88c1 611d 4d6f 6e2c 2032 3120 4f63 7420 3230 3133 2032 303a 3133 3a32 3220 474d 54c0 5a04 677a 6970 7738 \
         666f 6f3d 4153 444a 4b48 514b 425a 584f 5157 454f 5049 5541 5851 5745 4f49 553b 206d 6178 2d61 6765 3d33 \
         3630 303b 2076 6572 7369 6f6e 3d31",
    ];
    let coded = [
        "4882 6402 5885 aec3 771a 4b61 96d0 7abe 9410 54d4 44a8 2005 9504 0b81 66e0 82a6 2d1b ff6e 919d 29ad 1718 \
         63c7 8f0b 97c8 e9ae 82ae 43d3",
        "4883 640e ffc1 c0bf",
        "88c1 6196 d07a be94 1054 d444 a820 0595 040b 8166 e084 a62d 1bff c05a 839b d9ab 77ad 94e7 821d d7f2 e6c7 \
         b335 dfdf cd5b 3960 d5af 2708 7f36 72c1 ab27 0fb5 291f 9587 3160 65c0 03ed 4ee5 b106 3d50 07",
    ];
    for blocks in [plain, coded] {
        let mut decoder = Decoder::default();
        decoder.table.resize(256);
        let mut next = |block: &str| {
            let list = read(&mut decoder, &hex(block)).unwrap();
            (list, decoder.table.size)
        };
        let answer = |status, date| {
            vec![
                (":status", status),
                ("cache-control", "private"),
                ("date", date),
                ("location", "https://www.example.com"),
            ]
        };
        let (first, second) = ("Mon, 21 Oct 2013 20:13:21 GMT", "Mon, 21 Oct 2013 20:13:22 GMT");
        assert_eq!(next(blocks[0]), (pairs(&answer("302", first)), 222));
        assert_eq!(next(blocks[1]), (pairs(&answer("307", first)), 222));
        let cookie = "foo=ASDJKHQKBZXOQWEOPIUAXQWEOIU; max-age=3600; version=1";
        let more = vec![("content-encoding", "gzip"), ("set-cookie", cookie)];
        assert_eq!(next(blocks[2]), (pairs(&[answer("200", second), more].concat()), 215));
    }
}

#[test]
fn what_is_no_list_is_told() {
    for (block, error) in [
        ("80", HpackError::Index),
        ("be", HpackError::Index),
        ("7e 01 61", HpackError::Index),
        ("40", HpackError::Truncated),
        ("40 01", HpackError::Truncated),
        ("40 01 61", HpackError::Truncated),
        ("40 01 61 02 62", HpackError::Truncated),
        ("ff ff ff ff ff ff", HpackError::Number),
        ("40 81 00 00", HpackError::Huffman),
        ("88 20", HpackError::TableSize),
        ("3f e2 1f", HpackError::TableSize),
    ] {
        assert_eq!(read(&mut Decoder::default(), &hex(block)), Err(error), "{block}");
    }
    // the sizes that it can have, one behind the other
    assert_eq!(read(&mut Decoder::default(), &hex("20 3f e1 1f 82")), Ok(pairs(&[(":method", "GET")])));
}

#[test]
fn what_is_too_much_is_left_out_and_the_table_is_right() {
    let (mut decoder, mut fields) = (Decoder::default(), Fields::default());
    // `aa: b` twice, the second one in the table; then one more by its place
    let block = hex("00 02 6161 01 62 40 02 6161 01 62 82 be");
    assert_eq!(decoder.decode(&block, 35, &mut fields), Ok(false));
    assert_eq!(list(&fields), pairs(&[("aa", "b")]));
    assert_eq!(decoder.get(62), Ok((&b"aa"[..], &b"b"[..])));
    assert_eq!(decoder.decode(&block, 35 * 3 + 42, &mut fields), Ok(true));
    assert_eq!((fields.len(), fields.get("aa")), (4, Some(&b"b"[..])));
    // larger than the table: it empties it
    let mut large = hex("40 01 61");
    write_value(&[b'x'; TABLE_BYTES], &mut large);
    assert_eq!(decoder.decode(&large, LIMIT_BYTES, &mut fields), Ok(true));
    assert_eq!((decoder.table.size, decoder.get(62)), (0, Err(HpackError::Index)));
}

#[test]
fn what_is_too_much_is_not_copied_out_of_the_table() {
    let (mut decoder, mut fields) = (Decoder::default(), Fields::default());
    let mut large = hex("40");
    [b'n', b'v'].iter().for_each(|byte| write_value(&[*byte; 1_900], &mut large));
    assert_eq!(decoder.decode(&large, LIMIT_BYTES, &mut fields), Ok(true));
    // one that is too much; then the large one by its place, and its name by its place
    let (mut fields, mut block) = (Fields::default(), hex("00 01 61 01 62"));
    block.extend(hex("be 0f 2f 00").repeat(1_000));
    assert_eq!(decoder.decode(&block, 33, &mut fields), Ok(false));
    assert!(fields.is_empty() && fields.bytes.capacity() < 100, "room for {}", fields.bytes.capacity());
    // one that the table keeps, and whose name it has
    block.extend(hex("7e 01 63"));
    assert_eq!(decoder.decode(&block, 33, &mut fields), Ok(false));
    assert_eq!(decoder.get(62), Ok((&[b'n'; 1_900][..], &b"c"[..])));
    for (wrong, error) in
        [("c0", HpackError::Index), ("0f 40 00", HpackError::Index), ("00", HpackError::Truncated)]
    {
        let block = [&block[..5], &hex(wrong)].concat();
        assert_eq!(decoder.decode(&block, 33, &mut fields), Err(error), "{wrong}");
    }
}

#[test]
fn a_list_that_comes_again_is_remembered_and_does_to_the_table_what_it_did() {
    let (mut decoder, mut fields) = (Decoder::default(), Fields::default());
    let mut next = |block: &str| {
        assert_eq!(decoder.decode(&hex(block), LIMIT_BYTES, &mut fields), Ok(true));
        (list(&fields), decoder.is_repeated(), decoder.place(), decoder.table.entries.len())
    };
    // as nginx writes it: all of it literal, and kept
    let (head, answer) =
        ("88 61 01 64 76 01 6e", pairs(&[(":status", "200"), ("date", "d"), ("server", "n")]));
    assert_eq!(next(head), (answer.clone(), false, Some(0), 2));
    assert_eq!(next(head), (answer.clone(), true, Some(0), 4));
    // trailers by their place in the table, and that place again once it is another header's
    assert_eq!(next("bf"), (pairs(&[("date", "d")]), false, Some(1), 4));
    assert_eq!(next("bf"), (pairs(&[("date", "d")]), true, Some(1), 4));
    assert_eq!(next("40 01 61 01 62"), (pairs(&[("a", "b")]), false, Some(0), 5));
    assert_eq!(next("bf"), (pairs(&[("server", "n")]), false, Some(1), 5));
    // what uses the table and changes it means something else each time
    assert_eq!(next("7e 01 63"), (pairs(&[("a", "c")]), false, None, 6));
    assert_eq!(next("7f 00 01 64"), (pairs(&[("a", "d")]), false, None, 7));
    // what gives it a size does that again
    assert_eq!(next("20 82"), (pairs(&[(":method", "GET")]), false, None, 0));
    assert_eq!(next("3f e1 1f 82"), (pairs(&[(":method", "GET")]), false, None, 0));
    assert_eq!(next("3f e1 1f 82"), (pairs(&[(":method", "GET")]), false, None, 0));
}

/// A header as somebody may write it: how, a name, a value; whether these are coded.
type Written = (u8, Vec<u8>, Vec<u8>, bool);

fn text(text: &[u8], is_coded: bool, out: &mut Vec<u8>) {
    if !is_coded {
        return write_value(text, out);
    }
    let mut coded = Vec::new();
    huffman::encode(text, &mut coded);
    write_number(0x80, 7, coded.len(), out);
    out.extend_from_slice(&coded);
}

/// The table as the standard describes it.
#[derive(Default)]
struct Model(VecDeque<(Vec<u8>, Vec<u8>)>);

impl Model {
    fn insert(&mut self, name: &[u8], value: &[u8]) {
        self.0.push_front((name.to_vec(), value.to_vec()));
        let size = |table: &VecDeque<(Vec<u8>, Vec<u8>)>| {
            table.iter().map(|(name, value)| name.len() + value.len() + 32).sum::<usize>()
        };
        while size(&self.0) > TABLE_BYTES {
            self.0.pop_back();
        }
    }
}

proptest! {
    #[test]
    fn lists_are_read_as_they_were_written(
        lists in prop::collection::vec(
            prop::collection::vec(
                (0..4u8, prop::collection::vec(any::<u8>(), 0..40), prop::collection::vec(any::<u8>(), 0..400), any::<bool>()),
                0..12,
            ),
            1..12,
        )
    ) {
        let (mut decoder, mut fields, mut model) = (Decoder::default(), Fields::default(), Model::default());
        for written in lists {
            let written: Vec<Written> = written;
            let (mut block, mut expected) = (Vec::new(), Vec::new());
            for (how, name, value, is_coded) in written {
                let place = usize::from(name.first().copied().unwrap_or(0)) % model.0.len().max(1);
                match (how, model.0.get(place).cloned()) {
                    // by its place, whole, or only its name
                    (0, Some(known)) => {
                        write_number(0x80, 7, 62 + place, &mut block);
                        expected.push(known);
                        continue;
                    }
                    (1, Some((known, _))) => {
                        write_number(0x40, 6, 62 + place, &mut block);
                        text(&value, is_coded, &mut block);
                        model.insert(&known, &value);
                        expected.push((known, value));
                        continue;
                    }
                    (2, _) => block.push(0),
                    _ => {
                        block.push(0x40);
                        model.insert(&name, &value);
                    }
                }
                text(&name, is_coded, &mut block);
                text(&value, is_coded, &mut block);
                expected.push((name, value));
            }
            prop_assert_eq!(decoder.decode(&block, LIMIT_BYTES, &mut fields), Ok(true));
            let read: Vec<_> = fields.iter().map(|(name, value)| (name.to_vec(), value.to_vec())).collect();
            prop_assert_eq!(read, expected);
            prop_assert_eq!(decoder.table.entries.len(), model.0.len());
        }
    }

    /// A few lists in any order: what is remembered changes nothing.
    #[test]
    fn lists_that_come_again_mean_the_same(
        blocks in prop::collection::vec(prop::collection::vec(0..10usize, 0..5), 1..5),
        order in prop::collection::vec(0..5usize, 1..60),
        limit_bytes in prop::sample::select(vec![70, LIMIT_BYTES]),
    ) {
        const PARTS: [&str; 10] = [
            "82", "be", "bf", "c0", "00 01 61 01 62", "40 01 63 01 64", "40 01 65 01 66", "7e 01 67", "20", "3f e1 1f",
        ];
        let block = |parts: &Vec<usize>| parts.iter().flat_map(|part| hex(PARTS[*part])).collect::<Vec<u8>>();
        let blocks: Vec<Vec<u8>> = blocks.iter().map(block).collect();
        let (mut decoder, mut fields) = (Decoder::default(), Fields::default());
        let (mut plain, mut expected) = (Decoder::default(), Fields::default());
        for index in order {
            let block = &blocks[index % blocks.len()];
            let read = plain.read(block, limit_bytes, &mut expected).map(|effects| !effects.is_cut);
            prop_assert_eq!(decoder.decode(block, limit_bytes, &mut fields), read);
            if read.is_err() {
                break;
            }
            prop_assert_eq!(list(&fields), list(&expected));
            let table = |decoder: &Decoder| {
                let all = (0..).map_while(|index| decoder.table.get(index));
                all.map(|(name, value)| (name.to_vec(), value.to_vec())).collect::<Vec<_>>()
            };
            prop_assert_eq!(table(&decoder), table(&plain));
        }
    }

    #[test]
    fn what_is_written_is_read(name in "[a-z:-]{1,20}", value in prop::collection::vec(any::<u8>(), 0..300)) {
        let mut block = Vec::new();
        write_field(name.as_bytes(), &value, &mut block);
        write_field(b":method", b"POST", &mut block);
        write_field(b"cookie", &value, &mut block);
        let (mut decoder, mut fields) = (Decoder::default(), Fields::default());
        prop_assert_eq!(decoder.decode(&block, LIMIT_BYTES, &mut fields), Ok(true));
        prop_assert_eq!(fields.get(&name), Some(&value[..]));
        prop_assert_eq!(fields.get(":method"), Some(&b"POST"[..]));
        prop_assert_eq!(fields.get("cookie"), Some(&value[..]));
        prop_assert!(decoder.table.entries.is_empty());
    }

    #[test]
    fn any_bytes_are_read_or_told_within_bounds(blocks in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..300), 1..20)) {
        let (mut decoder, mut fields) = (Decoder::default(), Fields::default());
        for block in blocks {
            let _ = decoder.decode(&block, 1_000, &mut fields);
            prop_assert!(fields.iter_all().map(|(name, value)| name.len() + value.len() + 32).sum::<usize>() <= 1_000);
            prop_assert!(decoder.table.size <= TABLE_BYTES && decoder.table.bytes.len() <= TABLE_BYTES);
        }
    }
}
