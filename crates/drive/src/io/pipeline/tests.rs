use proptest::prelude::*;

use super::*;

/// A back end whose sockets do what the test says.
#[derive(Default)]
struct Scripted {
    outputs: Vec<Vec<u8>>,
    /// What left on each socket, a piece for each send.
    sent: Vec<Vec<Vec<u8>>>,
    opened: Vec<usize>,
    closed: Vec<usize>,
    events: VecDeque<(usize, Event, Vec<u8>)>,
    received: Vec<u8>,
    is_sending: bool,
    refuses: bool,
    upcoming: Option<usize>,
}

impl Io for Scripted {
    fn point(&mut self, _: usize, _: std::net::SocketAddr) {}

    fn open(&mut self, connection: usize) -> io::Result<()> {
        self.opened.push(connection);
        Ok(())
    }

    fn output(&mut self, connection: usize) -> &mut Vec<u8> {
        assert!(!self.is_sending, "one output at a time");
        self.outputs[connection].clear();
        &mut self.outputs[connection]
    }

    fn send(&mut self, connection: usize) -> io::Result<()> {
        if self.refuses {
            return Err(ErrorKind::BrokenPipe.into());
        }
        let bytes = self.outputs[connection].clone();
        self.sent[connection].push(bytes);
        Ok(())
    }

    fn is_sending(&self, _: usize) -> bool {
        self.is_sending
    }

    fn close(&mut self, connection: usize) {
        self.closed.push(connection);
        self.events.retain(|(of, ..)| *of != connection);
    }

    fn wait(&mut self, _: Option<Duration>) -> io::Result<()> {
        Ok(())
    }

    fn next(&mut self) -> Option<(usize, Event)> {
        let (connection, event, bytes) = self.events.pop_front()?;
        self.received = bytes;
        Some((connection, event))
    }

    fn received(&self) -> &[u8] {
        &self.received
    }

    fn upcoming_socket(&self) -> Option<usize> {
        self.upcoming
    }

    fn traffic(&self) -> (u64, u64) {
        (0, 0)
    }
}

/// One socket with `depth` lanes, all of them open.
fn one_open(depth: usize) -> PipelineIo<Scripted> {
    let mut io = over(1, depth);
    (0..depth).for_each(|lane| io.open(lane).unwrap());
    assert_eq!(io.inner.opened, [0], "one socket for all");
    io.inner.events.push_back((0, Event::Opened, Vec::new()));
    assert_eq!(told(&mut io), (0..depth).map(|lane| format!("{lane} opened")).collect::<Vec<_>>());
    assert_eq!((0..depth).filter(|lane| io.is_first(*lane)).count(), 1);
    io
}

fn over(pipes: usize, depth: usize) -> PipelineIo<Scripted> {
    let inner =
        Scripted { outputs: vec![Vec::new(); pipes], sent: vec![Vec::new(); pipes], ..Scripted::default() };
    PipelineIo::new(inner, pipes, depth, 1)
}

fn send(io: &mut PipelineIo<Scripted>, lane: usize) {
    io.output(lane).extend_from_slice(format!("<{lane}>").as_bytes());
    io.send(lane).unwrap();
}

fn receive(io: &mut PipelineIo<Scripted>, bytes: &[u8], closing: bool) {
    io.inner.events.push_back((0, Event::Received { closing }, bytes.to_vec()));
}

/// All news as text; an answer is a line, and a lane takes one at a time as the loop does.
fn told(io: &mut PipelineIo<Scripted>) -> Vec<String> {
    let mut told = Vec::new();
    while let Some((lane, event)) = io.next() {
        told.push(match event {
            Event::Opened => format!("{lane} opened"),
            Event::Taken => format!("{lane} taken"),
            Event::Ended => format!("{lane} ended"),
            Event::Unsent(error) => format!("{lane} unsent: {error}"),
            Event::Failed(error) => format!("{lane} failed: {error}"),
            Event::Received { .. } => match io.received().iter().position(|byte| *byte == b'\n') {
                None => format!("{lane} has {}", String::from_utf8_lossy(io.received())),
                Some(end) => {
                    let answer = String::from_utf8_lossy(&io.received()[..end]).into_owned();
                    let in_step = io.answered(lane, end + 1);
                    format!("{lane} has {answer}{}", if in_step { "" } else { ", out of step" })
                }
            },
        });
    }
    told
}

