//! Rows of a feeder from a CSV file.

use std::io::Read as _;
use std::path::Path;

use csv::{ErrorKind, ReaderBuilder, Trim};

use super::{ROWS_MAX, Rows, bytes_of, too_many};
use crate::expr::parse::is_name;
use crate::language::{Encoding, Feeder};
use crate::reader::Reader;
use crate::yaml::Node;

/// Largest file, bytes.
const FILE_BYTES_MAX: u64 = 1 << 30;
/// What a delimiter may be called that is hard to type.
const TAB: &str = "tab";

/// What windows-1252 has in place of the 32 control characters of Latin-1 from 0x80 on; those five that it does not use stay.
const WINDOWS_1252: [char; 32] = [
    '€', '\u{81}', '‚', 'ƒ', '„', '…', '†', '‡', 'ˆ', '‰', 'Š', '‹', 'Œ', '\u{8d}', 'Ž', '\u{8f}', '\u{90}',
    '‘', '’', '“', '”', '•', '–', '—', '˜', '™', 'š', '›', 'œ', '\u{9d}', 'ž', 'Ÿ',
];

/// How a file is read.
struct Form {
    delimiter: Option<u8>,
    encoding: Encoding,
    /// Names of the columns; the file's first line where none are given.
    header: Option<Vec<String>>,
}

/// The delimiter that a text names.
fn delimiter(text: &str) -> Result<u8, String> {
    match text.as_bytes() {
        _ if text == TAB => Ok(b'\t'),
        [byte] if byte.is_ascii() && !byte.is_ascii_alphanumeric() && !b"\"\r\n".contains(byte) => Ok(*byte),
        _ => Err(format!("\"{text}\" is not a delimiter; it is one character like \";\", or tab")),
    }
}

/// Refuses keys that belong to a file where there is none.
pub(super) fn check_keys(said: &Feeder<'_>, reader: &Reader<'_>) {
    let of_files = [said.delimiter.key(), said.encoding.key(), said.header.key()];
    for key in of_files.into_iter().flatten().filter(|_| !said.file.is_there()) {
        let name = key.text().unwrap_or_default();
        reader.sink.error(key, format!("\"{name}\" says how a CSV file is read; this feeder has no file"));
    }
}

/// Reads a feeder's file; what is wrong is reported.
pub(super) fn read(
    said: &Feeder<'_>,
    base: &Path,
    room: u64,
    reader: &Reader<'_>,
) -> Option<(Vec<String>, Rows)> {
    let path = base.join(said.file.value.as_ref()?);
    let form = form(said, reader)?;
    match rows(&path, &form, room) {
        Ok(read) => Some(read),
        Err(message) => {
            said.file.error(reader.sink, format!("cannot read {}: {message}", path.display()));
            None
        }
    }
}

fn form(said: &Feeder<'_>, reader: &Reader<'_>) -> Option<Form> {
    let delimiter = match said.delimiter.node() {
        None => None,
        Some(node) => Some(reader.parsed(node, delimiter)?),
    };
    let encoding = said.encoding.given()?.copied().unwrap_or(Encoding::Utf8);
    let names = |list: &Node| list.items().iter().filter_map(|name| reader.text(name)).collect::<Vec<_>>();
    let header = said.header.value.map(names);
    if header.as_ref().is_some_and(Vec::is_empty) {
        return None; // which is told
    }
    if let Some(names) = &header
        && let Err(message) = check_header(names, b',')
    {
        said.header.error(reader.sink, message);
        return None;
    }
    Some(Form { delimiter, encoding, header })
}

fn rows(path: &Path, form: &Form, room: u64) -> Result<(Vec<String>, Rows), String> {
    let path = &crate::outside::path_of(path);
    if path.is_dir() {
        return Err("it is a folder; name a CSV file".into());
    }
    if !path.is_file() {
        return Err("there is no such file".into());
    }
    let mut bytes = Vec::new();
    let file = std::fs::File::open(path).map_err(|error| error.to_string())?;
    file.take(FILE_BYTES_MAX + 1).read_to_end(&mut bytes).map_err(|error| error.to_string())?;
    if bytes.len() as u64 > FILE_BYTES_MAX {
        return Err(format!("it is larger than {} GiB", FILE_BYTES_MAX >> 30));
    }
    parse(&decode(bytes, form.encoding)?, form, room)
}

