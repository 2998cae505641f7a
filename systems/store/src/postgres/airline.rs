//! What the airline has in PostgreSQL: its tables, in a schema of their own, and the statements that use them.

use super::schema::Schema;

/// The tables of sessions, customers, bookings and flights.
pub(super) const SCHEMA: Schema = Schema {
    begin: "CREATE SCHEMA IF NOT EXISTS tidemark",
    migrations: "tidemark.migrations",
    relations: "nspname = 'tidemark'",
    steps: STEPS,
    statements: &STATEMENTS,
};

const STEPS: &[&str] = &[
    "
CREATE TABLE tidemark.sessions (
    id uuid PRIMARY KEY,
    customer_id text NOT NULL,
    created_ms bigint NOT NULL,
    expires_ms bigint NOT NULL
);
CREATE INDEX sessions_expires_ms ON tidemark.sessions (expires_ms);
CREATE TABLE tidemark.customers (
    id text COLLATE \"C\" PRIMARY KEY,
    password text NOT NULL,
    status smallint NOT NULL,
    total_miles bigint NOT NULL,
    miles_ytd bigint NOT NULL,
    street_address1 text NOT NULL,
    street_address2 text,
    city text NOT NULL,
    state_province text NOT NULL,
    country text NOT NULL,
    postal_code text NOT NULL,
    phone_number text NOT NULL,
    phone_number_type smallint NOT NULL
);
CREATE SEQUENCE tidemark.bookings_added;
CREATE TABLE tidemark.bookings (
    customer_id text COLLATE \"C\" NOT NULL,
    id uuid NOT NULL,
    flight_id uuid NOT NULL,
    flight_segment_id text NOT NULL,
    booked_ms bigint NOT NULL,
    added bigint NOT NULL,
    place bigint NOT NULL,
    PRIMARY KEY (customer_id, id)
);
",
    "
CREATE TABLE tidemark.flight_segments (
    id text COLLATE \"C\" PRIMARY KEY,
    origin text COLLATE \"C\" NOT NULL,
    destination text COLLATE \"C\" NOT NULL,
    miles bigint NOT NULL,
    UNIQUE (origin, destination)
);
CREATE TABLE tidemark.flights (
    id uuid PRIMARY KEY,
    flight_segment_id text COLLATE \"C\" NOT NULL REFERENCES tidemark.flight_segments (id),
    departure_ms bigint NOT NULL,
    arrival_ms bigint NOT NULL
);
CREATE INDEX flights_segment_departure ON tidemark.flights (flight_segment_id, departure_ms);
",
];

/// A statement, by its place in [`STATEMENTS`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Do {
    SessionCreate,
    SessionFind,
    SessionExpire,
    SessionRemove,
    SessionCount,
    SessionSweep,
    CustomerFind,
    CustomerPut,
    CustomerReplace,
    CustomerPutMissing,
    CustomerCount,
    BookingAdd,
    BookingList,
    BookingFind,
    BookingCancel,
    BookingCount,
    SegmentPutMissing,
    FlightPutMissing,
    FlightsBetween,
    FlightsFind,
    FlightCount,
    SegmentCount,
}

/// Those of a customer beside the id.
macro_rules! columns {
    () => {
        "password, status, total_miles, miles_ytd, street_address1, street_address2, city,
         state_province, country, postal_code, phone_number, phone_number_type"
    };
}

macro_rules! insert_customers {
    () => {
        "INSERT INTO tidemark.customers (id, password, status, total_miles, miles_ytd, street_address1, street_address2, city,
         state_province, country, postal_code, phone_number, phone_number_type)
     SELECT * FROM unnest($1::text[], $2::text[], $3::smallint[], $4::bigint[], $5::bigint[], $6::text[], $7::text[],
         $8::text[], $9::text[], $10::text[], $11::text[], $12::text[], $13::smallint[])"
    };
}

macro_rules! select_flights {
    () => {
        "SELECT f.id, f.departure_ms, f.arrival_ms, s.id, s.origin, s.destination, s.miles
     FROM tidemark.flights f JOIN tidemark.flight_segments s ON s.id = f.flight_segment_id"
    };
}

