//! What the message intake takes: a body or a query is refused with a reason, or is a message as it was sent.
#![no_main]

use bytes::Bytes;
use libfuzzer_sys::fuzz_target;
use percent_encoding::{NON_ALPHANUMERIC, percent_encode};
use tidemark_ingest::{KEY_BYTES, NotAMessage, message_of_query, read_message};

fuzz_target!(|input: &[u8]| {
    let Some((form, bytes)) = input.split_first() else { return };
    let taken = if form % 2 == 0 {
        let taken = read_message(Bytes::copy_from_slice(bytes));
        if let Ok(message) = &taken {
            assert_eq!(&message.payload[..], bytes, "as it was sent");
        }
        taken
    } else {
        let Ok(query) = std::str::from_utf8(bytes) else { return };
        message_of_query(query)
    };
    match taken {
        Ok(message) => {
            let kind = std::str::from_utf8(&message.kind).expect("a kind is ASCII");
            let key = format!("{:010}{:013}{kind}", message.user, message.time_ms);
            assert_eq!(key.as_bytes(), &message.payload[..KEY_BYTES], "the key is what it begins with");
            let query = format!("x=1&c={}", percent_encode(&message.payload, NON_ALPHANUMERIC));
            assert_eq!(message_of_query(&query), Ok(message.clone()));
            assert_eq!(read_message(message.payload.clone()), Ok(message));
        }
        // a query that has none, or a body that is empty
        Err(NotAMessage::Missing) => assert!(form % 2 == 1 || bytes.is_empty()),
        Err(reason) => assert!(!reason.to_string().is_empty()),
    }
});
