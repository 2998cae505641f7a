//! Participants and friendships in every store that has them: real servers need Debian's packages `postgresql` and
//! `mariadb-server`.

use crate::common::people;
use crate::common::wait;
use tidemark_store::people::People;
use tidemark_store::{Durability, EmbeddedFeed};

#[test]
fn embedded() {
    let with = |check: fn(people::Open<'_>)| {
        let store = EmbeddedFeed::in_memory();
        check(&|| store.clone());
    };
    with(people::participants_are_found_by_id_and_by_name);
    with(people::who_is_not_there_has_no_friends);
    with(people::a_friendship_is_symmetric_and_there_is_one_of_two);
    let folder = tempfile::tempdir().unwrap();
    let store = EmbeddedFeed::open(folder.path(), Durability::Synced).unwrap();
    people::friends_who_ask_for_each_other_at_once_have_one_friendship(&|| store.clone());
    let folder = tempfile::tempdir().unwrap();
    people::all_of_it_is_there_again_and_numbers_go_on(&|| {
        EmbeddedFeed::open(folder.path(), Durability::Synced).unwrap()
    });
    let store = EmbeddedFeed::in_memory();
    people::nobody_has_more_friends_than_there_can_be(&|| store.clone(), &|participant| {
        for _ in 0..tidemark_store::people::FRIENDS_MAX {
            let friend = wait(store.create("friend".into())).unwrap();
            wait(store.befriend(participant, friend.id)).unwrap();
        }
    });
}