/// In the order of [`Do`].
const STATEMENTS: [&str; 22] = [
    "INSERT INTO tidemark.sessions (id, customer_id, created_ms, expires_ms) VALUES ($1, $2, $3, $4)
     ON CONFLICT (id) DO UPDATE SET customer_id = EXCLUDED.customer_id, created_ms = EXCLUDED.created_ms, expires_ms = EXCLUDED.expires_ms",
    "SELECT customer_id, created_ms, expires_ms FROM tidemark.sessions WHERE id = $1",
    "DELETE FROM tidemark.sessions WHERE id = $1 AND expires_ms <= $2",
    "DELETE FROM tidemark.sessions WHERE id = $1",
    "SELECT count(*) FROM tidemark.sessions",
    "DELETE FROM tidemark.sessions WHERE id IN (
         SELECT id FROM tidemark.sessions WHERE expires_ms <= $1 ORDER BY expires_ms LIMIT $2 FOR UPDATE SKIP LOCKED)",
    "SELECT id, password, status, total_miles, miles_ytd, street_address1, street_address2, city, state_province, country,
         postal_code, phone_number, phone_number_type FROM tidemark.customers WHERE id = $1",
    concat!(insert_customers!(), " ON CONFLICT (id) DO UPDATE SET password = EXCLUDED.password, status = EXCLUDED.status,
         total_miles = EXCLUDED.total_miles, miles_ytd = EXCLUDED.miles_ytd, street_address1 = EXCLUDED.street_address1,
         street_address2 = EXCLUDED.street_address2, city = EXCLUDED.city, state_province = EXCLUDED.state_province,
         country = EXCLUDED.country, postal_code = EXCLUDED.postal_code, phone_number = EXCLUDED.phone_number,
         phone_number_type = EXCLUDED.phone_number_type"),
    concat!(
        "UPDATE tidemark.customers SET (", columns!(), ") = ($14, $15, $16, $17, $18, $19, $20, $21, $22, $23, $24, $25)
     WHERE id = $1 AND (", columns!(), ") IS NOT DISTINCT FROM ($2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13)"),
    concat!(insert_customers!(), " ON CONFLICT (id) DO NOTHING"),
    "SELECT count(*) FROM tidemark.customers",
    "INSERT INTO tidemark.bookings (customer_id, id, flight_id, flight_segment_id, booked_ms, place, added)
     SELECT *, (SELECT nextval('tidemark.bookings_added'))
     FROM unnest($1::text[], $2::uuid[], $3::uuid[], $4::text[], $5::bigint[], $6::bigint[])
     ON CONFLICT (customer_id, id) DO UPDATE SET flight_id = EXCLUDED.flight_id,
         flight_segment_id = EXCLUDED.flight_segment_id, booked_ms = EXCLUDED.booked_ms, place = EXCLUDED.place,
         added = EXCLUDED.added",
    "SELECT id, customer_id, flight_id, flight_segment_id, booked_ms FROM tidemark.bookings
     WHERE customer_id = $1 ORDER BY added, place",
    "SELECT id, customer_id, flight_id, flight_segment_id, booked_ms FROM tidemark.bookings WHERE customer_id = $1 AND id = $2",
    "DELETE FROM tidemark.bookings WHERE customer_id = $1 AND id = $2",
    "SELECT count(*) FROM tidemark.bookings",
    "INSERT INTO tidemark.flight_segments (id, origin, destination, miles)
     SELECT DISTINCT * FROM unnest($1::text[], $2::text[], $3::text[], $4::bigint[]) AS one (id) ORDER BY id
     ON CONFLICT DO NOTHING",
    "INSERT INTO tidemark.flights (id, flight_segment_id, departure_ms, arrival_ms)
     SELECT * FROM unnest($1::uuid[], $2::text[], $3::bigint[], $4::bigint[]) AS one (id) ORDER BY id
     ON CONFLICT DO NOTHING",
    concat!(select_flights!(), " WHERE s.origin = $1 AND s.destination = $2 AND f.departure_ms >= $3 AND f.departure_ms < $4
     ORDER BY f.departure_ms, f.id"),
    concat!(select_flights!(), " WHERE f.id = ANY($1::uuid[])"),
    "SELECT count(*) FROM tidemark.flights WHERE departure_ms >= $1 AND departure_ms < $2",
    "SELECT count(*) FROM tidemark.flight_segments",
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn statements_are_where_their_names_say() {
        assert!(STATEMENTS[Do::SessionSweep as usize].contains("SKIP LOCKED"));
        assert!(STATEMENTS[Do::CustomerPut as usize].starts_with("INSERT INTO tidemark.customers"));
        assert!(STATEMENTS[Do::CustomerReplace as usize].starts_with("UPDATE tidemark.customers"));
        assert!(STATEMENTS[Do::BookingAdd as usize].starts_with("INSERT INTO tidemark.bookings"));
        assert!(STATEMENTS[Do::BookingCount as usize].contains("count(*) FROM tidemark.bookings"));
        assert!(STATEMENTS[Do::FlightsFind as usize].contains("f.id = ANY"));
        assert_eq!(Do::SegmentCount as usize + 1, STATEMENTS.len());
    }
}
