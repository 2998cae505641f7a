//! The participants and friendships of a news feed: tables, columns and routines as its public versions have them.
//!
//! They are in the schema that the connection has first (`public`, as a rule), so that others who know the published
//! schema read it. What is beside it: at most one friendship of two, and an index by name.
//!
//! **Friendships.** A new one locks its two participants, the lesser id first, so that nobody counts beside it and two who
//! ask for each other do not wait for ever. One that is there is found without a lock.

use std::sync::Arc;

use tokio_postgres::Row;

use super::roles::malformed;
use super::schema::Schema;
use super::{Options, Server};
use crate::answer::Answer;
use crate::error::StoreError;
use crate::metrics::StoreMetrics;
use crate::people::{Befriended, FRIENDS_MAX, Friend, NAMED_MAX, Participant, People, check_name};

/// Participants and friendships in PostgreSQL.
pub struct PostgresPeople {
    server: Server,
}

const SCHEMA: Schema = Schema {
    begin: "SELECT 1",
    migrations: "NewsfeedMigrations",
    relations: "relname IN ('participant', 'friends') AND pg_table_is_visible(pg_class.oid)",
    steps: STEPS,
    statements: &STATEMENTS,
};

const STEPS: &[&str] = &["
CREATE SEQUENCE Participant_seq;
CREATE TABLE Participant (
    id int PRIMARY KEY DEFAULT nextval('Participant_seq'),
    pname varchar(50) NOT NULL
);
CREATE INDEX Participant_pname ON Participant (pname, id);
CREATE SEQUENCE Friends_seq;
CREATE TABLE Friends (
    id int PRIMARY KEY DEFAULT nextval('Friends_seq'),
    fromid int NOT NULL REFERENCES Participant (id),
    toid int NOT NULL REFERENCES Participant (id),
    CHECK (fromid <> toid)
);
CREATE INDEX Friends_fromid ON Friends (fromid);
CREATE INDEX Friends_toid ON Friends (toid);
CREATE UNIQUE INDEX Friends_pair ON Friends (least(fromid, toid), greatest(fromid, toid));

CREATE FUNCTION UpsertParticipant(moniker varchar(50)) RETURNS TABLE (id int) LANGUAGE sql AS $$
    INSERT INTO Participant (pname) VALUES (moniker) RETURNING Participant.id
$$;
CREATE FUNCTION FetchParticipant(participant_id int) RETURNS TABLE (moniker varchar(50)) LANGUAGE sql STABLE AS $$
    SELECT pname FROM Participant WHERE id = participant_id
$$;
CREATE FUNCTION FetchFriends(participant_id int) RETURNS TABLE (FriendsID int, ParticipantID int) LANGUAGE sql STABLE AS $$
    SELECT id, toid FROM Friends WHERE fromid = participant_id
    UNION ALL SELECT id, fromid FROM Friends WHERE toid = participant_id ORDER BY 1
$$;

-- one row: the friendship, or who is not there, or who has too many friends
CREATE FUNCTION UpsertFriends(from_id int, to_id int, friends_max int DEFAULT 10000)
    RETURNS TABLE (id int, missing int, befriended int) LANGUAGE plpgsql AS $$
DECLARE
    one int;
BEGIN
    id := (SELECT f.id FROM Friends f
        WHERE least(f.fromid, f.toid) = least(from_id, to_id) AND greatest(f.fromid, f.toid) = greatest(from_id, to_id));
    IF id IS NULL THEN
        PERFORM p.id FROM Participant p WHERE p.id IN (from_id, to_id) ORDER BY p.id FOR NO KEY UPDATE;
        id := (SELECT f.id FROM Friends f
            WHERE least(f.fromid, f.toid) = least(from_id, to_id) AND greatest(f.fromid, f.toid) = greatest(from_id, to_id));
    END IF;
    IF id IS NULL THEN
        FOREACH one IN ARRAY ARRAY[from_id, to_id] LOOP
            IF missing IS NULL AND NOT EXISTS (SELECT 1 FROM Participant p WHERE p.id = one) THEN
                missing := one;
            END IF;
            IF befriended IS NULL AND friends_max <= (SELECT count(*) FROM FetchFriends(one)) THEN
                befriended := one;
            END IF;
        END LOOP;
        IF missing IS NULL AND befriended IS NULL THEN
            INSERT INTO Friends AS f (fromid, toid) VALUES (from_id, to_id) RETURNING f.id INTO id;
        END IF;
    END IF;
    RETURN NEXT;
END
$$;
",
    "
ALTER FUNCTION UpsertFriends(int, int, int) RENAME TO BefriendParticipants;

-- one row with one column, the friendship, as published; an error where there is none
CREATE FUNCTION UpsertFriends(from_id int, to_id int) RETURNS TABLE (id int) LANGUAGE plpgsql AS $$
DECLARE
    made record;
BEGIN
    SELECT * INTO made FROM BefriendParticipants(from_id, to_id);
    IF made.missing IS NOT NULL THEN
        RAISE foreign_key_violation USING MESSAGE = 'there is no participant ' || made.missing;
    ELSIF made.befriended IS NOT NULL THEN
        RAISE program_limit_exceeded USING MESSAGE = 'participant ' || made.befriended || ' has too many friends';
    END IF;
    id := made.id;
    RETURN NEXT;
END
$$;
"];

/// A statement, by its place in [`STATEMENTS`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Do {
    Create,
    Find,
    Named,
    Befriend,
    Friends,
    Counts,
    Last,
}

