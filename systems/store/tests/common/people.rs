//! What holds of every store of participants and friendships, each check on a store of its own that is empty.

use std::collections::BTreeSet;
use std::sync::Arc;

use tidemark_store::StoreError;
use tidemark_store::people::{
    Befriended, FRIENDS_MAX, Friend, NAME_CHARS_MAX, NAMED_MAX, Participant, People,
};

use super::wait;

/// Opens the store again and again, each time on the same data.
pub type Open<'a> = &'a dyn Fn() -> Arc<dyn People>;

fn create(people: &dyn People, name: &str) -> u64 {
    wait(people.create(name.into())).unwrap().id
}

fn befriend(people: &dyn People, from: u64, to: u64) -> u64 {
    match wait(people.befriend(from, to)).unwrap() {
        Befriended::Friends(id) => id,
        other => panic!("{from} and {to}: {other:?}"),
    }
}

pub fn participants_are_found_by_id_and_by_name(open: Open<'_>) {
    let people = open();
    assert_eq!(wait(people.counts()).unwrap(), [0, 0]);
    assert_eq!(wait(people.last()).unwrap(), 0);
    let longest = "ä".repeat(NAME_CHARS_MAX);
    let names =
        ["Joe", "joe", "Joe ", "", "O'Brien; DROP TABLE Participant --", "%s \\ \" 😀", &longest, "Joe"];
    let ids: Vec<u64> = names.iter().map(|name| create(&*people, name)).collect();
    assert!(ids[0] >= 1 && ids.is_sorted_by(|a, b| a < b), "{ids:?}");
    for (id, name) in ids.iter().zip(names) {
        let expected = Participant { id: *id, name: name.into() };
        assert_eq!(wait(people.find(*id)).unwrap(), Some(expected), "{name}");
    }
    let named = |name: &str| wait(people.named(name)).unwrap().iter().map(|one| one.id).collect::<Vec<_>>();
    assert_eq!(
        (named("Joe"), named("joe"), named("Joe ")),
        (vec![ids[0], ids[7]], vec![ids[1]], vec![ids[2]])
    );
    assert_eq!((named(""), named("nobody"), named("a\0")), (vec![ids[3]], vec![], vec![]));
    assert_eq!(named(names[4]), [ids[4]]);
    let error = wait(people.create("ä".repeat(NAME_CHARS_MAX + 1).into())).unwrap_err();
    assert!(matches!(error, StoreError::Invalid { .. }), "{error}");
    for _ in 0..NAMED_MAX {
        create(&*people, "Joe");
    }
    let joes = named("Joe");
    assert_eq!((joes.len(), joes[0], joes[1]), (NAMED_MAX, ids[0], ids[7]));
    assert!(joes.is_sorted());
    assert_eq!(wait(people.counts()).unwrap(), [(names.len() + NAMED_MAX) as u64, 0]);
}

pub fn who_is_not_there_has_no_friends(open: Open<'_>) {
    let people = open();
    let joe = create(&*people, "Joe");
    for nobody in [joe + 1, u64::from(u32::MAX), u64::MAX] {
        assert_eq!(wait(people.befriend(joe, nobody)).unwrap(), Befriended::NoSuchParticipant(nobody));
        assert_eq!(wait(people.befriend(nobody, joe)).unwrap(), Befriended::NoSuchParticipant(nobody));
        assert_eq!(wait(people.find(nobody)).unwrap(), None);
        assert_eq!(wait(people.friends(nobody)).unwrap(), []);
    }
    assert_eq!(wait(people.friends(joe)).unwrap(), []);
    assert_eq!(wait(people.counts()).unwrap(), [1, 0]);
}

