//! Finding values in JSON text by path, without building a tree.

/// A compiled path such as `$.tripFlights[0].flightsOptions[-1]._id` or `$[*].bookingId`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Path {
    segments: Vec<Segment>,
}

/// One step of a [`Path`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Segment {
    /// A member of an object.
    Member(String),
    /// An element of an array; negative counts from the end.
    Index(i64),
    /// Every element of an array, or every member's value.
    Every,
}

impl Path {
    /// Its segments, in order.
    pub fn segments(&self) -> &[Segment] {
        &self.segments
    }
}