const STATEMENTS: [&str; 7] = [
    "SELECT id FROM UpsertParticipant($1)",
    "SELECT moniker FROM FetchParticipant($1)",
    "SELECT id FROM Participant WHERE pname = $1 ORDER BY id LIMIT $2",
    "SELECT id, missing, befriended FROM BefriendParticipants($1, $2, $3)",
    "SELECT FriendsID, ParticipantID FROM FetchFriends($1)",
    "SELECT (SELECT count(*) FROM Participant), (SELECT count(*) FROM Friends)",
    "SELECT coalesce(max(id), 0) FROM Participant",
];

impl PostgresPeople {
    /// Connects, waiting for a server that is not there yet, and makes the tables and routines where they are not there.
    /// Blocks; not to be called on a thread of an async runtime.
    ///
    /// # Errors
    /// Options that cannot work, a server that is not there in time, refuses, has tables of others or of a later version, or
    /// keeps less than was asked for.
    pub fn open(options: Options) -> Result<Arc<Self>, StoreError> {
        Ok(Arc::new(PostgresPeople { server: Server::open(options, &SCHEMA)? }))
    }

    async fn rows(&self, of: Do, parameters: super::Parameters<'_>) -> Result<Vec<Row>, StoreError> {
        self.server.rows(of as usize, parameters).await
    }

    /// The only row of a statement that gives one.
    async fn row(&self, of: Do, parameters: super::Parameters<'_>) -> Result<Row, StoreError> {
        let row = self.rows(of, parameters).await?.pop();
        row.ok_or_else(|| StoreError::no_answer("a routine that gives one row gave none"))
    }
}

/// An id as a column; one that is too great for it is nobody's.
fn column(id: u64) -> Option<i32> {
    i32::try_from(id).ok()
}

/// An id of a column, where ids begin with 1.
fn id(row: &Row, place: usize) -> Result<u64, StoreError> {
    row.try_get::<_, i32>(place).map(|id| id as u64).map_err(malformed)
}

impl People for PostgresPeople {
    fn create(&self, name: Arc<str>) -> Answer<'_, Participant> {
        if let Err(error) = check_name(&name) {
            return Answer::ready(Err(error));
        }
        if name.contains('\0') {
            return Answer::ready(Err(StoreError::invalid("the name", "PostgreSQL keeps no NUL")));
        }
        Answer::boxed(async move {
            let row = self.row(Do::Create, &[&&*name]).await?;
            Ok(Participant { id: id(&row, 0)?, name })
        })
    }

    fn find(&self, id: u64) -> Answer<'_, Option<Participant>> {
        let Some(key) = column(id) else { return Answer::ready(Ok(None)) };
        Answer::boxed(async move {
            let rows = self.rows(Do::Find, &[&key]).await?;
            let Some(row) = rows.first() else { return Ok(None) };
            Ok(Some(Participant { id, name: row.try_get::<_, &str>(0).map_err(malformed)?.into() }))
        })
    }

    fn named(&self, name: &str) -> Answer<'_, Vec<Participant>> {
        if name.contains('\0') {
            return Answer::ready(Ok(Vec::new()));
        }
        let name: Arc<str> = name.into();
        Answer::boxed(async move {
            let rows = self.rows(Do::Named, &[&&*name, &(NAMED_MAX as i64)]).await?;
            rows.iter().map(|row| Ok(Participant { id: id(row, 0)?, name: name.clone() })).collect()
        })
    }

    fn befriend(&self, from: u64, to: u64) -> Answer<'_, Befriended> {
        let Some(key) = column(from) else {
            return Answer::ready(Ok(Befriended::NoSuchParticipant(from)));
        };
        let Some(other) = column(to) else { return Answer::ready(Ok(Befriended::NoSuchParticipant(to))) };
        Answer::boxed(async move {
            let row = self.row(Do::Befriend, &[&key, &other, &(FRIENDS_MAX as i32)]).await?;
            let of = |place| row.try_get::<_, Option<i32>>(place).map_err(malformed);
            match (of(0)?, of(1)?, of(2)?) {
                (Some(id), ..) => Ok(Befriended::Friends(id as u64)),
                (None, Some(missing), _) => Ok(Befriended::NoSuchParticipant(missing as u64)),
                (None, None, Some(full)) => Ok(Befriended::TooManyFriends(full as u64)),
                (None, None, None) => Err(StoreError::no_answer("BefriendParticipants gave no friendship")),
            }
        })
    }

    fn friends(&self, participant: u64) -> Answer<'_, Vec<Friend>> {
        let Some(key) = column(participant) else { return Answer::ready(Ok(Vec::new())) };
        Answer::boxed(async move {
            let rows = self.rows(Do::Friends, &[&key]).await?;
            rows.iter().map(|row| Ok(Friend { friendship: id(row, 0)?, participant: id(row, 1)? })).collect()
        })
    }

    fn counts(&self) -> Answer<'_, [u64; 2]> {
        Answer::boxed(async move {
            let row = self.row(Do::Counts, &[]).await?;
            let of = |place| row.try_get::<_, i64>(place).map(|count| count as u64).map_err(malformed);
            Ok([of(0)?, of(1)?])
        })
    }

    fn last(&self) -> Answer<'_, u64> {
        Answer::boxed(async move { id(&self.row(Do::Last, &[]).await?, 0) })
    }

    fn metrics(&self) -> StoreMetrics {
        StoreMetrics { own: self.server.links.metrics(), ..StoreMetrics::default() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn statements_are_where_their_names_say() {
        assert!(STATEMENTS[Do::Find as usize].contains("FetchParticipant"));
        assert!(STATEMENTS[Do::Befriend as usize].contains("BefriendParticipants"));
        assert_eq!(Do::Last as usize + 1, STATEMENTS.len());
        assert!(STEPS[0].contains(&format!("friends_max int DEFAULT {FRIENDS_MAX}")));
    }
}
