//! Parquet files as tables of named column vectors. All that the rest of the crate knows of the format.

use std::fs::File;
use std::panic;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use bytes::Bytes;
use parquet::basic::{Compression, LogicalType, Repetition, Type as Physical};
use parquet::column::reader::{ColumnReader, ColumnReaderImpl};
use parquet::data_type::{BoolType, ByteArray, ByteArrayType, DataType, DoubleType, Int64Type};
use parquet::errors::ParquetError;
use parquet::file::metadata::KeyValue;
use parquet::file::properties::WriterProperties;
use parquet::file::reader::{FileReader, SerializedFileReader};
use parquet::file::writer::{SerializedFileWriter, SerializedRowGroupWriter};
use parquet::schema::types::{ColumnPath, Type};

use crate::error::{RecordError, damaged, io_error};

/// Rows that are gathered before they are written out as a row group.
const GROUP_ROWS: usize = 8_192;
/// Bytes of texts, histograms and lists that are gathered before they are written out: half a minute of a small scenario.
/// More would look like a leak for as long, and compress no better.
const GROUP_BYTES: usize = 128 << 10;

/// Most different values of a column of which there are few.
const CODES_MAX: usize = 4_096;

/// What a column holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Signed, 64 bits: times, counts, bytes.
    Int,
    /// Double precision.
    Float,
    /// True or false.
    Bool,
    /// UTF-8.
    Text,
    /// Encoded histograms.
    Bytes,
    /// A list of integers in each row.
    Ints,
}

