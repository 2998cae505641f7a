//! The status codes of gRPC, and how a run counts them beside the statuses of HTTP.

/// Statuses from this one on are codes of gRPC: 10000 is `OK`, 10005 is `NOT_FOUND`. Below lie those of HTTP, and close codes of
/// WebSockets.
const FIRST_STATUS: u16 = 10_000;

crate::named! {
    /// A status code of gRPC; its number is its place here.
    #[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
    #[allow(missing_docs, reason = "the names are those of the specification")]
    pub enum GrpcCode {
        Ok = "OK",
        Cancelled = "CANCELLED",
        #[default]
        Unknown = "UNKNOWN",
        InvalidArgument = "INVALID_ARGUMENT",
        DeadlineExceeded = "DEADLINE_EXCEEDED",
        NotFound = "NOT_FOUND",
        AlreadyExists = "ALREADY_EXISTS",
        PermissionDenied = "PERMISSION_DENIED",
        ResourceExhausted = "RESOURCE_EXHAUSTED",
        FailedPrecondition = "FAILED_PRECONDITION",
        Aborted = "ABORTED",
        OutOfRange = "OUT_OF_RANGE",
        Unimplemented = "UNIMPLEMENTED",
        Internal = "INTERNAL",
        Unavailable = "UNAVAILABLE",
        DataLoss = "DATA_LOSS",
        Unauthenticated = "UNAUTHENTICATED",
    }
}

impl GrpcCode {
    /// By its number; a number that the specification does not have counts as `UNKNOWN`, as it says.
    pub fn from_number(number: u32) -> GrpcCode {
        GrpcCode::ALL.get(number as usize).copied().unwrap_or(GrpcCode::Unknown)
    }

    /// How it is counted where statuses are.
    pub fn status(self) -> u16 {
        FIRST_STATUS + self as u16
    }

    /// The code that is counted by this status, if one is.
    pub fn of_status(status: u16) -> Option<GrpcCode> {
        GrpcCode::ALL.get(usize::from(status.checked_sub(FIRST_STATUS)?)).copied()
    }
}

/// A status as people read it: a number of HTTP, or the name of a code of gRPC.
pub fn status_name(status: u16) -> String {
    GrpcCode::of_status(status).map_or_else(|| status.to_string(), |code| code.name().to_owned())
}

/// The first status of HTTP that is wrong unless something else is said.
pub const FIRST_WRONG_STATUS: u16 = 400;

/// Whether a status is wrong unless something else is said.
#[inline]
pub fn is_wrong_status(status: u16) -> bool {
    status >= FIRST_WRONG_STATUS && status != FIRST_STATUS
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_have_their_numbers_and_names() {
        for (number, code) in GrpcCode::ALL.into_iter().enumerate() {
            assert_eq!(GrpcCode::from_number(number as u32), code);
            assert_eq!(GrpcCode::from_name(code.name()), Some(code));
            assert_eq!(GrpcCode::of_status(code.status()), Some(code));
            assert_eq!(is_wrong_status(code.status()), code != GrpcCode::Ok);
        }
        assert_eq!((GrpcCode::Unauthenticated as u16, GrpcCode::NotFound.name()), (16, "NOT_FOUND"));
        assert_eq!(GrpcCode::from_number(17), GrpcCode::Unknown);
        assert_eq!([404, 1_011, 4_999].map(GrpcCode::of_status), [None; 3]);
        assert_eq!((status_name(404), status_name(10_014)), ("404".to_owned(), "UNAVAILABLE".to_owned()));
    }

    #[test]
    fn statuses_of_http_are_wrong_from_400_on() {
        assert_eq!(
            [0, 200, 399, 400, 599, 999].map(is_wrong_status),
            [false, false, false, true, true, true]
        );
    }
}
