//! Whatever is written is read again, in whatever pieces; whatever comes, nothing panics.

use proptest::prelude::*;
use tidemark_wire::websocket::{
    Decoder, Event, Kind, Limits, Role, WebSocketError, write_close, write_fragment, write_message,
    write_ping,
};

#[derive(Debug, Clone)]
struct Message {
    text: Option<String>,
    binary: Vec<u8>,
    /// Where it is cut into fragments.
    cuts: Vec<usize>,
    ping: Option<Vec<u8>>,
}

impl Message {
    fn kind(&self) -> Kind {
        if self.text.is_some() { Kind::Text } else { Kind::Binary }
    }

    fn bytes(&self) -> &[u8] {
        self.text.as_ref().map_or(&self.binary, |text| text.as_bytes())
    }

    fn write(&self, key: Option<[u8; 4]>, wire: &mut Vec<u8>, expected: &mut Vec<(Event, Vec<u8>)>) {
        let mut rest = self.bytes();
        let mut first = Some(self.kind());
        for cut in &self.cuts {
            let (front, back) = rest.split_at(cut % (rest.len() + 1));
            write_fragment(wire, first.take(), false, front, key);
            if let Some(ping) = &self.ping {
                write_ping(wire, ping, key);
                expected.push((Event::Ping, ping.clone()));
            }
            rest = back;
        }
        match first {
            Some(kind) => write_message(wire, kind, rest, key),
            None => write_fragment(wire, None, true, rest, key),
        }
        expected.push((Event::Message(self.kind()), self.bytes().to_vec()));
    }
}

fn messages() -> impl Strategy<Value = Vec<Message>> {
    let message = (
        prop::option::of(".{0,200}"),
        prop::collection::vec(any::<u8>(), 0..400),
        prop::collection::vec(any::<usize>(), 0..4),
        prop::option::of(prop::collection::vec(any::<u8>(), 0..=125)),
    );
    let message = message.prop_map(|(text, binary, cuts, ping)| Message { text, binary, cuts, ping });
    prop::collection::vec(message, 0..6)
}

type Understood = (Vec<(Event, Vec<u8>)>, Option<WebSocketError>);

fn feed(decoder: &mut Decoder, wire: &[u8], cuts: &[usize]) -> Understood {
    let (mut events, mut at) = (Vec::new(), 0);
    let mut cuts = cuts.iter().cycle();
    while at < wire.len() {
        let end = cuts.next().map_or(wire.len(), |cut| wire.len().min(at + cut));
        while at < end {
            let decoded = match decoder.decode(&wire[at..end]) {
                Ok(decoded) => decoded,
                Err(error) => return (events, Some(error)),
            };
            assert!(decoded.consumed <= end - at);
            at += decoded.consumed;
            match decoded.event {
                Some(Event::Close) => {
                    events.push((Event::Close, decoder.control().to_vec()));
                    return (events, None);
                }
                Some(event @ Event::Message(_)) => events.push((event, decoder.message().to_vec())),
                Some(event) => events.push((event, decoder.control().to_vec())),
                None => assert_eq!(at, end, "without an event, all is taken"),
            }
        }
    }
    (events, None)
}

proptest! {
    #[test]
    fn what_is_written_is_read(
        messages in messages(),
        cuts in prop::collection::vec(1usize..80, 1..20),
        key: [u8; 4],
        from_client: bool,
        reason in ".{0,20}",
    ) {
        let (role, key) = if from_client { (Role::Server, Some(key)) } else { (Role::Client, None) };
        let (mut wire, mut expected) = (Vec::new(), Vec::new());
        messages.iter().for_each(|message| message.write(key, &mut wire, &mut expected));
        write_close(&mut wire, Some(4000), &reason, key);
        expected.push((Event::Close, [&4000u16.to_be_bytes()[..], reason.as_bytes()].concat()));
        let mut decoder = Decoder::new(role, Limits::default());
        prop_assert_eq!(feed(&mut decoder, &wire, &cuts), (expected, None));
        prop_assert_eq!(decoder.close_reason(), reason);
    }

    #[test]
    fn arbitrary_bytes_are_the_same_in_any_pieces(
        wire in prop::collection::vec(prop_oneof![any::<u8>(), 0u8..3, 0x80u8..0x8b, 0x7du8..=0x81], 0..300),
        cuts in prop::collection::vec(1usize..20, 1..20),
        client: bool,
    ) {
        let role = if client { Role::Client } else { Role::Server };
        let limits = Limits { frame_bytes: 1_000, message_bytes: 1_500 };
        let whole = feed(&mut Decoder::new(role, limits), &wire, &[wire.len().max(1)]);
        let pieces = feed(&mut Decoder::new(role, limits), &wire, &cuts);
        prop_assert_eq!(whole, pieces);
    }
}
