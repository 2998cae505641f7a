//! The few forms of Protocol Buffers that OTLP needs, written: <https://protobuf.dev/programming-guides/encoding/>.

const VARINT: u64 = 0;
const FIXED_64: u64 = 1;
const LENGTH: u64 = 2;

/// A message that is being written, field by field.
#[derive(Debug, Default)]
pub struct Message(Vec<u8>);

impl Message {
    /// Its bytes.
    pub fn into_bytes(self) -> Vec<u8> {
        self.0
    }

    fn key(&mut self, field: u64, form: u64) {
        varint(&mut self.0, field << 3 | form);
    }

    /// A field of type `uint64`, `bool` or an enumeration.
    pub fn uint(&mut self, field: u64, value: u64) {
        self.key(field, VARINT);
        varint(&mut self.0, value);
    }

    /// A field of type `sint32`.
    pub fn sint(&mut self, field: u64, value: i32) {
        let value = i64::from(value);
        self.uint(field, ((value << 1) ^ (value >> 63)) as u64);
    }

    /// A field of type `fixed64` or `sfixed64`.
    pub fn fixed(&mut self, field: u64, value: u64) {
        self.key(field, FIXED_64);
        self.0.extend_from_slice(&value.to_le_bytes());
    }

    /// A field of type `double`.
    pub fn double(&mut self, field: u64, value: f64) {
        self.fixed(field, value.to_bits());
    }

    /// A field of type `string` or `bytes`.
    pub fn bytes(&mut self, field: u64, value: &[u8]) {
        self.key(field, LENGTH);
        varint(&mut self.0, value.len() as u64);
        self.0.extend_from_slice(value);
    }

    /// A field that is a message.
    pub fn message(&mut self, field: u64, write: impl FnOnce(&mut Message)) {
        let mut inner = Message::default();
        write(&mut inner);
        self.bytes(field, &inner.0);
    }

    /// A field of type `repeated uint64`, packed.
    pub fn packed(&mut self, field: u64, values: &[u64]) {
        let mut inner = Vec::with_capacity(values.len());
        values.iter().for_each(|value| varint(&mut inner, *value));
        self.bytes(field, &inner);
    }
}

fn varint(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_written_as_the_documentation_of_the_format_has_them() {
        let mut message = Message::default();
        message.uint(1, 150);
        assert_eq!(message.into_bytes(), [0x08, 0x96, 0x01]);
        let mut message = Message::default();
        message.bytes(2, b"testing");
        assert_eq!(message.into_bytes(), b"\x12\x07testing");
        let mut message = Message::default();
        message.message(3, |inner| inner.uint(1, 150));
        message.packed(6, &[3, 270, 86_942]);
        assert_eq!(message.into_bytes(), [0x1a, 3, 8, 0x96, 1, 0x32, 6, 3, 0x8e, 2, 0x9e, 0xa7, 5]);
        for (value, byte) in [(0, 0), (-1, 1), (1, 2), (-2, 3)] {
            let mut message = Message::default();
            message.sint(1, value);
            assert_eq!(message.into_bytes(), [8, byte]);
        }
        let mut message = Message::default();
        message.double(1, 1.0);
        assert_eq!(message.into_bytes(), [9, 0, 0, 0, 0, 0, 0, 0xf0, 0x3f]);
    }
}
