//! Names and columns of the files of a run directory.

use crate::table::{Field, Kind};

/// Manifest and summary.
pub(crate) const MANIFEST: &str = "run.json";
/// What is compared, in a directory of several runs.
pub(crate) const COMPARISON: &str = "comparison.json";
/// A search for a limit, in a directory with the runs of its trials.
pub(crate) const LIMIT: &str = "limit.json";
/// Requests by interval, label and outcome.
pub(crate) const SERIES: &str = "intervals.parquet";
/// Groups of steps by interval, group and outcome; only where there are groups.
pub(crate) const GROUPS: &str = "groups.parquet";
/// Metrics of the scenario's own by interval; only where there are such.
pub(crate) const METRICS: &str = "metrics.parquet";
/// Where the time of good answers went; only where something of it was seen.
pub(crate) const PARTS: &str = "parts.parquet";
/// Load by interval.
pub(crate) const LOAD: &str = "load.parquet";
/// Looks at the processes.
pub(crate) const MONITOR: &str = "monitor.parquet";
/// What stores say of themselves; only where there are such stores.
pub(crate) const STORES: &str = "stores.parquet";
/// Interval log.
pub(crate) const LATENCY: &str = "latency.hlog";
/// What happened when.
pub(crate) const EVENTS: &str = "events.jsonl";
/// The scenario as it was.
pub(crate) const SCENARIO: &str = "scenario.yaml";
/// What is known of a run that goes on.
pub(crate) const BEGUN: &str = "unfinished.json";
/// What a run that goes on has recorded.
pub(crate) const JOURNAL: &str = "unfinished.journal";
/// Where a run is built again from its journal.
pub(crate) const REBUILT: &str = "unfinished.rebuilt";
/// What a run that was killed had recorded, until all of it is recorded anew by whoever goes on with the run.
pub(crate) const BEFORE: &str = "unfinished.before";
/// What another coordinator needs to know of a fleet to go on with its run.
pub(crate) const FLEET: &str = "unfinished.fleet";
/// What was sent and acknowledged.
pub(crate) const LEDGER: &str = "ledger";
/// Within it: how contents are read again.
pub(crate) const FORMS: &str = "forms.json";
/// The files that hold what a run records.
pub(crate) const RECORDED: [&str; 9] =
    [SERIES, GROUPS, METRICS, PARTS, LOAD, MONITOR, STORES, LATENCY, EVENTS];
/// Those of them that not every run has.
pub(crate) const OPTIONAL: [&str; 4] = [STORES, GROUPS, METRICS, PARTS];
/// Where in a run directory the logs of what was started are.
pub const LOGS: &str = "logs";

/// What the system itself says that it did.
pub(crate) const OPERATIONS: &str = "operations.parquet";
/// Where it says so while the run goes on.
pub const OPERATIONS_TOLD: &str = "operations.told";

/// Columns of `operations.parquet`: a row for each operation, in no order.
pub(crate) const OPERATIONS_FIELDS: [Field; 5] = [
    ("at_us", Kind::Int),
    ("entity", Kind::Text),
    ("operation", Kind::Text),
    ("duration_us", Kind::Int),
    ("status", Kind::Int),
];

/// Columns of `intervals.parquet`: a row for each interval, label, outcome, phase and whether due in the measured window.
pub(crate) const SERIES_FIELDS: [Field; 14] = [
    ("start_us", Kind::Int),
    ("end_us", Kind::Int),
    ("in_window", Kind::Bool),
    ("label", Kind::Text),
    ("outcome", Kind::Text),
    ("measured", Kind::Bool),
    ("count", Kind::Int),
    ("response_time_us", Kind::Bytes),
    ("service_time_us", Kind::Bytes),
    (LESS_LAG, Kind::Bytes),
    (BODIES, Kind::Int),
    (BODY_BYTES, Kind::Int),
    (PHASE, Kind::Text),
    (TAGS, Kind::Text),
];
/// Columns of `groups.parquet`.
pub(crate) const GROUP_FIELDS: [Field; 14] = {
    let mut fields = SERIES_FIELDS;
    fields[3].0 = "group";
    fields
};
/// Texts by name that the scenario gives a label, as a JSON object.
pub(crate) const TAGS: &str = "tags";
/// The phase of the load in which they were due.
pub(crate) const PHASE: &str = "phase";
/// Response times with the driver's own lag taken out.
pub(crate) const LESS_LAG: &str = "response_time_less_lag_us";
/// Good answers of which the size of the body is known.
pub(crate) const BODIES: &str = "bodies";
/// Bytes of their bodies.
pub(crate) const BODY_BYTES: &str = "body_bytes";

