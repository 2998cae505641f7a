//! What flights are as rows.

use std::ops::Range;
use std::sync::Arc;

use tokio_postgres::Row;
use uuid::Uuid;

use super::airline::Do;
use super::{Postgres, roles::malformed};
use crate::answer::Answer;
use crate::error::StoreError;
use crate::flights::{Flight, Flights, Segment};

/// Flights in one statement of [`Flights::put_missing`].
const FLIGHTS_PER_STATEMENT: usize = 1024;

impl Postgres {
    async fn put_flights(&self, flights: &[Flight]) -> Result<u64, StoreError> {
        fn column<'a, T>(flights: &'a [Flight], field: impl Fn(&'a Flight) -> T) -> Vec<T> {
            flights.iter().map(field).collect()
        }
        let segments = column(flights, |flight| &*flight.segment.id);
        let (origins, destinations, miles) = (
            column(flights, |flight| &*flight.segment.origin),
            column(flights, |flight| &*flight.segment.destination),
            column(flights, |flight| i64::from(flight.segment.miles)),
        );
        self.change(Do::SegmentPutMissing, &[&segments, &origins, &destinations, &miles]).await?;
        let (ids, departures, arrivals) = (
            column(flights, |flight| Uuid::from_u128(flight.id)),
            column(flights, |flight| flight.departure_ms),
            column(flights, |flight| flight.arrival_ms),
        );
        self.change(Do::FlightPutMissing, &[&ids, &segments, &departures, &arrivals]).await
    }
}

impl Flights for Postgres {
    fn put_missing<'a>(
        &'a self,
        mut flights: Box<dyn Iterator<Item = Flight> + Send + 'a>,
    ) -> Answer<'a, u64> {
        Answer::boxed(async move {
            let mut stored = 0;
            loop {
                let some: Vec<Flight> = flights.by_ref().take(FLIGHTS_PER_STATEMENT).collect();
                if some.is_empty() {
                    return Ok(stored);
                }
                stored += self.put_flights(&some).await?;
            }
        })
    }

    fn between<'a>(
        &'a self,
        origin: &'a str,
        destination: &'a str,
        departure_ms: Range<i64>,
    ) -> Answer<'a, Vec<Flight>> {
        // no airport has a NUL in its code, and PostgreSQL takes none
        if [origin, destination].iter().any(|code| code.contains('\0')) {
            return Answer::ready(Ok(Vec::new()));
        }
        Answer::boxed(async move {
            let Range { start, end } = departure_ms;
            let rows = self.rows(Do::FlightsBetween, &[&origin, &destination, &start, &end]).await?;
            rows.iter().map(flight).collect::<Result<_, _>>().map_err(malformed)
        })
    }

    fn find<'a>(&'a self, ids: &'a [u128]) -> Answer<'a, Vec<Flight>> {
        if ids.is_empty() {
            return Answer::ready(Ok(Vec::new()));
        }
        Answer::boxed(async move {
            let ids: Vec<Uuid> = ids.iter().copied().map(Uuid::from_u128).collect();
            let rows = self.rows(Do::FlightsFind, &[&ids]).await?;
            rows.iter().map(flight).collect::<Result<_, _>>().map_err(malformed)
        })
    }

    fn count(&self, departure_ms: Range<i64>) -> Answer<'_, u64> {
        Answer::boxed(async move {
            let Range { start, end } = departure_ms;
            let rows = self.rows(Do::FlightCount, &[&start, &end]).await?;
            let count: i64 = rows.first().map_or(Ok(0), |row| row.try_get(0)).map_err(malformed)?;
            Ok(count as u64)
        })
    }

    fn count_segments(&self) -> Answer<'_, u64> {
        Answer::boxed(self.count_of(Do::SegmentCount))
    }
}

fn flight(row: &Row) -> Result<Flight, tokio_postgres::Error> {
    let text = |place| row.try_get::<_, &str>(place).map(Arc::from);
    let miles: i64 = row.try_get(6)?;
    Ok(Flight {
        id: row.try_get::<_, Uuid>(0)?.as_u128(),
        departure_ms: row.try_get(1)?,
        arrival_ms: row.try_get(2)?,
        segment: Arc::new(Segment {
            id: text(3)?,
            origin: text(4)?,
            destination: text(5)?,
            miles: u32::try_from(miles).unwrap_or_default(),
        }),
    })
}