#[test]
fn requests_of_a_turn_leave_together_and_answers_come_in_order() {
    let mut io = one_open(4);
    [2, 0, 3, 1].iter().for_each(|lane| send(&mut io, *lane));
    assert_eq!(io.inner.sent[0], [b"<2>"], "the first leaves at once");
    io.wait(None).unwrap();
    assert_eq!(io.inner.sent[0][1], b"<0><3><1>");
    receive(&mut io, b"a\nb\nc\nd\n", false);
    assert_eq!(told(&mut io), ["2 has a", "0 has b", "3 has c", "1 has d"]);
    assert!(io.listed.is_empty());
}

#[test]
fn lanes_spread_over_sockets_before_they_share() {
    let mut io = over(3, 2);
    (0..4).for_each(|lane| io.open(lane).unwrap());
    assert_eq!(io.inner.opened, [0, 1, 2]);
}

#[test]
fn what_finds_no_room_leaves_later() {
    let mut io = one_open(3);
    send(&mut io, 0);
    io.inner.is_sending = true;
    send(&mut io, 1);
    io.wait(None).unwrap();
    send(&mut io, 2);
    assert_eq!(io.inner.sent[0].len(), 1);
    io.inner.is_sending = false;
    io.wait(None).unwrap();
    assert_eq!(io.inner.sent[0][1], b"<1><2>");
}

#[test]
fn when_the_peer_closes_all_that_wait_are_told_and_idle_lanes_too() {
    let mut io = one_open(4);
    (0..3).for_each(|lane| send(&mut io, lane));
    io.wait(None).unwrap();
    receive(&mut io, b"a\nhalf", true);
    io.inner.events.push_back((0, Event::Ended, Vec::new()));
    assert_eq!(told(&mut io), ["0 has a", "1 has half", "1 ended", "2 ended", "0 ended", "3 ended"]);
    io.output(3).extend_from_slice(b"late");
    assert_eq!(io.send(3).unwrap_err().kind(), ErrorKind::NotConnected);
    // and a new socket serves them as the first did
    (0..4).for_each(|lane| io.close(lane));
    io.open(3).unwrap();
    io.inner.events.push_back((0, Event::Opened, Vec::new()));
    assert_eq!(told(&mut io), ["3 opened"]);
    send(&mut io, 3);
    assert_eq!(io.inner.sent[0].last().unwrap(), b"<3>");
}

#[test]
fn a_lane_that_gives_up_ends_the_others() {
    let mut io = one_open(3);
    (0..2).for_each(|lane| send(&mut io, lane));
    io.close(0);
    let told = told(&mut io);
    assert_eq!(told, ["1 failed: another request of its pipeline timed out", "2 ended"]);
    assert_eq!(io.inner.closed, [0]);
}

#[test]
fn a_lane_that_gives_up_what_it_reads_was_answered_wrongly() {
    let mut io = one_open(2);
    (0..2).for_each(|lane| send(&mut io, lane));
    receive(&mut io, b"no answer", false);
    assert!(matches!(io.next(), Some((0, Event::Received { .. }))));
    io.close(0);
    assert_eq!(told(&mut io), ["1 failed: another request of its pipeline was answered wrongly"]);
    // the same bytes, but it waits for more of them until its time is up
    let mut io = one_open(2);
    (0..2).for_each(|lane| send(&mut io, lane));
    receive(&mut io, b"no answer", false);
    assert_eq!(told(&mut io), ["0 has no answer"]);
    io.close(0);
    assert_eq!(told(&mut io), ["1 failed: another request of its pipeline timed out"]);
}