/// Name and kind of a column.
pub(crate) type Field = (&'static str, Kind);

/// One value of a row.
#[derive(Debug, Clone)]
#[allow(missing_docs)]
pub(crate) enum Cell<'a> {
    Int(u64),
    Float(f64),
    Bool(bool),
    Text(&'a str),
    Bytes(Bytes),
    Ints(&'a [u64]),
}

/// The values of a column, in order of the rows.
#[derive(Debug, Clone)]
enum Column {
    Int(Vec<i64>),
    Float(Vec<f64>),
    Bool(Vec<bool>),
    /// Texts and histograms.
    Bytes(Vec<ByteArray>),
    Ints(Vec<Vec<i64>>),
}

impl Column {
    fn new(kind: Kind) -> Column {
        match kind {
            Kind::Int => Column::Int(Vec::new()),
            Kind::Float => Column::Float(Vec::new()),
            Kind::Bool => Column::Bool(Vec::new()),
            Kind::Text | Kind::Bytes => Column::Bytes(Vec::new()),
            Kind::Ints => Column::Ints(Vec::new()),
        }
    }

    /// Appends a value; returns roughly how many bytes it holds beyond a fixed few.
    fn push(&mut self, cell: Cell<'_>) -> usize {
        match (self, cell) {
            (Column::Int(values), Cell::Int(value)) => values.push(to_stored(value)),
            (Column::Float(values), Cell::Float(value)) => values.push(value),
            (Column::Bool(values), Cell::Bool(value)) => values.push(value),
            (Column::Bytes(values), Cell::Text(value)) => {
                values.push(ByteArray::from(value));
                return value.len();
            }
            (Column::Bytes(values), Cell::Bytes(value)) => {
                let length = value.len();
                values.push(ByteArray::from(value));
                return length;
            }
            (Column::Ints(lists), Cell::Ints(values)) => {
                lists.push(values.iter().map(|&v| to_stored(v)).collect());
                return values.len() * 8;
            }
            (column, cell) => unreachable!("a row's cells follow its table's fields: {column:?} {cell:?}"),
        }
        0
    }

    fn clear(&mut self) {
        match self {
            Column::Int(values) => values.clear(),
            Column::Float(values) => values.clear(),
            Column::Bool(values) => values.clear(),
            Column::Bytes(values) => values.clear(),
            Column::Ints(values) => values.clear(),
        }
    }

    /// Writes the whole column as the next one of a row group.
    fn write(&self, group: &mut SerializedRowGroupWriter<'_, File>) -> Result<(), ParquetError> {
        let Some(mut writer) = group.next_column()? else {
            return Err(ParquetError::General("more columns than the schema has".into()));
        };
        match self {
            Column::Int(values) => drop(writer.typed::<Int64Type>().write_batch(values, None, None)?),
            Column::Float(values) => drop(writer.typed::<DoubleType>().write_batch(values, None, None)?),
            Column::Bool(values) => drop(writer.typed::<BoolType>().write_batch(values, None, None)?),
            Column::Bytes(values) => drop(writer.typed::<ByteArrayType>().write_batch(values, None, None)?),
            Column::Ints(lists) => {
                let (values, definitions, repetitions) = flatten(lists);
                let typed = writer.typed::<Int64Type>();
                typed.write_batch(&values, Some(&definitions), Some(&repetitions))?;
            }
        }
        writer.close()
    }
}

/// Lists as Parquet wants them: the values, and for each (or for an empty list) whether it is one (definition)
/// and whether it continues the list before (repetition).
fn flatten(lists: &[Vec<i64>]) -> (Vec<i64>, Vec<i16>, Vec<i16>) {
    let (mut definitions, mut repetitions) = (Vec::new(), Vec::new());
    for list in lists {
        definitions.extend(std::iter::repeat_n(1, list.len()));
        repetitions.extend((0..list.len()).map(|i| i16::from(i > 0)));
        if list.is_empty() {
            definitions.push(0);
            repetitions.push(0);
        }
    }
    (lists.concat(), definitions, repetitions)
}

/// The opposite of [`flatten`].
fn unflatten(values: Vec<i64>, definitions: &[i16], repetitions: &[i16]) -> Option<Vec<Vec<i64>>> {
    let mut values = values.into_iter();
    let mut lists: Vec<Vec<i64>> = Vec::new();
    for (&definition, &repetition) in definitions.iter().zip(repetitions) {
        if repetition == 0 {
            lists.push(Vec::new());
        }
        if definition > 0 {
            lists.last_mut()?.push(values.next()?);
        }
    }
    Some(lists)
}

fn to_stored(value: u64) -> i64 {
    i64::try_from(value).unwrap_or(i64::MAX)
}

/// A Parquet file that rows are appended to.
pub(crate) struct TableWriter {
    path: PathBuf,
    columns: Vec<Column>,
    rows: usize,
    held_bytes: usize,
    file: SerializedFileWriter<File>,
}

impl TableWriter {
    /// Creates the file. `about` goes into it for whoever reads it without this program.
    pub(crate) fn create(path: &Path, fields: &[Field], about: &str) -> Result<TableWriter, RecordError> {
        let schema = schema(fields).map_err(|e| damaged(path, e))?;
        let mut properties = WriterProperties::builder()
            .set_compression(Compression::SNAPPY)
            .set_key_value_metadata(Some(vec![KeyValue::new("about".into(), about.to_owned())]));
        for (name, kind) in fields {
            let column = ColumnPath::from(*name);
            properties = properties.set_column_dictionary_enabled(column, *kind == Kind::Text);
        }
        let file = File::create_new(path).map_err(io_error("create", path))?;
        let file = SerializedFileWriter::new(file, schema, Arc::new(properties.build()))
            .map_err(|e| damaged(path, format!("cannot begin: {e}")))?;
        let columns = fields.iter().map(|(_, kind)| Column::new(*kind)).collect();
        Ok(TableWriter { path: path.to_owned(), columns, rows: 0, held_bytes: 0, file })
    }

    /// Appends a row; its cells in the order of the fields.
    pub(crate) fn push<const N: usize>(&mut self, row: [Cell<'_>; N]) -> Result<(), RecordError> {
        debug_assert_eq!(N, self.columns.len());
        for (column, cell) in self.columns.iter_mut().zip(row) {
            self.held_bytes += column.push(cell);
        }
        self.rows += 1;
        if self.rows >= GROUP_ROWS || self.held_bytes >= GROUP_BYTES { self.write_group() } else { Ok(()) }
    }

    /// Writes what is held and the footer; nothing can be appended afterwards. Without it the file is unreadable.
    pub(crate) fn finish(&mut self) -> Result<(), RecordError> {
        if self.rows > 0 {
            self.write_group()?;
        }
        self.file.finish().map_err(|e| damaged(&self.path, format!("cannot finish: {e}")))?;
        Ok(())
    }

    fn write_group(&mut self) -> Result<(), RecordError> {
        let mut write = || -> Result<(), ParquetError> {
            let mut group = self.file.next_row_group()?;
            for column in &mut self.columns {
                column.write(&mut group)?;
                column.clear();
            }
            group.close()?;
            Ok(())
        };
        write().map_err(|e| damaged(&self.path, format!("cannot write: {e}")))?;
        self.rows = 0;
        self.held_bytes = 0;
        Ok(())
    }
}

fn schema(fields: &[Field]) -> Result<Arc<Type>, ParquetError> {
    let column = |&(name, kind): &Field| {
        let (physical, logical) = match kind {
            Kind::Int | Kind::Ints => (Physical::INT64, None),
            Kind::Float => (Physical::DOUBLE, None),
            Kind::Bool => (Physical::BOOLEAN, None),
            Kind::Text => (Physical::BYTE_ARRAY, Some(LogicalType::String)),
            Kind::Bytes => (Physical::BYTE_ARRAY, None),
        };
        let repetition = if kind == Kind::Ints { Repetition::REPEATED } else { Repetition::REQUIRED };
        let builder = Type::primitive_type_builder(name, physical).with_repetition(repetition);
        Ok(Arc::new(builder.with_logical_type(logical).build()?))
    };
    let columns = fields.iter().map(column).collect::<Result<Vec<_>, ParquetError>>()?;
    Ok(Arc::new(Type::group_type_builder("run").with_fields(columns).build()?))
}

/// A Parquet file whose row groups are read one by one, where all of them at once would be too much to hold.
pub(crate) struct Groups {
    path: PathBuf,
    reader: SerializedFileReader<File>,
    /// Where in the file each column is.
    columns: Vec<(usize, &'static str, Kind)>,
}

impl Groups {
    /// Opens a file that has these columns, and perhaps others.
    pub(crate) fn open(path: &Path, fields: &[Field]) -> Result<Groups, RecordError> {
        guarded(path, || Groups::open_trusting(path, fields, &[]))
    }

    fn open_trusting(path: &Path, fields: &[Field], later: &[&str]) -> Result<Groups, RecordError> {
        let file = File::open(path).map_err(io_error("read", path))?;
        let reader = SerializedFileReader::new(file).map_err(|e| broken(path, &e))?;
        let schema = reader.metadata().file_metadata().schema_descr_ptr();
        let mut columns = Vec::with_capacity(fields.len());
        for &(name, kind) in fields {
            match schema.columns().iter().position(|c| c.name() == name) {
                Some(position) => columns.push((position, name, kind)),
                None if later.contains(&name) => {}
                None => return Err(damaged(path, format!("has no column {name}"))),
            }
        }
        Ok(Groups { path: path.to_owned(), reader, columns })
    }

    /// The file.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Number of row groups.
    pub(crate) fn count(&self) -> usize {
        self.reader.num_row_groups()
    }

    /// One of them.
    pub(crate) fn read(&self, group: usize) -> Result<Table, RecordError> {
        guarded(&self.path, || {
            let mut table = self.none();
            self.append(group, &mut table)?;
            Ok(table)
        })
    }

    /// Its columns without a row.
    fn none(&self) -> Table {
        let columns = self.columns.iter().map(|&(_, name, kind)| (name, Column::new(kind))).collect();
        Table { path: self.path.clone(), rows: 0, columns }
    }

    fn append(&self, group: usize, table: &mut Table) -> Result<(), RecordError> {
        let path = &self.path;
        let group = self.reader.get_row_group(group).map_err(|e| broken(path, &e))?;
        let count = usize::try_from(group.metadata().num_rows()).unwrap_or(0);
        table.rows += count;
        for ((position, ..), (name, column)) in self.columns.iter().zip(&mut table.columns) {
            let chunk = group.metadata().column(*position);
            let start = chunk.dictionary_page_offset().unwrap_or(chunk.data_page_offset());
            if start < 0 || chunk.compressed_size() < 0 {
                return Err(damaged(path, format!("column {name}: its place in the file is damaged")));
            }
            let source = group.get_column_reader(*position).map_err(|e| broken(path, &e))?;
            read_column(source, column, count).map_err(|e| damaged(path, format!("column {name}: {e}")))?;
        }
        Ok(())
    }
}

/// The library returns errors for nearly all damage, but asserts on some flipped bits.
fn guarded<T>(path: &Path, read: impl FnOnce() -> Result<T, RecordError>) -> Result<T, RecordError> {
    panic::catch_unwind(panic::AssertUnwindSafe(read))
        .unwrap_or_else(|_| Err(damaged(path, "damaged in a way that its reader cannot cope with")))
}

fn broken(path: &Path, error: &ParquetError) -> RecordError {
    damaged(path, format!("not a complete Parquet file ({error}); was the run killed while it wrote?"))
}

/// A whole table, read back.
pub(crate) struct Table {
    path: PathBuf,
    rows: usize,
    columns: Vec<(&'static str, Column)>,
}

impl Table {
    /// Reads the columns asked for; others that the file may have are left alone.
    pub(crate) fn read(path: &Path, fields: &[Field]) -> Result<Table, RecordError> {
        Table::read_with(path, fields, &[])
    }

    /// The same, where files of earlier versions lack some of them.
    pub(crate) fn read_with(path: &Path, fields: &[Field], later: &[&str]) -> Result<Table, RecordError> {
        guarded(path, || Table::read_trusting(path, fields, later))
    }

    fn read_trusting(path: &Path, fields: &[Field], later: &[&str]) -> Result<Table, RecordError> {
        let groups = Groups::open_trusting(path, fields, later)?;
        let mut table = groups.none();
        for group in 0..groups.count() {
            groups.append(group, &mut table)?;
        }
        Ok(table)
    }

    /// Number of rows.
    pub(crate) fn rows(&self) -> usize {
        self.rows
    }

    /// The file that it came from.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Whether the file has this column, of those that it may lack.
    pub(crate) fn has(&self, name: &str) -> bool {
        self.columns.iter().any(|(n, _)| *n == name)
    }

    fn column(&self, name: &str) -> Result<&Column, RecordError> {
        let found = self.columns.iter().find(|(n, _)| *n == name).map(|(_, column)| column);
        found.ok_or_else(|| damaged(&self.path, format!("column {name} was not read")))
    }

    fn wrong_kind(&self, name: &str) -> RecordError {
        damaged(&self.path, format!("column {name} is of another kind than asked for"))
    }

    /// Times and counts. Negative ones are not written; a damaged file's count as zero.
    pub(crate) fn ints(&self, name: &str) -> Result<Vec<u64>, RecordError> {
        match self.column(name)? {
            Column::Int(values) => Ok(values.iter().map(|&v| from_stored(v)).collect()),
            _ => Err(self.wrong_kind(name)),
        }
    }

    /// Fractions.
    pub(crate) fn floats(&self, name: &str) -> Result<&[f64], RecordError> {
        if let Column::Float(values) = self.column(name)? { Ok(values) } else { Err(self.wrong_kind(name)) }
    }

    /// Truth values.
    pub(crate) fn bools(&self, name: &str) -> Result<&[bool], RecordError> {
        if let Column::Bool(values) = self.column(name)? { Ok(values) } else { Err(self.wrong_kind(name)) }
    }

    /// Encoded histograms.
    pub(crate) fn bytes(&self, name: &str) -> Result<Vec<Bytes>, RecordError> {
        // Copied out: a value would otherwise keep its whole decoded page in memory.
        match self.column(name)? {
            Column::Bytes(values) => Ok(values.iter().map(|v| Bytes::copy_from_slice(v.data())).collect()),
            _ => Err(self.wrong_kind(name)),
        }
    }

    /// The same where they are, for whoever is done with them before the table is gone.
    pub(crate) fn slices(&self, name: &str) -> Result<impl Iterator<Item = &[u8]>, RecordError> {
        match self.column(name)? {
            Column::Bytes(values) => Ok(values.iter().map(ByteArray::data)),
            _ => Err(self.wrong_kind(name)),
        }
    }

    /// Texts.
    pub(crate) fn texts(&self, name: &str) -> Result<Vec<String>, RecordError> {
        let Column::Bytes(values) = self.column(name)? else { return Err(self.wrong_kind(name)) };
        let text = |v: &ByteArray| v.as_utf8().map(str::to_owned);
        let texts: Result<Vec<_>, _> = values.iter().map(text).collect();
        texts.map_err(|e| damaged(&self.path, format!("column {name}: {e}")))
    }

    /// Texts of which there are few, as places in `known`; new ones are added there.
    pub(crate) fn codes(&self, name: &str, known: &mut Vec<String>) -> Result<Vec<usize>, RecordError> {
        let Column::Bytes(values) = self.column(name)? else { return Err(self.wrong_kind(name)) };
        let mut code = |value: &ByteArray| {
            if let Some(code) = known.iter().position(|text| text.as_bytes() == value.data()) {
                return Ok(code);
            }
            let text = value.as_utf8().map_err(|e| damaged(&self.path, format!("column {name}: {e}")))?;
            if known.len() >= CODES_MAX {
                let reason = format!("column {name} has more than {CODES_MAX} different values");
                return Err(damaged(&self.path, reason));
            }
            known.push(text.to_owned());
            Ok(known.len() - 1)
        };
        values.iter().map(&mut code).collect()
    }

    /// Lists of integers.
    pub(crate) fn lists(&self, name: &str) -> Result<Vec<Vec<u64>>, RecordError> {
        let Column::Ints(lists) = self.column(name)? else { return Err(self.wrong_kind(name)) };
        Ok(lists.iter().map(|list| list.iter().map(|&v| from_stored(v)).collect()).collect())
    }
}

fn from_stored(value: i64) -> u64 {
    u64::try_from(value).unwrap_or(0)
}

/// Appends `count` rows of a row group to a column.
fn read_column(source: ColumnReader, column: &mut Column, count: usize) -> Result<(), String> {
    match (source, column) {
        (ColumnReader::Int64ColumnReader(source), Column::Ints(lists)) => {
            let (values, definitions, repetitions) = read_values::<Int64Type>(source, count)?;
            let read = unflatten(values, &definitions, &repetitions).filter(|lists| lists.len() == count);
            lists.extend(read.ok_or("its lists are damaged")?);
        }
        (ColumnReader::Int64ColumnReader(source), Column::Int(values)) => {
            values.extend(read_flat::<Int64Type>(source, count)?);
        }
        (ColumnReader::DoubleColumnReader(source), Column::Float(values)) => {
            values.extend(read_flat::<DoubleType>(source, count)?);
        }
        (ColumnReader::BoolColumnReader(source), Column::Bool(values)) => {
            values.extend(read_flat::<BoolType>(source, count)?);
        }
        (ColumnReader::ByteArrayColumnReader(source), Column::Bytes(values)) => {
            values.extend(read_flat::<ByteArrayType>(source, count)?);
        }
        _ => return Err("holds another type than this program writes".into()),
    }
    Ok(())
}

fn read_flat<T: DataType>(source: ColumnReaderImpl<T>, count: usize) -> Result<Vec<T::T>, String> {
    let (values, ..) = read_values::<T>(source, count)?;
    if values.len() == count { Ok(values) } else { Err(format!("{} of {count} values", values.len())) }
}

type Levelled<T> = (Vec<T>, Vec<i16>, Vec<i16>);

fn read_values<T: DataType>(mut source: ColumnReaderImpl<T>, count: usize) -> Result<Levelled<T::T>, String> {
    let (mut values, mut definitions, mut repetitions) = (Vec::new(), Vec::new(), Vec::new());
    let mut read = 0;
    while read < count {
        let (records, ..) = source
            .read_records(count - read, Some(&mut definitions), Some(&mut repetitions), &mut values)
            .map_err(|e| e.to_string())?;
        if records == 0 {
            return Err(format!("ends after {read} of {count} rows"));
        }
        read += records;
    }
    Ok((values, definitions, repetitions))
}

#[cfg(test)]
mod tests {
    use super::*;

    const FIELDS: [Field; 6] = [
        ("n", Kind::Int),
        ("x", Kind::Float),
        ("yes", Kind::Bool),
        ("name", Kind::Text),
        ("raw", Kind::Bytes),
        ("list", Kind::Ints),
    ];

    fn write(path: &Path, rows: u64) {
        let mut table = TableWriter::create(path, &FIELDS, "a test").unwrap();
        for n in 0..rows {
            let list: Vec<u64> = (0..n % 4).map(|i| n * 10 + i).collect();
            let name = format!("row {n} \u{1f30a}");
            let raw = Bytes::from(vec![n as u8; (n % 5) as usize]);
            let row = [
                Cell::Int(n),
                Cell::Float(n as f64 / 2.0),
                Cell::Bool(n % 2 == 0),
                Cell::Text(&name),
                Cell::Bytes(raw),
                Cell::Ints(&list),
            ];
            table.push(row).unwrap();
        }
        table.finish().unwrap();
    }

    #[test]
    fn rows_come_back_over_several_groups() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("t.parquet");
        let rows = 2 * GROUP_ROWS as u64 + 3;
        write(&path, rows);
        let table = Table::read(&path, &FIELDS).unwrap();
        assert_eq!(table.rows() as u64, rows);
        assert_eq!(table.ints("n").unwrap(), (0..rows).collect::<Vec<_>>());
        let last = rows - 1;
        assert_eq!(table.floats("x").unwrap()[last as usize], last as f64 / 2.0);
        assert_eq!(table.bools("yes").unwrap()[..3], [true, false, true]);
        assert_eq!(table.texts("name").unwrap()[7], "row 7 \u{1f30a}");
        assert_eq!(table.bytes("raw").unwrap()[9], Bytes::from_static(&[9, 9, 9, 9]));
        assert_eq!(table.lists("list").unwrap()[..4], [vec![], vec![10], vec![20, 21], vec![30, 31, 32]]);
    }

    #[test]
    fn an_empty_table_is_a_table() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("t.parquet");
        write(&path, 0);
        assert_eq!(Table::read(&path, &FIELDS).unwrap().rows(), 0);
    }

    #[test]
    fn torn_and_foreign_files_are_named() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("t.parquet");
        write(&path, 100);
        let whole = std::fs::read(&path).unwrap();
        for length in [0, 3, 4, 50, whole.len() / 2, whole.len() - 1] {
            std::fs::write(&path, &whole[..length]).unwrap();
            let error = Table::read(&path, &FIELDS).err().expect("torn").to_string();
            assert!(error.contains("t.parquet"), "{error}");
        }
        std::fs::write(&path, &whole).unwrap();
        let missing = Table::read(&path, &[("absent", Kind::Int)]).err().expect("no such column").to_string();
        assert!(missing.contains("absent"), "{missing}");
        let kind = Table::read(&path, &[("name", Kind::Int)]).err().expect("text is no number").to_string();
        assert!(kind.contains("name"), "{kind}");
    }
}