pub fn a_friendship_is_symmetric_and_there_is_one_of_two(open: Open<'_>) {
    let people = open();
    let [joe, ann, moe] = ["Joe", "Ann", "Moe"].map(|name| create(&*people, name));
    let first = befriend(&*people, ann, joe);
    let second = befriend(&*people, joe, moe);
    assert!(first >= 1 && first < second);
    assert_eq!([(ann, joe), (joe, ann)].map(|(from, to)| befriend(&*people, from, to)), [first; 2]);
    let friend = |friendship, participant| Friend { friendship, participant };
    assert_eq!(wait(people.friends(joe)).unwrap(), [friend(first, ann), friend(second, moe)]);
    assert_eq!(wait(people.friends(ann)).unwrap(), [friend(first, joe)]);
    assert_eq!(wait(people.friends(moe)).unwrap(), [friend(second, joe)]);
    assert_eq!(wait(people.counts()).unwrap(), [3, 2]);
}

/// Two stores on the same data, many requests at once, both ways round.
pub fn friends_who_ask_for_each_other_at_once_have_one_friendship(open: Open<'_>) {
    let people = [open(), open()];
    let ids: Vec<u64> = (0..6).map(|_| create(&*people[0], "Joe")).collect();
    let mut pairs = Vec::new();
    for one in &ids {
        pairs.extend(ids.iter().filter(|other| *other > one).map(|other| (*one, *other)));
    }
    let answers = wait(async {
        let asked = (0..4).flat_map(|round| pairs.iter().map(move |pair| (round, *pair)));
        let each = asked.map(|(round, (one, other))| {
            let (from, to) = if round % 2 == 0 { (one, other) } else { (other, one) };
            let people = &people[round / 2];
            async move { ((one, other), people.befriend(from, to).await) }
        });
        futures_util::future::join_all(each).await
    });
    let mut friendships = BTreeSet::new();
    for (pair, answer) in answers {
        match answer.unwrap() {
            Befriended::Friends(id) => friendships.insert((pair, id)),
            other => panic!("{pair:?}: {other:?}"),
        };
    }
    assert_eq!(friendships.len(), pairs.len(), "{friendships:?}");
    let numbers: BTreeSet<u64> = friendships.iter().map(|(_, id)| *id).collect();
    assert_eq!(numbers.len(), pairs.len());
    for one in &ids {
        let friends = wait(people[1].friends(*one)).unwrap();
        assert_eq!((friends.len(), friends.is_sorted()), (ids.len() - 1, true), "{one}");
    }
}

pub fn all_of_it_is_there_again_and_numbers_go_on(open: Open<'_>) {
    let (mut last, mut first) = ([0, 0], None);
    for life in 1..=3u64 {
        let people = open();
        let [one, other] = ["Joe", "Ann"].map(|name| create(&*people, name));
        let friendship = befriend(&*people, one, other);
        assert!(one > last[0] && friendship > last[1]);
        last = [other, friendship];
        assert_eq!(wait(people.counts()).unwrap(), [2 * life, life]);
        assert_eq!(wait(people.last()).unwrap(), other);
        assert_eq!(wait(people.named("Ann")).unwrap().len() as u64, life);
        let (one, other, friendship) = *first.get_or_insert((one, other, friendship));
        assert_eq!(befriend(&*people, other, one), friendship, "those of before are known");
    }
}

/// `befriend_all(participant)` makes the participant with this id a friend of as many others as there can be.
pub fn nobody_has_more_friends_than_there_can_be(open: Open<'_>, befriend_all: &dyn Fn(u64)) {
    let people = open();
    let [joe, ann] = ["Joe", "Ann"].map(|name| create(&*people, name));
    befriend_all(joe);
    let friends = wait(people.friends(joe)).unwrap();
    assert_eq!((friends.len(), friends.is_sorted()), (FRIENDS_MAX, true));
    for (from, to) in [(joe, ann), (ann, joe)] {
        assert_eq!(wait(people.befriend(from, to)).unwrap(), Befriended::TooManyFriends(joe));
    }
    let known = friends[FRIENDS_MAX - 1];
    assert_eq!(befriend(&*people, known.participant, joe), known.friendship, "who is one stays one");
}