#[test]
fn while_the_peer_is_closing_nothing_is_sent_and_who_wants_gets_a_new_socket() {
    let mut io = one_open(3);
    (0..2).for_each(|lane| send(&mut io, lane));
    receive(&mut io, b"a\n", true);
    assert_eq!(told(&mut io), ["0 has a"]);
    io.output(0).extend_from_slice(b"more");
    assert!(io.send(0).is_err());
    io.close(0);
    io.open(0).unwrap();
    assert_eq!(io.inner.opened, [0], "the answer to lane 1 is still to come");
    receive(&mut io, b"b\n", false);
    assert_eq!(told(&mut io), ["1 has b", "1 ended", "2 ended"]);
    assert_eq!(io.inner.opened, [0, 0]);
    io.inner.events.push_back((0, Event::Opened, Vec::new()));
    assert_eq!(told(&mut io), ["0 opened"]);
}

#[test]
fn bytes_that_nobody_asked_for_end_the_socket() {
    let mut io = one_open(2);
    send(&mut io, 0);
    receive(&mut io, b"a\nb\n", false);
    assert_eq!(told(&mut io), ["0 has a, out of step", "0 ended", "1 ended"]);
}

#[test]
fn a_send_that_fails_is_told_to_the_first_at_once_and_to_the_others_later() {
    let mut io = one_open(3);
    io.inner.refuses = true;
    io.output(0).extend_from_slice(b"<0>");
    assert!(io.send(0).is_err(), "alone");
    io.inner.refuses = false;
    send(&mut io, 0);
    io.inner.refuses = true;
    send(&mut io, 1);
    io.wait(None).unwrap();
    assert_eq!(told(&mut io), ["1 unsent: broken pipe", "0 failed: broken pipe", "2 ended"]);
}

#[test]
fn only_who_is_alone_may_be_sent_again() {
    for (lanes, expected) in [
        (1, ["0 unsent: broken pipe", "1 ended", "2 ended"]),
        (2, ["0 failed: broken pipe", "1 failed: broken pipe", "2 ended"]),
    ] {
        let mut io = one_open(3);
        (0..lanes).for_each(|lane| send(&mut io, lane));
        io.inner.events.push_back((0, Event::Unsent(ErrorKind::BrokenPipe.into()), Vec::new()));
        assert_eq!(told(&mut io), expected);
    }
}

#[test]
fn all_that_wait_for_a_socket_hear_that_it_is_refused() {
    let mut io = over(1, 3);
    (0..3).for_each(|lane| io.open(lane).unwrap());
    io.close(1);
    io.inner.events.push_back((0, Event::Failed(ErrorKind::ConnectionRefused.into()), Vec::new()));
    assert_eq!(told(&mut io), ["0 failed: connection refused", "2 failed: connection refused"]);
    io.open(1).unwrap();
    assert_eq!(io.inner.opened, [0, 0]);
}

#[test]
fn a_lane_that_joins_a_socket_that_breaks_before_it_knows_waits_on() {
    let mut io = one_open(2);
    io.close(1); // the socket is closed with it
    assert_eq!(told(&mut io), ["0 ended"]);
    io.close(0);
    io.open(0).unwrap();
    io.inner.events.push_back((0, Event::Opened, Vec::new()));
    assert_eq!(told(&mut io), ["0 opened"]);
    send(&mut io, 0);
    io.open(1).unwrap();
    io.close(0); // gives up before lane 1 hears that it is open
    assert_eq!(told(&mut io), Vec::<String>::new());
    io.inner.events.push_back((0, Event::Opened, Vec::new()));
    assert_eq!(told(&mut io), ["1 opened"]);
}

proptest! {
    /// However the bytes are cut, each lane gets its own answer.
    #[test]
    fn cuts_do_not_matter(cuts in prop::collection::vec(1usize..9, 1..40)) {
        let mut io = one_open(8);
        (0..8).for_each(|lane| send(&mut io, lane));
        let stream: Vec<u8> = (0..8).flat_map(|lane| format!("answer {lane}\n").into_bytes()).collect();
        let mut whole = vec![String::new(); 8];
        let mut rest = stream.as_slice();
        for cut in cuts.iter().copied().chain([usize::MAX]) {
            let (piece, behind) = rest.split_at(cut.min(rest.len()));
            rest = behind;
            receive(&mut io, piece, false);
            for told in told(&mut io) {
                let (lane, part) = told.split_once(" has ").expect("only bytes come");
                whole[lane.parse::<usize>().unwrap()].push_str(part);
            }
        }
        for (lane, got) in whole.iter().enumerate() {
            prop_assert_eq!(got, &format!("answer {}", lane));
        }
    }
}