/// Columns of `metrics.parquet`: a row for each interval and metric.
pub(crate) const METRIC_FIELDS: [Field; 10] = [
    ("start_us", Kind::Int),
    ("end_us", Kind::Int),
    ("in_window", Kind::Bool),
    ("metric", Kind::Text),
    ("count", Kind::Int),
    ("sum", Kind::Float),
    ("min", Kind::Float),
    ("max", Kind::Float),
    ("no_number", Kind::Int),
    ("values", Kind::Bytes),
];

/// Columns of `parts.parquet`: a row for each interval, label and whether due in the measured window. The last five are
/// histograms.
pub(crate) const PART_FIELDS: [Field; 10] = [
    ("start_us", Kind::Int),
    ("end_us", Kind::Int),
    ("in_window", Kind::Bool),
    ("label", Kind::Text),
    ("measured", Kind::Bool),
    ("connect_us", Kind::Bytes),
    ("handshake_us", Kind::Bytes),
    ("pieces_service_us", Kind::Bytes),
    ("first_byte_us", Kind::Bytes),
    ("transfer_us", Kind::Bytes),
];

/// Columns of `load.parquet`: a row for each interval.
pub(crate) const LOAD_FIELDS: [Field; 21] = [
    ("start_us", Kind::Int),
    ("end_us", Kind::Int),
    ("in_window", Kind::Bool),
    ("offered", Kind::Int),
    ("dropped", Kind::Int),
    ("waiting", Kind::Int),
    ("in_flight", Kind::Int),
    ("connections", Kind::Int),
    ("connects", Kind::Int),
    ("sent_bytes", Kind::Int),
    ("received_bytes", Kind::Int),
    ("lag_us", Kind::Bytes),
    ("cpu_us_by_thread", Kind::Ints),
    (WAITED, Kind::Ints),
    (ABSENT, Kind::Ints),
    (READ_LAG, Kind::Bytes),
    (MEASURED_OFFERED, Kind::Int),
    (MEASURED_DROPPED, Kind::Int),
    (OFFERED_EARLIER, Kind::Ints),
    (ENCODED, Kind::Int),
    (DECODED, Kind::Int),
];
/// How late answers were read.
pub(crate) const READ_LAG: &str = "read_lag_us";
/// How long each driver thread waited for a core.
pub(crate) const WAITED: &str = "waited_us_by_thread";
/// How long each driver thread was not there at all.
pub(crate) const ABSENT: &str = "absent_us_by_thread";
/// How many of those offered were due within the measured window.
pub(crate) const MEASURED_OFFERED: &str = "measured_offered";
/// How many of those given up were due within the measured window.
pub(crate) const MEASURED_DROPPED: &str = "measured_dropped";
/// How many of those offered were due in earlier intervals: a moment within each (microseconds), and the count, in turn.
pub(crate) const OFFERED_EARLIER: &str = "offered_earlier";
/// Bytes of bodies as they came, of those that were decoded.
pub(crate) const ENCODED: &str = "encoded_bytes";
/// Bytes of the same bodies once decoded.
pub(crate) const DECODED: &str = "decoded_bytes";
/// Those that runs of earlier versions lack.
pub(crate) const LATER: [&str; 15] = [
    PHASE,
    TAGS,
    LESS_LAG,
    BODIES,
    BODY_BYTES,
    READ_LAG,
    WAITED,
    ABSENT,
    MEASURED_OFFERED,
    MEASURED_DROPPED,
    OFFERED_EARLIER,
    ENCODED,
    DECODED,
    CORE_WAIT,
    LENGTH,
];

