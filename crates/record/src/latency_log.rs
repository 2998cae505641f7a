//! `latency.hlog`: the interval log that HdrHistogram's own tools read.

use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use hdrhistogram::serialization::V2DeflateSerializer;
use hdrhistogram::serialization::interval_log::{IntervalLogWriterBuilder, Tag};

use crate::error::{RecordError, damaged, io_error};
use crate::histogram::Merged;

/// Writes a line for each interval and label: response times, microseconds, of the requests answered as they
/// should. Times in the file are seconds relative to its `BaseTime`; the tag is the label, with `_` for what a
/// tag may not hold.
pub(crate) struct LatencyLog {
    path: PathBuf,
    file: BufWriter<File>,
    tags: Vec<String>,
    serializer: V2DeflateSerializer,
    begun: bool,
}

impl LatencyLog {
    pub(crate) fn create(path: &Path, labels: &[String]) -> Result<LatencyLog, RecordError> {
        let file = BufWriter::new(File::create_new(path).map_err(io_error("create", path))?);
        let tag = |label: &String| label.replace([',', ' ', '\r', '\n'], "_");
        let tags = labels.iter().map(tag).collect();
        let serializer = V2DeflateSerializer::new();
        Ok(LatencyLog { path: path.to_owned(), file, tags, serializer, begun: false })
    }

    /// Whether the head is written already.
    pub(crate) fn begun(&self) -> bool {
        self.begun
    }

    /// Writes the head; `anchor` is when the run's clock was zero.
    pub(crate) fn begin(&mut self, anchor: SystemTime) -> Result<(), RecordError> {
        self.begun = true;
        IntervalLogWriterBuilder::new()
            .add_comment("[Histogram log format version 1.3]")
            .add_comment("[Response times of good answers, microseconds; Interval_Max too; warm-up included]")
            .with_start_time(anchor)
            .with_base_time(anchor)
            .begin_log_with(&mut self.file, &mut self.serializer)
            .map(drop)
            .map_err(io_error("write", &self.path))?;
        let legend =
            "\"StartTimestamp\",\"Interval_Length\",\"Interval_Max\",\"Interval_Compressed_Histogram\"";
        writeln!(self.file, "{legend}").map_err(io_error("write", &self.path))
    }

    /// Writes a line.
    pub(crate) fn add(
        &mut self,
        label: u16,
        start_us: u64,
        end_us: u64,
        response_time_us: &Merged,
    ) -> Result<(), RecordError> {
        let tag = self.tags.get(usize::from(label)).and_then(|tag| Tag::new(tag));
        IntervalLogWriterBuilder::new()
            .begin_log_with(&mut self.file, &mut self.serializer)
            .map_err(io_error("write", &self.path))?
            .write_histogram(
                response_time_us,
                Duration::from_micros(start_us),
                Duration::from_micros(end_us - start_us),
                tag,
            )
            .map_err(|e| damaged(&self.path, format!("cannot write: {e}")))
    }

    /// Writes out what is held.
    pub(crate) fn flush(&mut self) -> Result<(), RecordError> {
        self.file.flush().map_err(io_error("write", &self.path))
    }
}
