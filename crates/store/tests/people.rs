//! Participants and friendships in every store that has them: real servers need Debian's packages `postgresql` and
//! `mariadb-server`.

mod common;

use std::sync::Arc;

use common::people;
use common::wait;
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
    with(people::friends_who_ask_for_each_other_at_once_have_one_friendship);
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

#[cfg(feature = "postgres")]
mod postgres {
    use std::time::Duration;

    use super::*;
    use common::servers::PostgresServer;
    use tidemark_store::StoreError;
    use tidemark_store::postgres::{Options, PostgresPeople};

    fn options(url: &str) -> Options {
        Options {
            url: url.to_owned(),
            connections: 2,
            timeout: Duration::from_secs(60),
            start_timeout: Duration::from_secs(120),
            ..Options::default()
        }
    }

    fn open(url: &str) -> Arc<dyn People> {
        PostgresPeople::open(options(url)).unwrap()
    }

    #[test]
    fn it_has_people() {
        let server = PostgresServer::start(&[]);
        let with = |check: fn(people::Open<'_>)| {
            let url = server.database();
            check(&|| open(&url));
        };
        with(people::participants_are_found_by_id_and_by_name);
        with(people::who_is_not_there_has_no_friends);
        with(people::a_friendship_is_symmetric_and_there_is_one_of_two);
        with(people::friends_who_ask_for_each_other_at_once_have_one_friendship);
        with(people::all_of_it_is_there_again_and_numbers_go_on);
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
    fn the_schema_is_the_published_one_and_made_once() {
        let server = PostgresServer::start(&[]);
        let url = server.database();
        std::thread::scope(|scope| {
            let opened: Vec<_> = (0..4).map(|_| scope.spawn(|| open(&url))).collect();
            opened.into_iter().for_each(|store| drop(store.join().unwrap()));
        });
        server.sql(
            &url,
            "DO $$ BEGIN
                ASSERT (SELECT id FROM UpsertParticipant('joe')) = 1;
                ASSERT (SELECT id FROM UpsertParticipant('larry')) = 2;
                ASSERT (SELECT moniker FROM FetchParticipant(2)) = 'larry';
                ASSERT (SELECT count(*) FROM FetchParticipant(3)) = 0;
                ASSERT (SELECT id FROM UpsertFriends(1, 2)) = 1;
                ASSERT (SELECT (FriendsID, ParticipantID) FROM FetchFriends(1)) = (1, 2);
                ASSERT (SELECT (FriendsID, ParticipantID) FROM FetchFriends(2)) = (1, 1);
                ASSERT (SELECT pname FROM Participant WHERE id = 1) = 'joe';
                ASSERT (SELECT (fromid, toid) FROM Friends WHERE id = 1) = (1, 2);
            END $$",
        );
        assert_eq!(wait(open(&url).counts()).unwrap(), [2, 1]);
        server.sql(&url, "INSERT INTO NewsfeedMigrations (version) VALUES (99)");
        let error = PostgresPeople::open(options(&url)).err().expect("a later version").to_string();
        assert!(error.contains("version 99"), "{error}");

        let url = server.database();
        server.sql(&url, "CREATE TABLE Participant (id int)");
        let error = PostgresPeople::open(options(&url)).err().expect("another's table").to_string();
        assert!(error.contains("name a database"), "{error}");
    }

    #[test]
    fn a_server_that_is_away_is_told_at_once_and_found_again() {
        let mut server = PostgresServer::start(&[]);
        let people = open(&server.database());
        let joe = wait(people.create("Joe".into())).unwrap();
        server.kill();
        // its processes may go on for a moment
        let begun = std::time::Instant::now();
        let error = loop {
            match wait(people.create("Ann".into())) {
                Ok(_) => assert!(begun.elapsed() < Duration::from_secs(120), "it goes on"),
                Err(error) => break error,
            }
        };
        assert!(matches!(error, StoreError::Unreachable { .. } | StoreError::NoAnswer { .. }), "{error}");
        server.start_again();
        let begun = std::time::Instant::now();
        let found = loop {
            match wait(people.find(joe.id)) {
                Ok(found) => break found,
                Err(error) => assert!(begun.elapsed() < Duration::from_secs(120), "{error}"),
            }
            std::thread::sleep(Duration::from_millis(20));
        };
        assert_eq!(found, Some(joe));
    }
}
