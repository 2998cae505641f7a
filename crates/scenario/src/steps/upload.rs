//! Bodies from files, and forms of several parts (RFC 7578).

use crate::compile::Session;
use crate::grammar::Rule;
use crate::grammar::Scalar::Text;
use crate::grammar::Shape::Scalar;
use crate::grammar::kinds;
use crate::grammar::record::{Kind, record};
use crate::plan::{FileBody, UploadPiece};
use crate::template::{self, Encoding};
use crate::yaml::Node;

/// Files from this size on are read while they are sent; smaller ones are held in memory.
pub(super) const STREAMED_BYTES: u64 = 1 << 20;

/// The type of a file of which nothing is said.
pub(super) const OF_FILE: &str = "application/octet-stream";
/// Stands between the parts of a form, and in none of them by any likelihood.
const BOUNDARY: &str = "------------------------tidemark-b3f1d07c52e94a68";
pub(super) const OF_PARTS: &str =
    "multipart/form-data; boundary=------------------------tidemark-b3f1d07c52e94a68";

record! {
    /// What a file holds. One of 1 MiB or more is read while it is sent, and never in memory as a whole.
    pub(super) static FILE_BODY("fileBody", "a body from a file") {
        "file" (required): Scalar(Text) => "The file, relative to the scenario.",
    }
}

record! {
    /// A part of a form: a file or a text. Short: the text.
    pub(super) struct FormPart("part", "a part of a form", Rule::OneOf(&["file", "text"])) {
        file: kinds::Text = "A file, relative to the scenario; large ones are read while they are sent.",
        text: kinds::Template = "A text.",
        name: kinds::Text = "The file's name as the server is told it; its own where nothing is said.",
        of_type: kinds::Text as "type" = "Its content type; of a file application/octet-stream where nothing is said.",
    }
}

/// A body in the making: texts and files, one behind the other.
#[derive(Default)]
pub(super) struct Pieces {
    done: Vec<UploadPiece>,
    /// What stands behind the last file.
    text: template::Template,
}

impl Pieces {
    fn push_text(&mut self) {
        let text = std::mem::take(&mut self.text);
        if !text.parts.is_empty() {
            self.done.push(UploadPiece::Text(text));
        }
    }

    fn push_file(&mut self, file: FileBody) {
        self.push_text();
        self.done.push(UploadPiece::File(file));
    }

    /// The body, where no file in it is to be read while it is sent; else the pieces.
    pub(super) fn into_body(mut self) -> (Option<template::Template>, Vec<UploadPiece>) {
        if self.done.is_empty() {
            return (Some(self.text), self.done);
        }
        self.push_text();
        (None, self.done)
    }
}

impl Session<'_, '_> {
    /// A body that is a file.
    pub(super) fn file_body(&mut self, of: &Node) -> Pieces {
        let mut pieces = Pieces::default();
        if let Some(file) = of.get("file") {
            self.push_file(file, &mut pieces);
        }
        pieces
    }

    /// A form of parts.
    pub(super) fn multipart(&mut self, fields: &Node) -> Pieces {
        let mut pieces = Pieces::default();
        for (field, value) in fields.entries() {
            let Some(field) = self.reader.text(field) else { continue };
            let Some(said) = FormPart::read(value, self.reader) else { continue };
            let own_name = said.file.value.as_deref().and_then(|path| path.rsplit(['/', '\\']).next());
            let name = said.name.value.as_deref().or(own_name);
            let content_type = said.of_type.value.as_deref().or(said.file.node().map(|_| OF_FILE));
            pieces.text.push_literal(&part_head(&field, name, content_type));
            match said.file.node() {
                Some(file) => self.push_file(file, &mut pieces),
                None => {
                    let text = self.template(said.text.value.unwrap_or(value), Encoding::Raw);
                    pieces.text.append(text);
                }
            }
            pieces.text.push_literal(b"\r\n");
        }
        pieces.text.push_literal(format!("--{BOUNDARY}--\r\n").as_bytes());
        pieces
    }

    fn push_file(&self, node: &Node, pieces: &mut Pieces) {
        let Some(name) = self.reader.text(node) else { return };
        let settings = self.reader.settings;
        let pushed = FileBody::open(&settings.path_of(&name)).and_then(|file| {
            match file.bytes < STREAMED_BYTES {
                true => pieces.text.push_literal(&settings.file(&name)?),
                false => pieces.push_file(file),
            }
            Ok(())
        });
        if let Err(message) = pushed {
            self.reader.sink.error(node, message);
        }
    }
}

/// What stands in front of a part, as browsers write it.
fn part_head(field: &str, file_name: Option<&str>, content_type: Option<&str>) -> Vec<u8> {
    let quoted = |text: &str| text.replace('"', "%22").replace('\r', "%0D").replace('\n', "%0A");
    let mut head = format!("--{BOUNDARY}\r\nContent-Disposition: form-data; name=\"{}\"", quoted(field));
    if let Some(name) = file_name {
        head += &format!("; filename=\"{}\"", quoted(name));
    }
    let mut head = head.into_bytes();
    if let Some(content_type) = content_type {
        head.extend_from_slice(b"\r\nContent-Type: ");
        Encoding::Header.write_text(content_type.as_bytes(), &mut head);
    }
    head.extend_from_slice(b"\r\n\r\n");
    head
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_part_cannot_break_out_of_its_head() {
        let head = part_head("a\"b", Some("c\r\nd"), Some("text/plain\r\nX: y"));
        let wanted = format!(
            "--{BOUNDARY}\r\nContent-Disposition: form-data; name=\"a%22b\"; filename=\"c%0D%0Ad\"\r\n\
             Content-Type: text/plainX: y\r\n\r\n"
        );
        assert_eq!(String::from_utf8(head).unwrap(), wanted);
        assert_eq!(OF_PARTS, format!("multipart/form-data; boundary={BOUNDARY}"));
    }
}