/// The text of a file, without a byte order mark.
fn decode(bytes: Vec<u8>, encoding: Encoding) -> Result<String, String> {
    let text = match encoding {
        Encoding::Utf8 => String::from_utf8(bytes).map_err(|error| {
            let at = error.utf8_error().valid_up_to();
            not_utf8(error.as_bytes(), at)
        })?,
        Encoding::Latin1 => bytes.into_iter().map(char::from).collect(),
        Encoding::Windows1252 => bytes.into_iter().map(windows_1252).collect(),
        Encoding::Utf16 => utf_16(&bytes).ok_or("it is not UTF-16; give another `encoding`")?,
    };
    Ok(text.strip_prefix('\u{feff}').map(str::to_owned).unwrap_or(text))
}

fn windows_1252(byte: u8) -> char {
    match byte {
        0x80..=0x9f => WINDOWS_1252[usize::from(byte - 0x80)],
        _ => char::from(byte),
    }
}

/// With the low byte first, unless a mark says otherwise; none where it is not UTF-16.
fn utf_16(bytes: &[u8]) -> Option<String> {
    let (pairs, []) = bytes.as_chunks::<2>() else { return None };
    let unit = if bytes.starts_with(&[0xfe, 0xff]) { u16::from_be_bytes } else { u16::from_le_bytes };
    char::decode_utf16(pairs.iter().map(|pair| unit(*pair))).collect::<Result<_, _>>().ok()
}

/// What to do about a file that is not UTF-8 from this byte on.
fn not_utf8(bytes: &[u8], at: usize) -> String {
    if bytes.starts_with(&[0xff, 0xfe]) || bytes.starts_with(&[0xfe, 0xff]) {
        return "it is UTF-16: save it as UTF-8, or give `encoding: utf-16`".into();
    }
    let before = &bytes[..at];
    let line = before.iter().filter(|byte| **byte == b'\n').count() + 1;
    let begin = before.iter().rposition(|byte| *byte == b'\n').map_or(0, |newline| newline + 1);
    let column = String::from_utf8_lossy(&before[begin..]).chars().count() + 1;
    format!(
        "it is not UTF-8 at line {line}, column {column}: save it as UTF-8, or give `encoding: latin-1` (windows-1252, utf-16)"
    )
}

fn parse(text: &str, form: &Form, room: u64) -> Result<(Vec<String>, Rows), String> {
    let delimiter = form.delimiter.unwrap_or(b',');
    check_quotes(text, delimiter)?;
    let mut reader = ReaderBuilder::new()
        .delimiter(delimiter)
        .trim(Trim::All)
        .has_headers(false)
        .flexible(true)
        .from_reader(text.as_bytes());
    let mut records = reader.records();
    let mut next = || records.next().transpose().map_err(told);
    let columns = match &form.header {
        Some(names) => names.clone(),
        None => {
            let names: Vec<String> = next()?.iter().flatten().map(str::to_owned).collect();
            check_header(&names, delimiter)?;
            names
        }
    };
    let (mut rows, mut held) = (Rows::new(), 0);
    while let Some(record) = next()? {
        if rows.len() == ROWS_MAX {
            return Err(format!("it has more than {ROWS_MAX} rows"));
        }
        if record.len() != columns.len() {
            let line = record.position().map_or(0, csv::Position::line);
            let cells =
                if record.len() == 1 { "1 cell".to_owned() } else { format!("{} cells", record.len()) };
            let hint = other_delimiter(record.iter().next().unwrap_or_default(), delimiter)
                .filter(|_| record.len() == 1)
                .unwrap_or_default();
            return Err(format!("line {line} has {cells}, not {}{hint}", columns.len()));
        }
        held += bytes_of(record.iter().map(str::len));
        if held > room {
            return Err(too_many(held));
        }
        rows.push(record.iter().map(Into::into).collect());
    }
    match (rows.is_empty(), &form.header) {
        (false, _) => Ok((columns, rows)),
        (true, None) => Err("it has a header but no rows".into()),
        (true, Some(_)) => Err("it has no rows".into()),
    }
}