/// What left since the last time.
fn left(io: &mut PipelineIo<Scripted>) -> String {
    io.wait(None).unwrap();
    String::from_utf8(std::mem::take(&mut io.inner.sent[0]).concat()).unwrap()
}

#[test]
fn while_answers_are_to_come_requests_leave_in_batches() {
    let mut io = one_open(4);
    io.batch = 3;
    send(&mut io, 0);
    assert_eq!(left(&mut io), "<0>", "nothing is to come: it need not wait");
    send(&mut io, 1);
    send(&mut io, 2);
    assert_eq!(left(&mut io), "", "two are no batch");
    send(&mut io, 3);
    assert_eq!(left(&mut io), "<1><2><3>");
    receive(&mut io, b"a\nb\n", false);
    assert_eq!(told(&mut io), ["0 has a", "1 has b"]);
    send(&mut io, 0);
    assert_eq!(left(&mut io), "", "two answers are to come");
    receive(&mut io, b"c\n", false);
    assert_eq!(told(&mut io), ["2 has c"]);
    send(&mut io, 1);
    assert_eq!(left(&mut io), "", "and one still is");
    receive(&mut io, b"d\n", false);
    assert_eq!(told(&mut io), ["3 has d"]);
    assert_eq!(left(&mut io), "<0><1>", "that was the last");
}

#[test]
fn what_waits_for_its_batch_fails_with_its_connection() {
    let mut io = one_open(3);
    io.batch = 3;
    send(&mut io, 0);
    send(&mut io, 1);
    assert_eq!(left(&mut io), "<0>");
    io.inner.events.push_back((0, Event::Ended, Vec::new()));
    assert_eq!(told(&mut io), ["0 ended", "1 ended", "2 ended"]);
    io.open(1).unwrap();
    io.inner.events.push_back((0, Event::Opened, Vec::new()));
    assert_eq!(told(&mut io), ["1 opened"]);
    send(&mut io, 1);
    assert_eq!(left(&mut io), "<1>", "nothing is left of the batch before");
}

#[test]
fn answers_read_together_are_known_as_such_and_who_is_next_is_known() {
    let mut io = one_open(3);
    (0..3).for_each(|lane| send(&mut io, lane));
    io.wait(None).unwrap();
    assert_eq!(io.reading(), None);
    receive(&mut io, b"a\nb\n", false);
    receive(&mut io, b"c\n", false);
    let next = |io: &mut PipelineIo<Scripted>| {
        let (lane, _) = io.next().unwrap();
        io.answered(lane, 2);
        (lane, io.reading(), io.upcoming(1), io.upcoming(2))
    };
    assert_eq!(next(&mut io), (0, Some(1), Some(1), Some(2)));
    assert_eq!(next(&mut io), (1, Some(1), Some(2), None));
    assert_eq!(next(&mut io), (2, Some(2), None, None), "another reading");
    io.wait(None).unwrap();
    assert_eq!(io.reading(), None, "what comes now was not read then");
    assert_eq!(io.upcoming(0), None);
}

#[test]
fn behind_those_of_a_socket_the_first_of_the_next_one_is_known() {
    let mut io = over(2, 2);
    (0..4).for_each(|lane| io.open(lane).unwrap());
    (0..2).for_each(|pipe| io.inner.events.push_back((pipe, Event::Opened, Vec::new())));
    assert_eq!(told(&mut io).len(), 4);
    (0..4).for_each(|lane| send(&mut io, lane));
    io.wait(None).unwrap();
    receive(&mut io, b"a\nb\n", false);
    io.inner.upcoming = Some(1);
    let (lane, _) = io.next().unwrap();
    io.answered(lane, 2);
    assert_eq!((lane, [1, 2, 3, 4].map(|nth| io.upcoming(nth))), (0, [Some(2), Some(1), Some(3), None]));
    send(&mut io, 0);
    assert_eq!([1, 2].map(|nth| io.upcoming(nth)), [Some(2), Some(1)], "what has not left is not awaited");
    io.inner.upcoming = None;
    assert_eq!(io.upcoming(2), None);
}