/// Columns of `monitor.parquet`: those of [`crate::Sample`].
pub(crate) const MONITOR_FIELDS: [Field; 15] = [
    ("at_us", Kind::Int),
    ("process", Kind::Text),
    ("cpu_share", Kind::Float),
    ("cpu_system_share", Kind::Float),
    ("rss_bytes", Kind::Int),
    ("threads", Kind::Int),
    ("voluntary_switches", Kind::Int),
    ("involuntary_switches", Kind::Int),
    ("disk_read_bytes", Kind::Int),
    ("disk_written_bytes", Kind::Int),
    ("net_received_bytes", Kind::Int),
    ("net_sent_bytes", Kind::Int),
    ("steal_share", Kind::Float),
    (CORE_WAIT, Kind::Float),
    (LENGTH, Kind::Int),
];
/// How long before a look the one before was.
pub(crate) const LENGTH: &str = "length_us";
/// How long a process waited for a core.
pub(crate) const CORE_WAIT: &str = "core_wait_share";

/// Columns of `stores.parquet`: a row for each look and figure.
pub(crate) const STORES_FIELDS: [Field; 4] =
    [("at_us", Kind::Int), ("store", Kind::Text), ("figure", Kind::Text), ("value", Kind::Float)];

/// Written into `intervals.parquet` for whoever reads it without this program.
pub(crate) const ABOUT_SERIES: &str = "Tidemark: requests that ended, by interval, label, outcome, and whether they \
    were due in the measured window. Times are microseconds since the run began. response_time_us, \
    response_time_less_lag_us (the same with the load generator's own lag taken out) and service_time_us are histograms in \
    HdrHistogram's V2 encoding (not its compressed form), values in microseconds. bodies is the good answers whose body has a known size, body_bytes the sum: \
    once decoded where a step looks at the body, else as it came. phase names the phase of the load in which \
    they were due; it is empty after the last. tags are the label's, as a JSON object; empty where it has none. Rows of the same interval and series add up.";
/// The same for `groups.parquet`.
pub(crate) const ABOUT_GROUPS: &str = "Tidemark: groups of steps that were over, by interval, group, outcome, and whether \
    their first request was due in the measured window. Columns as in intervals.parquet; times are from the first request \
    of a group to its last answer. No group is a request, and none is counted in another file.";
/// The same for `metrics.parquet`.
pub(crate) const ABOUT_METRICS: &str = "Tidemark: what the scenario measured itself, by interval and metric. count is how many \
    numbers there were, no_number how often there was none. values is a histogram in HdrHistogram's V2 encoding whose values \
    are the numbers times 1048576, rounded; of a counter it is empty. Rows of the same interval and metric add up.";
/// The same for `parts.parquet`.
pub(crate) const ABOUT_PARTS: &str = "Tidemark: where the time of good answers went, by interval, label, and whether they were \
    due in the measured window; as far as a connection was made for them (connect_us until its socket was there, handshake_us \
    what was spoken on it first), or they came in pieces (first_byte_us from the first byte sent, transfer_us from there to the \
    last; pieces_service_us is both together). Answers in one piece have no row: their first byte is their last. All are \
    histograms in HdrHistogram's V2 encoding, values in microseconds. Rows of the same interval and label add up.";
/// The same for `load.parquet`.
pub(crate) const ABOUT_LOAD: &str = "Tidemark: the load by interval. waiting, in_flight and connections are as at the \
    interval's end. lag_us (how late requests left) and read_lag_us (how late answers were read, of all or a sample) \
    are histograms in HdrHistogram's V2 encoding. waited_us_by_thread is how long each driver thread \
    was ready to run but had no core; empty where the system did not say. absent_us_by_thread is how long it \
    was not there at all: stopped, or on a machine that was suspended. encoded_bytes and decoded_bytes are those of the \
    bodies that were decoded because a step looks at them, as they came and once decoded. measured_offered and measured_dropped are those that \
    were due within the measured window, in whichever interval they began or were given up. Rows of the same interval add up.";
/// The same for `monitor.parquet`.
pub(crate) const ABOUT_MONITOR: &str = "Tidemark: looks at each process, about one a second. cpu_share is in cores; \
    counters are differences since the look before.";
/// The same for `stores.parquet`.
pub(crate) const ABOUT_STORES: &str = "Tidemark: what stores say of themselves, about once a second, a figure a row, under \
    the store's own names. at_us is microseconds since the run began; what ends in _per_s is a counter's difference since \
    the look before, by the time between.";
pub(crate) const ABOUT_OPERATIONS: &str = "Tidemark: what the system itself says that it did, a row for each operation, in \
    no order. at_us is when it was over, microseconds since the run began; status is 200 where it succeeded.";
