//! The participants and friendships of a news feed: tables, columns and procedures as its public versions have them in MySQL.
//!
//! A new friendship locks its two participants, the lesser id first, so that nobody counts beside it and two who
//! ask for each other do not wait for ever. One that is there is found without a lock.

use std::sync::Arc;

use mysql_async::{Row, Value};

use super::schema::Schema;
use super::{Options, Server, column};
use crate::answer::Answer;
use crate::error::StoreError;
use crate::metrics::StoreMetrics;
use crate::people::{Befriended, Friend, NAMED_MAX, Participant, People, check_name};

/// Participants and friendships in MariaDB.
pub struct MariadbPeople {
    server: Server,
}

const SCHEMA: Schema = Schema {
    migrations: "NewsfeedMigrations",
    steps: STEPS,
    indexes: &["Participant_Moniker", "Friends_pair"],
    others: "it has tables Participant and Friends of others; name a database without them",
    statements: &[CREATE, FIND, NAMED, BEFRIEND, FRIENDS, COUNTS, LAST],
};

/// What a step is made of.
const STEPS: &[&[&str]] = &[&[
    "CREATE TABLE IF NOT EXISTS Participant (
        ParticipantID int NOT NULL AUTO_INCREMENT PRIMARY KEY,
        Moniker varchar(50) NOT NULL,
        INDEX Participant_Moniker (Moniker, ParticipantID)
    ) ENGINE=InnoDB CHARACTER SET utf8mb4 COLLATE utf8mb4_nopad_bin",
    // what is invisible is not in SELECT *
    "CREATE TABLE IF NOT EXISTS Friends (
        FriendsID int NOT NULL AUTO_INCREMENT PRIMARY KEY,
        FromParticipantID int NOT NULL,
        ToParticipantID int NOT NULL,
        LowParticipantID int AS (least(FromParticipantID, ToParticipantID)) VIRTUAL INVISIBLE,
        HighParticipantID int AS (greatest(FromParticipantID, ToParticipantID)) VIRTUAL INVISIBLE,
        UNIQUE INDEX Friends_pair (LowParticipantID, HighParticipantID),
        FOREIGN KEY (FromParticipantID) REFERENCES Participant (ParticipantID),
        FOREIGN KEY (ToParticipantID) REFERENCES Participant (ParticipantID),
        CHECK (FromParticipantID <> ToParticipantID)
    ) ENGINE=InnoDB",
    "CREATE OR REPLACE PROCEDURE UpsertParticipant(IN new_moniker varchar(50) CHARACTER SET utf8mb4)
    BEGIN
        INSERT INTO Participant (Moniker) VALUES (new_moniker);
        SELECT last_insert_id() AS id;
    END",
    "CREATE OR REPLACE PROCEDURE FetchParticipant(IN participant int)
    BEGIN
        SELECT Moniker AS moniker FROM Participant WHERE ParticipantID = participant;
    END",
    "CREATE OR REPLACE PROCEDURE FetchFriends(IN participant int)
    BEGIN
        SELECT FriendsID, ToParticipantID AS ParticipantID FROM Friends WHERE FromParticipantID = participant
        UNION ALL SELECT FriendsID, FromParticipantID FROM Friends WHERE ToParticipantID = participant ORDER BY 1;
    END",
], &[
    // the friendship, or who is not there, or who has too many friends
    "CREATE OR REPLACE PROCEDURE BefriendInto(
        IN from_participant int, IN to_participant int, OUT friendship int, OUT missing int, OUT befriended int
    )
    BEGIN
        DECLARE low, high, locked int DEFAULT NULL;
        DECLARE EXIT HANDLER FOR SQLEXCEPTION BEGIN ROLLBACK; RESIGNAL; END;
        SET friendship = NULL, missing = NULL, befriended = NULL;
        SET low = least(from_participant, to_participant), high = greatest(from_participant, to_participant);
        SET friendship = (SELECT FriendsID FROM Friends WHERE LowParticipantID = low AND HighParticipantID = high);
        IF friendship IS NULL THEN
            START TRANSACTION;
            SET locked = (SELECT ParticipantID FROM Participant WHERE ParticipantID = low FOR UPDATE);
            IF locked IS NULL THEN SET missing = low; END IF;
            SET locked = (SELECT ParticipantID FROM Participant WHERE ParticipantID = high FOR UPDATE);
            IF locked IS NULL AND (missing IS NULL OR high = from_participant) THEN SET missing = high; END IF;
            SET friendship = (SELECT FriendsID FROM Friends WHERE LowParticipantID = low AND HighParticipantID = high);
            IF friendship IS NULL AND missing IS NULL THEN
                IF 10000 <= (SELECT count(*) FROM Friends WHERE FromParticipantID = to_participant)
                    + (SELECT count(*) FROM Friends WHERE ToParticipantID = to_participant) THEN
                    SET befriended = to_participant;
                END IF;
                IF 10000 <= (SELECT count(*) FROM Friends WHERE FromParticipantID = from_participant)
                    + (SELECT count(*) FROM Friends WHERE ToParticipantID = from_participant) THEN
                    SET befriended = from_participant;
                END IF;
                IF befriended IS NULL THEN
                    INSERT INTO Friends (FromParticipantID, ToParticipantID) VALUES (from_participant, to_participant);
                    SET friendship = last_insert_id();
                END IF;
            END IF;
            COMMIT;
        END IF;
    END",
    "CREATE OR REPLACE PROCEDURE BefriendParticipants(IN from_participant int, IN to_participant int)
    BEGIN
        DECLARE friendship, missing, befriended int DEFAULT NULL;
        CALL BefriendInto(from_participant, to_participant, friendship, missing, befriended);
        SELECT friendship AS id, missing, befriended;
    END",
    // one row with one column, the friendship, as published; an error where there is none
    "CREATE OR REPLACE PROCEDURE UpsertFriends(IN from_participant int, IN to_participant int)
    BEGIN
        DECLARE friendship, missing, befriended int DEFAULT NULL;
        CALL BefriendInto(from_participant, to_participant, friendship, missing, befriended);
        IF missing IS NOT NULL THEN
            SIGNAL SQLSTATE '23000' SET MYSQL_ERRNO = 1452, MESSAGE_TEXT = 'there is no such participant';
        ELSEIF befriended IS NOT NULL THEN
            SIGNAL SQLSTATE '45000' SET MESSAGE_TEXT = 'a participant has too many friends';
        END IF;
        SELECT friendship AS id;
    END",
]];