#[test]
fn an_answer_is_none_of_a_request_that_has_not_left() {
    let mut io = one_open(2);
    (0..2).for_each(|lane| send(&mut io, lane));
    io.wait(None).unwrap();
    receive(&mut io, b"a\nb\nc\n", false);
    for expected in [0, 1] {
        let (lane, event) = io.next().unwrap();
        assert!(lane == expected && matches!(event, Event::Received { .. }), "{event:?}");
        io.answered(lane, 2);
        if lane == 0 {
            send(&mut io, 0); // the user goes on while the other answers of the reading are looked at
        }
    }
    let told = told(&mut io);
    assert!(told.iter().any(|told| told == "0 failed: more answers came than requests had left"), "{told:?}");
    assert_eq!(io.inner.closed, [0]);
}

/// Three sockets with four lanes each; the first and the last lead to the same one of two servers.
fn of_two_servers(batch: usize) -> PipelineIo<Scripted> {
    let mut io = over(3, 4).of_servers(2);
    io.batch = batch;
    (0..12).for_each(|lane| io.open(lane).unwrap());
    (0..3).for_each(|pipe| io.inner.events.push_back((pipe, Event::Opened, Vec::new())));
    assert_eq!(told(&mut io).len(), 12);
    io
}

/// What left on a socket since the last time, a piece for each write.
fn written(io: &mut PipelineIo<Scripted>, pipe: usize) -> Vec<String> {
    let sent = std::mem::take(&mut io.inner.sent[pipe]);
    sent.into_iter().map(|bytes| String::from_utf8(bytes).unwrap()).collect()
}

#[test]
fn a_batch_waits_for_answers_of_its_server_over_whichever_socket() {
    let mut io = of_two_servers(3);
    [0, 2, 5, 1].iter().for_each(|lane| send(&mut io, *lane));
    io.wait(None).unwrap();
    assert_eq!([0, 1, 2].map(|pipe| written(&mut io, pipe)), [vec!["<0>"], vec!["<1>"], vec![]]);
    assert!(io.is_filling(2) && !io.is_filling(0));
    receive(&mut io, b"a\n", false);
    assert_eq!(told(&mut io), ["0 has a"]);
    assert!(written(&mut io, 2).is_empty(), "more may become ready in this turn");
    io.wait(None).unwrap();
    assert_eq!(written(&mut io, 2), ["<2><5>"], "the server has nothing more to answer");
}

#[test]
fn a_full_batch_leaves_with_the_end_of_the_reading() {
    let mut io = of_two_servers(2);
    send(&mut io, 0);
    send(&mut io, 1);
    send(&mut io, 2);
    receive(&mut io, b"a\n", false);
    let (lane, _) = io.next().unwrap();
    io.answered(lane, 2);
    [5, 0].iter().for_each(|lane| send(&mut io, *lane));
    assert!(written(&mut io, 2).is_empty());
    assert!(io.next().is_none());
    assert_eq!(written(&mut io, 2), ["<2><5>"]);
    assert_eq!(written(&mut io, 0), ["<0>"], "once, at first");
}

#[test]
fn who_gives_up_keeps_no_batch_of_another_socket_waiting() {
    for given_up in [0, 2] {
        let mut io = of_two_servers(4);
        [0, 2, 5].iter().for_each(|lane| send(&mut io, *lane));
        io.close(given_up);
        io.wait(None).unwrap();
        assert_eq!(written(&mut io, 0), ["<0>"]);
        let (left, awaited) = if given_up == 0 { (vec!["<2><5>"], 2) } else { (vec![], 1) };
        assert_eq!(
            (written(&mut io, 2), io.awaited[0]),
            (left.iter().map(|s| s.to_string()).collect(), awaited)
        );
    }
}
