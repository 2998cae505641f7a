//! What is prepared for feeds in a session with the nodes.

use std::sync::Arc;

use scylla::client::session::Session;
use scylla::statement::prepared::PreparedStatement;

use super::super::kept::Linked;
use super::super::options::Options;
use super::super::retry::Attempts;
use super::super::session::{SCAN_TIMEOUT, connect, make_schema, prepare};
use crate::error::StoreError;
use crate::feeds::INBOUND_US;

/// Rows in a page of an answer: with the longest stories some 4 MB.
const PAGE_ROWS: i32 = 256;
/// How long a note of a post that was delivered is remembered as removed, seconds: short, since whoever looks for the
/// posts that are not delivered reads over them. A replica that missed the removal longer brings the note back, and the
/// post is delivered once more, which changes nothing.
const REMOVED_S: u32 = 60;

/// A session and the statements that were prepared in it. Times of writing are values: those of the posts, so that every
/// attempt writes the same.
pub(super) struct FeedLink {
    pub(super) session: Session,
    pub(super) put_outbound: PreparedStatement,
    pub(super) put_inbound: PreparedStatement,
    /// Notes that a post is not delivered.
    pub(super) note: PreparedStatement,
    pub(super) remove_note: PreparedStatement,
    /// The notes of a part behind one, the oldest first.
    pub(super) notes: PreparedStatement,
    pub(super) one_outbound: PreparedStatement,
    pub(super) outbound: PreparedStatement,
    pub(super) inbound: PreparedStatement,
    /// The outbound feeds in a part of the ring.
    pub(super) stories: PreparedStatement,
}

impl FeedLink {
    /// Connects, makes what is missing of the schema, and prepares the statements.
    pub(super) async fn open(options: &Options, attempts: Arc<Attempts>) -> Result<Self, StoreError> {
        let session = connect(options, attempts).await?;
        make_schema(&session, options, tables(&options.keyspace)).await?;
        check_participants(&session, options).await?;
        Self::prepare(session, options).await
    }
}

impl Linked for FeedLink {
    fn session(&self) -> &Session {
        &self.session
    }

    async fn prepare(session: Session, options: &Options) -> Result<Self, StoreError> {
        let keyspace = &options.keyspace;
        let (reads, writes) = (options.consistency.of_reads(), options.consistency.of_writes());
        let write = async |text: String| prepare(&session, text, writes, None).await;
        let read = async |text: String, timeout| {
            let mut prepared = prepare(&session, text, reads, timeout).await?;
            prepared.set_page_size(PAGE_ROWS);
            Ok::<_, StoreError>(prepared)
        };
        let put_outbound = format!(
            "INSERT INTO {keyspace}.outbound (participantid, occurred, subject, story) VALUES (?, ?, ?, ?) \
             USING TIMESTAMP ?"
        );
        let put_inbound = format!(
            "INSERT INTO {keyspace}.inbound (participantid, occurred, fromparticipantid, subject, story) \
             VALUES (?, ?, ?, ?, ?) USING TIMESTAMP ?"
        );
        let note = format!(
            "INSERT INTO {keyspace}.undelivered (part, occurred, participantid) VALUES (?, ?, ?) USING TIMESTAMP ?"
        );
        let remove_note =
            format!("DELETE FROM {keyspace}.undelivered USING TIMESTAMP ? WHERE part = ? AND occurred = ?");
        let notes = format!(
            "SELECT occurred, participantid FROM {keyspace}.undelivered WHERE part = ? AND occurred > ? LIMIT ?"
        );
        let one_outbound = format!(
            "SELECT occurred, participantid, subject, story FROM {keyspace}.outbound \
             WHERE participantid = ? AND occurred = ?"
        );
        let feed = |table, poster| {
            format!(
                "SELECT occurred, {poster}, subject, story FROM {keyspace}.{table} WHERE participantid = ? \
                 AND occurred < ? AND occurred >= ? ORDER BY occurred DESC LIMIT ?"
            )
        };
        let stories = format!(
            "SELECT occurred, participantid, subject, story FROM {keyspace}.outbound \
             WHERE token(participantid) > ? AND token(participantid) <= ?"
        );
        Ok(FeedLink {
            put_outbound: write(put_outbound).await?,
            put_inbound: write(put_inbound).await?,
            note: write(note).await?,
            remove_note: write(remove_note).await?,
            notes: read(notes, None).await?,
            one_outbound: read(one_outbound, None).await?,
            outbound: read(feed("outbound", "participantid"), None).await?,
            inbound: read(feed("inbound", "fromparticipantid"), None).await?,
            stories: read(stories, Some(SCAN_TIMEOUT)).await?,
            session,
        })
    }
}

/// What makes the tables: the two published ones, with larger ids of participants and the newest first, and one of notes.
fn tables(keyspace: &str) -> Vec<String> {
    let ttl_s = INBOUND_US / 1_000_000;
    vec![
        format!(
            "CREATE TABLE IF NOT EXISTS {keyspace}.outbound (participantid bigint, occurred timeuuid, subject text, \
             story text, PRIMARY KEY (participantid, occurred)) WITH CLUSTERING ORDER BY (occurred DESC)"
        ),
        format!(
            "CREATE TABLE IF NOT EXISTS {keyspace}.inbound (participantid bigint, occurred timeuuid, \
             fromparticipantid bigint, subject text, story text, PRIMARY KEY (participantid, occurred)) \
             WITH CLUSTERING ORDER BY (occurred DESC) AND default_time_to_live = {ttl_s}"
        ),
        format!(
            "CREATE TABLE IF NOT EXISTS {keyspace}.undelivered (part int, occurred timeuuid, participantid bigint, \
             PRIMARY KEY (part, occurred)) WITH gc_grace_seconds = {REMOVED_S}"
        ),
    ]
}

/// Refuses tables of another program, whose participants have smaller ids.
async fn check_participants(session: &Session, options: &Options) -> Result<(), StoreError> {
    let question = "SELECT type FROM system_schema.columns \
                    WHERE keyspace_name = ? AND table_name = ? AND column_name = 'participantid'";
    for table in ["outbound", "inbound"] {
        let answer = session.query_unpaged(question, (&options.keyspace, table)).await;
        let rows =
            answer.map_err(StoreError::no_answer)?.into_rows_result().map_err(StoreError::no_answer)?;
        let (found,) = rows.single_row::<(&str,)>().map_err(StoreError::no_answer)?;
        if found != "bigint" {
            let keyspace = &options.keyspace;
            let reason = format!(
                "{keyspace}.{table} has participants of type {found}, not bigint; name another keyspace"
            );
            let place = options.contact.join(", ").into();
            return Err(StoreError::Unusable { place, reason: reason.into() });
        }
    }
    Ok(())
}