/// Refuses quotes that would silently change what a cell is: one that is not closed takes all that follows, and behind a
/// closed one the parser takes anything.
fn check_quotes(text: &str, delimiter: u8) -> Result<(), String> {
    let bytes = text.as_bytes();
    let is_blank = |byte: u8| byte != delimiter && b" \t".contains(&byte);
    let (mut line, mut at) = (1, 0);
    while at < bytes.len() {
        // at the begin of a cell
        let begin = at;
        at += bytes[at..].iter().take_while(|byte| is_blank(**byte)).count();
        if bytes.get(at) == Some(&b'"') {
            if at > begin {
                return Err(format!("line {line}: a blank before a quote; remove the blank"));
            }
            let opened = line;
            loop {
                at += 1;
                match (bytes.get(at), bytes.get(at + 1)) {
                    (None, _) => return Err(format!("line {opened}: a quote is not closed")),
                    (Some(b'"'), Some(b'"')) => at += 1,
                    (Some(b'"'), _) => break,
                    (Some(b'\n'), _) => line += 1,
                    (Some(_), _) => {}
                }
            }
            at += 1;
            at += bytes[at..].iter().take_while(|byte| is_blank(**byte)).count();
            let behind = bytes.get(at).copied();
            if behind.is_some_and(|byte| byte != delimiter && !b"\r\n".contains(&byte)) {
                if line > opened {
                    return Err(format!(
                        "line {opened}: a quote is not closed before the next one, in line {line}"
                    ));
                }
                let rest = text.get(at..).and_then(|rest| rest.get(..1)).unwrap_or_default();
                let hint = other_delimiter(rest, delimiter).unwrap_or_else(|| {
                    "; write a quote that belongs to the value twice: \"a \"\"b\"\" c\"".into()
                });
                return Err(format!("line {line}: a quote within a field{hint}"));
            }
        }
        let is_end = |byte: &u8| *byte == delimiter || b"\r\n".contains(byte);
        at += bytes[at..].iter().position(is_end).unwrap_or(bytes.len() - at);
        line += usize::from(bytes.get(at) == Some(&b'\n'));
        at += 1;
    }
    Ok(())
}

/// Each column has a name of its own that can be a variable's.
fn check_header(names: &[String], delimiter: u8) -> Result<(), String> {
    if let Some(bad) = names.iter().find(|name| !is_name(name)) {
        let first = names.first().map_or("", String::as_str);
        let hint = other_delimiter(first, delimiter).filter(|_| names.len() == 1).unwrap_or_default();
        return Err(format!(
            "its column \"{bad}\" cannot be a variable's name; use letters, digits and _{hint}; or name the columns of a file \
             without a header: `header: [user, password]`"
        ));
    }
    let twice = names.iter().enumerate().find(|(at, name)| names[..*at].contains(name));
    twice.map_or(Ok(()), |(_, name)| Err(format!("two of its columns are called \"{name}\"; rename one")))
}

/// What to do where another delimiter stands in a cell that should be several.
fn other_delimiter(cell: &str, delimiter: u8) -> Option<String> {
    let found = [b';', b'\t', b'|', b','].into_iter().find(|other| cell.as_bytes().contains(other));
    let found = found.filter(|other| *other != delimiter)?;
    let name = if found == b'\t' { TAB.to_owned() } else { format!("\"{}\"", char::from(found)) };
    Some(format!("; perhaps give `delimiter: {name}`"))
}