const CREATE: &str = "CALL UpsertParticipant(?)";
const FIND: &str = "CALL FetchParticipant(?)";
const NAMED: &str = "SELECT ParticipantID FROM Participant WHERE Moniker = ? ORDER BY ParticipantID LIMIT ?";
const BEFRIEND: &str = "CALL BefriendParticipants(?, ?)";
const FRIENDS: &str = "CALL FetchFriends(?)";
const COUNTS: &str = "SELECT (SELECT count(*) FROM Participant), (SELECT count(*) FROM Friends)";
const LAST: &str = "SELECT coalesce(max(ParticipantID), 0) FROM Participant";

impl MariadbPeople {
    /// Connects, waiting for a server that is not there yet, and makes the tables and procedures where they are not there.
    /// Blocks; not to be called on a thread of an async runtime.
    ///
    /// # Errors
    /// Options that cannot work, a server that is not there in time, refuses, has tables of others or of a later version, or
    /// keeps less than was asked for.
    pub fn open(options: Options) -> Result<Arc<Self>, StoreError> {
        Ok(Arc::new(MariadbPeople { server: Server::open(options, &SCHEMA)? }))
    }

    /// The only row of a statement that gives one.
    async fn row(&self, text: &'static str, values: Vec<Value>) -> Result<Row, StoreError> {
        let row = self.server.rows(text, values).await?.pop();
        row.ok_or_else(|| StoreError::no_answer("a procedure that gives one row gave none"))
    }
}

/// An id as a column has it; one that is too great for it is nobody's.
fn key(id: u64) -> Option<i32> {
    i32::try_from(id).ok()
}

impl People for MariadbPeople {
    fn create(&self, name: Arc<str>) -> Answer<'_, Participant> {
        if let Err(error) = check_name(&name) {
            return Answer::ready(Err(error));
        }
        Answer::boxed(async move {
            let row = self.row(CREATE, vec![(&*name).into()]).await?;
            Ok(Participant { id: column(&row, 0)?, name })
        })
    }

    fn find(&self, id: u64) -> Answer<'_, Option<Participant>> {
        let Some(key) = key(id) else { return Answer::ready(Ok(None)) };
        Answer::boxed(async move {
            let rows = self.server.rows(FIND, vec![key.into()]).await?;
            let Some(row) = rows.first() else { return Ok(None) };
            Ok(Some(Participant { id, name: column::<String>(row, 0)?.into() }))
        })
    }

    fn named(&self, name: &str) -> Answer<'_, Vec<Participant>> {
        let name: Arc<str> = name.into();
        Answer::boxed(async move {
            let rows = self.server.rows(NAMED, vec![(&*name).into(), (NAMED_MAX as u64).into()]).await?;
            rows.iter().map(|row| Ok(Participant { id: column(row, 0)?, name: name.clone() })).collect()
        })
    }

    fn befriend(&self, from: u64, to: u64) -> Answer<'_, Befriended> {
        let Some(one) = key(from) else { return Answer::ready(Ok(Befriended::NoSuchParticipant(from))) };
        let Some(other) = key(to) else { return Answer::ready(Ok(Befriended::NoSuchParticipant(to))) };
        Answer::boxed(async move {
            let row = self.row(BEFRIEND, vec![one.into(), other.into()]).await?;
            match (column(&row, 0)?, column(&row, 1)?, column(&row, 2)?) {
                (Some(id), None::<u64>, None::<u64>) => Ok(Befriended::Friends(id)),
                (_, Some(missing), _) => Ok(Befriended::NoSuchParticipant(missing)),
                (_, _, Some(full)) => Ok(Befriended::TooManyFriends(full)),
                (None, None, None) => Err(StoreError::no_answer("BefriendParticipants gave no friendship")),
            }
        })
    }

    fn friends(&self, id: u64) -> Answer<'_, Vec<Friend>> {
        let Some(key) = key(id) else { return Answer::ready(Ok(Vec::new())) };
        Answer::boxed(async move {
            let rows = self.server.rows(FRIENDS, vec![key.into()]).await?;
            let friend = |row| Ok(Friend { friendship: column(row, 0)?, participant: column(row, 1)? });
            rows.iter().map(friend).collect()
        })
    }

    fn counts(&self) -> Answer<'_, [u64; 2]> {
        Answer::boxed(async move {
            let row = self.row(COUNTS, Vec::new()).await?;
            Ok([column(&row, 0)?, column(&row, 1)?])
        })
    }

    fn last(&self) -> Answer<'_, u64> {
        Answer::boxed(async move { column(&self.row(LAST, Vec::new()).await?, 0) })
    }

    fn metrics(&self) -> StoreMetrics {
        StoreMetrics { own: self.server.links.metrics(), ..StoreMetrics::default() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::people::FRIENDS_MAX;

    #[test]
    fn the_bound_of_friends_is_the_one_of_the_procedure() {
        assert!(STEPS[1][0].contains(&format!("IF {FRIENDS_MAX} <=")));
    }
}
