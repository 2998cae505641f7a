//! What a server tells of statements: the types of their values, the columns of their rows.

use super::CqlError;
use super::frame::Bytes;
use super::value::Type;
use crate::json;

/// Flags of metadata.
const GLOBAL_TABLE: i32 = 1;
const HAS_MORE_PAGES: i32 = 2;
const NO_METADATA: i32 = 4;

/// The columns of a statement's rows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Columns(Vec<(Box<[u8]>, Type)>);

impl Columns {
    /// How many there are.
    pub(super) fn len(&self) -> usize {
        self.0.len()
    }

    /// Appends a row.
    pub(super) fn write_row(&self, bytes: &mut Bytes<'_>, out: &mut Vec<u8>) -> Result<(), CqlError> {
        out.push(b'{');
        for (index, (key, kind)) in self.0.iter().enumerate() {
            if index > 0 {
                out.push(b',');
            }
            out.extend_from_slice(key);
            match bytes.bytes()? {
                Some(value) => kind.write_json(value, out)?,
                None => out.extend_from_slice(b"null"),
            }
        }
        out.push(b'}');
        Ok(())
    }
}

/// A prepared statement.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Prepared {
    /// By what the server knows it.
    pub id: Box<[u8]>,
    /// The types of its values, in order.
    pub values: Box<[Type]>,
    /// The columns of its rows; none where only they tell, or there are no rows.
    pub columns: Option<Columns>,
}

impl Prepared {
    /// Reads the body of a result.
    ///
    /// # Errors
    /// It is malformed, or another result.
    pub fn read(body: &[u8]) -> Result<Self, CqlError> {
        let mut bytes = Bytes(body);
        if bytes.int()? != 4 {
            return Err(CqlError::Malformed);
        }
        let id = bytes.string()?.into();
        let (flags, count) = (bytes.int()?, bytes.int()?);
        for _ in 0..bytes.int()? {
            bytes.short()?;
        }
        let values = columns(&mut bytes, flags, count)?.into_iter().map(|(_, kind)| kind).collect();
        let columns = of_rows(&mut bytes)?.columns.filter(|columns| !columns.0.is_empty());
        Ok(Prepared { id, values, columns })
    }
}

/// What is told of rows.
pub(super) struct Rows<'a> {
    /// How many columns they have.
    pub count: usize,
    /// Which; none where they are not told.
    pub columns: Option<Columns>,
    /// Whether these are not all of them.
    pub has_more_pages: bool,
    /// By what the next ones are asked for.
    next_page: Option<&'a [u8]>,
}

/// What stands before rows.
pub(super) fn of_rows<'a>(bytes: &mut Bytes<'a>) -> Result<Rows<'a>, CqlError> {
    let (flags, told) = (bytes.int()?, bytes.int()?);
    let count = usize::try_from(told).map_err(|_| CqlError::Malformed)?;
    let has_more_pages = flags & HAS_MORE_PAGES != 0;
    let next_page = if has_more_pages { Some(bytes.bytes()?.ok_or(CqlError::Malformed)?) } else { None };
    if flags & NO_METADATA != 0 {
        return Ok(Rows { count, columns: None, has_more_pages, next_page });
    }
    let keyed = |(name, kind): (&[u8], Type)| {
        let mut key = Vec::new();
        json::write_string(name, &mut key);
        key.push(b':');
        (key.into_boxed_slice(), kind)
    };
    let columns = Columns(columns(bytes, flags, told)?.into_iter().map(keyed).collect());
    Ok(Rows { count, columns: Some(columns), has_more_pages, next_page })
}

/// Shows each value of a result's rows as text, those that are null left out. Returns by what the next page is asked for, where
/// these are not all rows.
///
/// # Errors
/// The body of the result is malformed.
pub fn each_value(body: &[u8], visit: &mut dyn FnMut(&[u8])) -> Result<Option<Box<[u8]>>, CqlError> {
    let mut bytes = Bytes(body);
    if bytes.int()? != 2 {
        // no rows
        return Ok(None);
    }
    let rows = of_rows(&mut bytes)?;
    let columns = rows.columns.ok_or(CqlError::Columns)?;
    let count = if columns.0.is_empty() { 0 } else { bytes.int()? };
    let mut text = Vec::new();
    for _ in 0..count {
        for (_, kind) in &columns.0 {
            match (bytes.bytes()?, kind) {
                (None, _) => {}
                (Some(value), Type::Text | Type::Blob) => visit(value),
                (Some(value), kind) => {
                    text.clear();
                    kind.write_json(value, &mut text)?;
                    visit(&text);
                }
            }
        }
    }
    Ok(rows.next_page.map(Box::from))
}

fn columns<'a>(bytes: &mut Bytes<'a>, flags: i32, count: i32) -> Result<Vec<(&'a [u8], Type)>, CqlError> {
    if flags & GLOBAL_TABLE != 0 {
        bytes.string()?;
        bytes.string()?;
    }
    let mut columns = Vec::new();
    for _ in 0..count {
        if flags & GLOBAL_TABLE == 0 {
            bytes.string()?;
            bytes.string()?;
        }
        columns.push((bytes.string()?, Type::read(bytes, 0)?));
    }
    Ok(columns)
}
