//! The tables and procedures, made by whoever comes first.
//!
//! Every change of the schema is a step with its number, for ever as it is. A store that begins takes a lock of the server, does the
//! steps that are missing and notes each. MariaDB commits with each definition, so those of a step may be carried out again:
//! of several that begin at once one does them, and where it ends in the middle the next one begins the step again.

use mysql_async::prelude::Queryable;
use mysql_async::{Conn, Error};

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
    // one row: the friendship, or who is not there, or who has too many friends
    "CREATE OR REPLACE PROCEDURE UpsertFriends(IN from_participant int, IN to_participant int)
    BEGIN
        DECLARE low, high, locked, friendship, missing, befriended int DEFAULT NULL;
        DECLARE EXIT HANDLER FOR SQLEXCEPTION BEGIN ROLLBACK; RESIGNAL; END;
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
        SELECT friendship AS id, missing, befriended;
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

/// A statement, by its place in [`STATEMENTS`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Do {
    Create,
    Find,
    Named,
    Befriend,
    Friends,
    Counts,
    Last,
}

pub(super) const STATEMENTS: [&str; 7] = [
    "CALL UpsertParticipant(?)",
    "CALL FetchParticipant(?)",
    "SELECT ParticipantID FROM Participant WHERE Moniker = ? ORDER BY ParticipantID LIMIT ?",
    "CALL BefriendParticipants(?, ?)",
    "CALL FetchFriends(?)",
    "SELECT (SELECT count(*) FROM Participant), (SELECT count(*) FROM Friends)",
    "SELECT coalesce(max(ParticipantID), 0) FROM Participant",
];

/// What the schema is after [`migrate`].
pub(super) enum Found {
    /// As this program knows it.
    Ours,
    /// Of a later version of this program.
    Later(u32),
    /// Tables with these names that this program did not make.
    Others,
    /// Somebody else is making it.
    Locked,
}

/// Makes what is missing.
pub(super) async fn migrate(conn: &mut Conn, wait_s: u64) -> Result<Found, Error> {
    // goes with the connection
    let lock = "SELECT get_lock(concat('tidemark ', md5(database())), ?)";
    if conn.exec_first::<Option<i64>, _, _>(lock, (wait_s,)).await?.flatten() != Some(1) {
        return Ok(Found::Locked);
    }
    conn.query_drop(
        "CREATE TABLE IF NOT EXISTS NewsfeedMigrations (version int PRIMARY KEY, applied timestamp NOT NULL DEFAULT now()) ENGINE=InnoDB",
    )
    .await?;
    let version = "SELECT coalesce(max(version), 0) FROM NewsfeedMigrations";
    let there: u32 = conn.query_first(version).await?.unwrap_or_default();
    if there as usize > STEPS.len() {
        return Ok(Found::Later(there));
    }
    for (version, step) in (1u32..).zip(STEPS).skip(there as usize) {
        for definition in *step {
            conn.query_drop(*definition).await?;
        }
        conn.exec_drop("INSERT INTO NewsfeedMigrations (version) VALUES (?)", (version,)).await?;
        tracing::info!(version, "schema made");
    }
    let own = "SELECT count(DISTINCT index_name) FROM information_schema.statistics
        WHERE table_schema = database() AND index_name IN ('Participant_Moniker', 'Friends_pair')";
    let indexes: u64 = conn.query_first(own).await?.unwrap_or_default();
    Ok(if indexes == 2 { Found::Ours } else { Found::Others })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::people::FRIENDS_MAX;

    #[test]
    fn statements_are_where_their_names_say() {
        assert!(STATEMENTS[Do::Find as usize].contains("FetchParticipant"));
        assert!(STATEMENTS[Do::Befriend as usize].contains("BefriendParticipants"));
        assert_eq!(Do::Last as usize + 1, STATEMENTS.len());
        assert!(STEPS[1][0].contains(&format!("IF {FRIENDS_MAX} <=")));
    }
}
