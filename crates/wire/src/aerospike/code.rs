//! Result codes.

/// What a reply is.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Kind {
    /// What was asked for is there, or done.
    #[default]
    Done,
    /// The record, or the only bin that was asked for, is not there.
    Miss,
    /// It was not done, since the record is there already or has another generation.
    NotDone,
    /// An error.
    Error,
}

/// Whoever asks has not said who it is.
pub const NOT_AUTHENTICATED: u8 = 80;

impl Kind {
    /// Of a result code.
    pub(super) fn of(code: u8) -> Kind {
        match code {
            0 => Kind::Done,
            2 => Kind::Miss,
            3 | 5 | 6 => Kind::NotDone,
            _ => Kind::Error,
        }
    }
}

/// What a result code says, for people.
pub fn words(code: u8) -> &'static str {
    match code {
        0 => "done",
        1 => "unknown error of the server",
        2 => "no such record",
        3 => "the record has another generation",
        4 => "a parameter is wrong",
        5 => "the record is there already",
        6 => "the bin is there already",
        7 => "the cluster is another one",
        8 => "out of space",
        9 => "time-out within the server",
        10 => "always forbidden",
        11 => "the partition is not available",
        12 => "the bin is of another type",
        13 => "the record is too big",
        14 => "too many requests for this record at once",
        15 => "the scan was aborted",
        16 => "not supported",
        17 => "no such bin",
        18 => "the device is overloaded",
        19 => "the key is another one",
        20 => "no such namespace",
        21 => "the name of a bin is too long",
        22 => "forbidden now",
        25 => "only the Enterprise Edition does this",
        26 => "it does not apply to this bin",
        27 => "filtered out",
        NOT_AUTHENTICATED => "not authenticated",
        81 => "not permitted",
        83 => "beyond the quota",
        _ => "an error",
    }
}