#[cfg(any(feature = "mariadb", feature = "postgres"))]
fn on_a_server(database: &dyn Fn() -> String, open: &dyn Fn(&str) -> std::sync::Arc<dyn People>) {
    let checks: [fn(people::Open<'_>); 5] = [
        people::participants_are_found_by_id_and_by_name,
        people::who_is_not_there_has_no_friends,
        people::a_friendship_is_symmetric_and_there_is_one_of_two,
        people::friends_who_ask_for_each_other_at_once_have_one_friendship,
        people::all_of_it_is_there_again_and_numbers_go_on,
    ];
    for check in checks {
        let url = database();
        check(&|| open(&url));
    }
}

#[cfg(feature = "postgres")]
mod postgres {
    use std::sync::Arc;
    use std::time::Duration;

    use super::*;
    use crate::common::servers::{PATIENCE, PostgresServer};
    use tidemark_store::postgres::{Options, PostgresPeople};

    fn options(url: &str) -> Options {
        Options {
            url: url.to_owned(),
            connections: 2,
            timeout: Duration::from_secs(60),
            start_timeout: PATIENCE,
            ..Options::default()
        }
    }

    fn open(url: &str) -> Arc<dyn People> {
        PostgresPeople::open(options(url)).unwrap()
    }

    #[test]
    fn it_has_people() {
        let server = PostgresServer::start(&[]);
        on_a_server(&|| server.database(), &open);
        let url = server.database();
        people::nobody_has_more_friends_than_there_can_be(&|| open(&url), &|participant| {
            server.sql(
                &url,
                &format!(
                    "INSERT INTO Participant (pname) SELECT 'friend' FROM generate_series(1, 10000);
                     INSERT INTO Friends (fromid, toid) SELECT {participant}, id FROM Participant WHERE pname = 'friend'"
                ),
            );
        });
    }

    /// What others find in the database: the published names, columns and routines.
    #[test]
    fn the_schema_is_the_published_one() {
        let server = PostgresServer::start(&[]);
        let url = server.database();
        drop(open(&url));
        server.sql(
            &url,
            "DO $$ BEGIN
                ASSERT (SELECT id FROM UpsertParticipant('joe')) = 1;
                ASSERT (SELECT id FROM UpsertParticipant('larry')) = 2;
                ASSERT (SELECT moniker FROM FetchParticipant(2)) = 'larry';
                ASSERT (SELECT count(*) FROM FetchParticipant(3)) = 0;
                ASSERT (SELECT array_agg(id) FROM UpsertFriends(1, 2)) = ARRAY[1];
                ASSERT pg_get_function_result('UpsertFriends(int, int)'::regprocedure) = 'TABLE(id integer)';
                ASSERT (SELECT id FROM UpsertFriends(2, 1)) = 1;
                BEGIN
                    PERFORM UpsertFriends(1, 3);
                    RAISE 'there is no participant 3';
                EXCEPTION WHEN foreign_key_violation THEN
                END;
                ASSERT (SELECT (FriendsID, ParticipantID) FROM FetchFriends(1)) = (1, 2);
                ASSERT (SELECT (FriendsID, ParticipantID) FROM FetchFriends(2)) = (1, 1);
                ASSERT (SELECT pname FROM Participant WHERE id = 1) = 'joe';
                ASSERT (SELECT (fromid, toid) FROM Friends WHERE id = 1) = (1, 2);
            END $$",
        );
        assert_eq!(wait(open(&url).counts()).unwrap(), [2, 1]);

        let url = server.database();
        server.sql(&url, "CREATE TABLE Participant (id int)");
        let error = PostgresPeople::open(options(&url)).err().expect("another's table").to_string();
        assert!(error.contains("name a database"), "{error}");
    }
}

#[cfg(feature = "mariadb")]
mod mariadb {
    use std::sync::Arc;
    use std::time::Duration;

    use super::*;
    use crate::common::mariadb::MariadbServer;
    use crate::common::servers::{PATIENCE, until_it_works};
    use rustix::process::{Pid, Signal, kill_process};
    use tidemark_store::StoreError;
    use tidemark_store::mariadb::{MariadbPeople, Options};

    fn options(url: &str) -> Options {
        Options {
            url: url.to_owned(),
            connections: 4,
            timeout: Duration::from_secs(60),
            start_timeout: PATIENCE,
            ..Options::default()
        }
    }

    fn open(url: &str) -> Arc<dyn People> {
        MariadbPeople::open(options(url)).unwrap()
    }

    #[test]
    fn it_has_people() {
        let server = MariadbServer::start(&[]);
        on_a_server(&|| server.database(), &open);
        let url = server.database();
        people::nobody_has_more_friends_than_there_can_be(&|| open(&url), &|participant| {
            server.sql(
                &url,
                &format!(
                    "INSERT INTO Participant (Moniker) SELECT 'friend' FROM seq_1_to_10000;
                     INSERT INTO Friends (FromParticipantID, ToParticipantID)
                     SELECT {participant}, ParticipantID FROM Participant WHERE Moniker = 'friend'"
                ),
            );
        });
    }

    /// What others find in the database: the published names, columns and procedures.
    #[test]
    fn the_schema_is_the_published_one() {
        let server = MariadbServer::start(&[]);
        let url = server.database();
        drop(open(&url));
        for (question, answer) in [
            ("CALL UpsertParticipant('joe')", "1"),
            ("CALL UpsertParticipant('larry')", "2"),
            ("CALL FetchParticipant(2)", "larry"),
            ("CALL FetchParticipant(3)", ""),
            ("CALL UpsertFriends(1, 2)", "1"),
            ("CALL UpsertFriends(2, 1)", "1"),
            ("CALL FetchFriends(1)", "1\t2"),
            ("CALL FetchFriends(2)", "1\t1"),
            ("SELECT * FROM Participant", "1\tjoe\n2\tlarry"),
            ("SELECT * FROM Friends", "1\t1\t2"),
        ] {
            assert_eq!(server.answer(&url, question), answer, "{question}");
        }
        assert_eq!(wait(open(&url).counts()).unwrap(), [2, 1]);

        let url = server.database();
        server.sql(&url, "CREATE TABLE Participant (ParticipantID int PRIMARY KEY, Moniker varchar(50))");
        let error = MariadbPeople::open(options(&url)).err().expect("another's table").to_string();
        assert!(error.contains("name a database"), "{error}");
    }

    #[test]
    fn a_server_that_stands_still_is_given_up_and_found_again() {
        let server = MariadbServer::start(&[]);
        let url = server.database();
        let people =
            MariadbPeople::open(Options { timeout: Duration::from_secs(3), ..options(&url) }).unwrap();
        let joe = until_it_works(|| wait(people.create("Joe".into())));
        // it does not at once
        let id = Pid::from_raw(server.id() as i32).unwrap();
        kill_process(id, Signal::STOP).unwrap();
        let error = loop {
            if let Err(error) = wait(people.find(joe.id)) {
                break error;
            }
        };
        assert!(matches!(error, StoreError::NoAnswer { .. } | StoreError::Unreachable { .. }), "{error}");
        kill_process(id, Signal::CONT).unwrap();
        assert_eq!(until_it_works(|| wait(people.find(joe.id))), Some(joe));
    }

    /// Requests whose asker has gone leave no connection in the middle of an answer.
    #[test]
    fn who_gives_up_an_answer_harms_nobody() {
        let server = MariadbServer::start(&[]);
        let people = open(&server.database());
        let ids: Vec<u64> =
            (0..20).map(|number| wait(people.create(format!("{number}").into())).unwrap().id).collect();
        wait(async {
            for round in 0..200u64 {
                let id = ids[round as usize % ids.len()];
                let brief = Duration::from_micros(round * 10);
                let _ = tokio::time::timeout(brief, people.friends(id)).await;
                let found = people.find(id).await.unwrap().unwrap();
                assert_eq!(&*found.name, (round as usize % ids.len()).to_string());
            }
        });
        let lost = people.metrics().own.iter().find(|own| own.name == "lost").unwrap().value;
        assert_eq!(lost, 0);
    }
}
