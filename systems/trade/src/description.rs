//! What reflection tells: the service and its messages, as a compiler of `.proto` files would describe them.

use tidemark_wire::protobuf::Message;

/// The name of the file that describes the service.
pub(crate) const FILE: &str = "trade.proto";
/// The service.
pub(crate) const SERVICE: &str = "trade.Trades";

// types of fields, as `descriptor.proto` numbers them
const INT64: u64 = 3;
const UINT64: u64 = 4;
const BOOL: u64 = 8;
const STRING: u64 = 9;
const OPTIONAL: u64 = 1;

/// Messages, and the names and types of their fields, in order.
const MESSAGES: [(&str, &[(&str, u64)]); 4] = [
    ("Trade", &[("name", STRING), ("amount", INT64)]),
    ("Taken", &[("taken", BOOL)]),
    ("Nothing", &[]),
    ("Counted", &[("trades", UINT64)]),
];
/// Methods, what they take and answer with, and whether both are streams.
const METHODS: [(&str, &str, &str, bool); 3] = [
    ("Take", ".trade.Trade", ".trade.Taken", false),
    ("TakeEach", ".trade.Trade", ".trade.Taken", true),
    ("Count", ".trade.Nothing", ".trade.Counted", false),
];

/// The file as a `google.protobuf.FileDescriptorProto`.
pub(crate) fn file() -> Vec<u8> {
    let mut file = Message::default();
    file.bytes(1, FILE.as_bytes());
    file.bytes(2, b"trade");
    for (name, fields) in MESSAGES {
        file.message(4, |message| {
            message.bytes(1, name.as_bytes());
            for (number, (name, kind)) in (1..).zip(fields) {
                message.message(2, |field| {
                    field.bytes(1, name.as_bytes());
                    field.uint(3, number);
                    field.uint(4, OPTIONAL);
                    field.uint(5, *kind);
                });
            }
        });
    }
    file.message(6, |service| {
        service.bytes(1, b"Trades");
        for (name, takes, answers, are_streams) in METHODS {
            service.message(2, |method| {
                method.bytes(1, name.as_bytes());
                method.bytes(2, takes.as_bytes());
                method.bytes(3, answers.as_bytes());
                method.uint(5, are_streams.into());
                method.uint(6, are_streams.into());
            });
        }
    });
    file.bytes(12, b"proto3");
    file.into_bytes()
}