fn told(error: csv::Error) -> String {
    match error.into_kind() {
        ErrorKind::Io(error) => error.to_string(),
        // text, whose rows may have any length: nothing else is left
        kind => format!("invalid CSV: {kind:?}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::{Op, Plan};

    fn checked(file: &[u8], keys: &str) -> Result<Plan, String> {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("p.csv"), file).unwrap();
        let text = format!(
            "feeders: {{p: {{file: p.csv{keys}}}}}\n\
             sessions: {{s: {{steps: [{{take: p}}, {{GET: '/${{a}}'}}]}}, t: {{steps: [{{take: p}}, {{GET: '/${{a}}'}}]}}}}\n\
             load: {{users: 1, hold: 1s}}\n"
        );
        crate::load_text("t.yaml", &text, folder.path(), &[]).map_err(|told| told.to_string())
    }

    fn read_rows(file: &[u8], keys: &str) -> String {
        let plan = checked(file, keys).unwrap();
        let feeder = &plan.feeders[0];
        let rows = feeder.rows.iter().map(|row| row.join("|"));
        std::iter::once(feeder.columns.join("|")).chain(rows).collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn files_are_read_in_every_form() {
        let utf16 = |text: &str, bytes: fn(u16) -> [u8; 2]| -> Vec<u8> {
            text.encode_utf16().flat_map(bytes).collect()
        };
        for (file, keys, wanted) in [
            (&b"a,b\n1,2\n"[..], "", "a|b 1|2"),
            (b"\xef\xbb\xbfa,b\r\n1,2\r\n", "", "a|b 1|2"),
            (b"a;b\n1;2,3\n", ", delimiter: ';'", "a|b 1|2,3"),
            (b"a\tb\n1\t2\n", ", delimiter: tab", "a|b 1|2"),
            (b"1;2\n3;4\n", ", delimiter: ;, header: [a, b]", "a|b 1|2 3|4"),
            (b"a,b\n1,K\xf6ln\n", ", encoding: latin-1", "a|b 1|K\u{f6}ln"),
            (b"a,b\n1,\x80\n", ", encoding: windows-1252", "a|b 1|\u{20ac}"),
            (&utf16("\u{feff}a,b\n1,\u{f6}\n", u16::to_le_bytes), ", encoding: utf-16", "a|b 1|\u{f6}"),
            (&utf16("\u{feff}a,b\n1,\u{f6}\n", u16::to_be_bytes), ", encoding: utf-16", "a|b 1|\u{f6}"),
            (&utf16("a,b\n1,2\n", u16::to_le_bytes), ", encoding: utf-16", "a|b 1|2"),
            (b"a,b\n\"1\n1\",2\n", "", "a|b 1\n1|2"),
            (b"a,b\r\n\"1 \"\"x\"\", y\" ,5\" disk\r\n\"\",\"2\"", "", "a|b 1 \"x\", y|5\" disk |2"),
            (b"a\tb\n\"1\"\t\"2\"\n", ", delimiter: tab", "a|b 1|2"),
        ] {
            assert_eq!(read_rows(file, keys), wanted, "{keys}");
        }
    }

    #[test]
    fn a_file_is_read_as_far_as_there_is_room_for_its_rows() {
        let form = Form { delimiter: None, encoding: Encoding::Utf8, header: None };
        let held = bytes_of([1, 2].into_iter()) + bytes_of([3, 4].into_iter());
        let text = "a,b\n1,22\n333,4444\n";
        assert_eq!(parse(text, &form, held).unwrap().1.len(), 2);
        assert!(parse(text, &form, held - 1).unwrap_err().contains("all feeders together may hold 2GiB"));
    }

    #[test]
    fn what_is_wrong_with_a_file_is_told_in_words() {
        for (file, keys, wanted) in [
            (
                &b"a,b\nann,K\xf6ln\n"[..],
                "",
                "it is not UTF-8 at line 2, column 6: save it as UTF-8, or give `encoding: latin-1`",
            ),
            (b"\xff\xfea\0", "", "it is UTF-16: save it as UTF-8, or give `encoding: utf-16`"),
            (&b"a\0b"[..], ", encoding: utf-16", "it is not UTF-16; give another `encoding`"),
            (b"a,b,a\n1,2,3\n", "", "two of its columns are called \"a\"; rename one"),
            (b"1,2\n", ", header: [a, a]", "two of its columns are called \"a\""),
            (b"a;b\n1;2\n", "", "perhaps give `delimiter: \";\"`"),
            (b"a\tb\n1\t2\n", "", "perhaps give `delimiter: tab`"),
            (
                b"0001;pass\n",
                ", delimiter: ';'",
                "name the columns of a file without a header: `header: [user, password]`",
            ),
            (b"1;2\n", ", header: [a, b]", "line 1 has 1 cell, not 2; perhaps give `delimiter: \";\"`"),
            (b"a,b\n\"1\n1\",2\n3\n", "", "line 4 has 1 cell, not 2"),
            (b"a,b\n1,2,3\n", "", "line 2 has 3 cells, not 2"),
            (b"a,b\n1,2\nu2,\"p2\nu3,p3\n", "", "line 3: a quote is not closed"),
            (
                b"a,b\nu2,\"p2\nu3,\"p3\"\n",
                "",
                "line 2: a quote is not closed before the next one, in line 3",
            ),
            (b"a,b\n\"1\n1\",2\n3,\"4\n", "", "line 4: a quote is not closed"),
            (b"\"a,b\n1,2\n", "", "line 1: a quote is not closed"),
            (b"a,b\n1,\"\"\"\n", "", "line 2: a quote is not closed"),
            (b"a,b\n1,\"b\"c\n", "", "line 2: a quote within a field; write a quote that"),
            (b"a,b\n1,\"b\" \"c\"\n", "", "line 2: a quote within a field"),
            (b"a,b\n1, \"b\"\n", "", "line 2: a blank before a quote; remove the blank"),
            (b"\"a\";\"b\"\n1;2\n", "", "line 1: a quote within a field; perhaps give `delimiter: \";\"`"),
            (b"a,b\n1,2\n", ", header: true", "\"header\" is a plain value; expected a list"),
            (b"a,b\n1,2\n", ", header: []", "header"),
            (b"a,b\n", "", "it has a header but no rows"),
            (b"", ", header: [a]", "it has no rows"),
            (
                b"a\n1\n",
                ", delimiter: ab",
                "\"ab\" is not a delimiter; it is one character like \";\", or tab",
            ),
            (b"a\n1\n", ", encoding: ebcdic", "latin-1"),
        ] {
            let told = checked(file, keys).unwrap_err();
            assert!(told.contains(wanted), "{keys}: {told}");
        }
        let text = "feeders: {p: {values: [a], delimiter: ';'}}\nsessions: {s: {steps: [{take: p}, {GET: '/${p}'}]}}\n\
                    load: {users: 1, hold: 1s}\n";
        let told = crate::load_text("t.yaml", text, std::path::Path::new("."), &[]).unwrap_err().to_string();
        assert!(
            told.contains("\"delimiter\" says how a CSV file is read; this feeder has no file"),
            "{told}"
        );
    }

    #[test]
    fn a_feeder_that_cannot_be_read_is_the_only_mistake() {
        let folder = tempfile::tempdir().unwrap();
        let told = |feeder: &str| {
            let text = format!(
                "feeders: {{p: {{{feeder}}}}}\n\
                 sessions: {{s: {{steps: [{{take: p}}, {{GET: '/${{user}}/${{pass}}'}}, {{GET: '/${{next(p, pass)}}'}}]}}}}\n\
                 load: {{users: 1, hold: 1s}}\n"
            );
            crate::load_text("t.yaml", &text, folder.path(), &[]).unwrap_err().to_string()
        };
        std::fs::write(folder.path().join("p.csv"), "user,pass\n1,2,3\n").unwrap();
        for (feeder, wanted) in [
            ("file: none.csv", "there is no such file"),
            ("file: .", "it is a folder"),
            ("file: p.csv", "line 2 has 3 cells, not 2"),
            ("file: p.csv, header: true", "\"header\" is a plain value; expected a list"),
            ("file: p.csv, delimiter: ab", "is not a delimiter"),
            ("from: 1", "numbers need an end"),
            ("rows: [{}]", "need at least one column"),
        ] {
            let told = told(feeder);
            assert!(told.contains(wanted), "{feeder}: {told}");
            assert!(
                !told.contains("unknown variable")
                    && !told.contains("no column")
                    && !told.contains("cells, not 0"),
                "{feeder}: {told}"
            );
        }
    }

    #[test]
    fn sessions_that_take_from_one_feeder_share_its_cursor() {
        let plan = checked(b"a\n1\n2\n3\n4\n", "").unwrap();
        assert_eq!(plan.feeders.len(), 1);
        let shared = crate::Shared::of(&plan);
        let (mut random, mut row) = (fastrand::Rng::with_seed(1), crate::Slot::default());
        let mut rows = Vec::new();
        for session in plan.sessions.iter().cycle().take(4) {
            let Op::Set { value, .. } = &session.ops[0] else { panic!("{:?}", session.ops[0]) };
            let mut context =
                crate::Context { slots: &[], shared: &shared, random: &mut random, epoch_ms: 0 };
            value.eval_into(&mut context, &mut row);
            rows.push(row.value().number().unwrap());
        }
        assert_eq!(rows, [0.0, 1.0, 2.0, 3.0]);
    }
}
