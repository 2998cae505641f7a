//! Bodies of forms, as curl's `-F` and `--data-urlencode` make them.

use crate::curl::file_of;
use crate::percent;

/// What curl takes a file for by the end of its name.
const TYPES: [(&str, &str); 10] = [
    (".gif", "image/gif"),
    (".jpg", "image/jpeg"),
    (".jpeg", "image/jpeg"),
    (".png", "image/png"),
    (".svg", "image/svg+xml"),
    (".txt", "text/plain"),
    (".htm", "text/html"),
    (".html", "text/html"),
    (".pdf", "application/pdf"),
    (".xml", "application/xml"),
];

/// A field of a form with several parts.
#[derive(Debug, Clone, PartialEq)]
pub struct Field {
    name: String,
    content: Vec<u8>,
    file: Option<String>,
    content_type: Option<String>,
}

impl Field {
    /// `NAME=VALUE`, `NAME=@FILE` or `NAME=<FILE`, with `;type=…` and `;filename=…` behind. Quotes around a value or a path are
    /// not part of it.
    pub fn read(text: &str) -> Result<Field, String> {
        let (name, value) = split(text)?;
        let kind = value.chars().next().filter(|kind| ['@', '<'].contains(kind));
        let (content, rest) = first_part(&value[usize::from(kind.is_some())..]);
        let mut field = Field {
            name: name.to_owned(),
            content: if kind.is_some() { file_of(&content)? } else { content.clone().into_bytes() },
            file: (kind == Some('@')).then(|| content.rsplit('/').next().unwrap_or(&content).to_owned()),
            content_type: None,
        };
        for part in rest.split(';').map(str::trim).filter(|part| !part.is_empty()) {
            match part.split_once('=') {
                Some(("type", value)) => field.content_type = Some(value.trim_matches('"').to_owned()),
                Some(("filename", value)) => field.file = Some(value.trim_matches('"').to_owned()),
                Some(("charset" | "boundary", _)) if field.content_type.is_some() => {
                    field.content_type.iter_mut().for_each(|kind| *kind += &format!(";{part}"));
                }
                _ => {
                    return Err(format!(
                        "-F {name}=…: unknown part `{part}` after ;: write type=… or filename=…, or quote the value: -F '{name}=\"…\"'"
                    ));
                }
            }
        }
        if kind == Some('@') && field.content_type.is_none() {
            let named = field.file.as_deref().and_then(type_of).or_else(|| type_of(&content));
            field.content_type = Some(named.unwrap_or("application/octet-stream").to_owned());
        }
        Ok(field)
    }

    /// `NAME=VALUE`, whatever the value looks like.
    pub fn text(text: &str) -> Result<Field, String> {
        let (name, value) = split(text)?;
        Ok(Field {
            name: name.to_owned(),
            content: value.as_bytes().to_vec(),
            file: None,
            content_type: None,
        })
    }
}

/// The same and more, as clients take it that know more of them.
pub(crate) fn media_type(name: &str) -> Option<&'static str> {
    const MORE: [(&str, &str); 8] = [
        (".json", "application/json"),
        (".csv", "text/csv"),
        (".zip", "application/zip"),
        (".gz", "application/gzip"),
        (".css", "text/css"),
        (".webp", "image/webp"),
        (".mp4", "video/mp4"),
        (".mp3", "audio/mpeg"),
    ];
    let small = name.to_ascii_lowercase();
    type_of(name).or_else(|| MORE.iter().find(|(end, _)| small.ends_with(end)).map(|(_, kind)| *kind))
}

/// The type of a file of this name.
fn type_of(name: &str) -> Option<&'static str> {
    let name = name.to_ascii_lowercase();
    TYPES.iter().find(|(end, _)| name.ends_with(end)).map(|(_, content_type)| *content_type)
}

/// A value up to the first `;`, or what stands in quotes; and what follows.
fn first_part(text: &str) -> (String, &str) {
    let Some(quoted) = text.strip_prefix('"') else {
        let (value, rest) = text.split_once(';').unwrap_or((text, ""));
        return (value.to_owned(), rest);
    };
    let (mut value, mut escaped) = (String::new(), false);
    for (at, c) in quoted.char_indices() {
        match c {
            '"' | '\\' if escaped => value.push(c),
            '\\' if quoted[at + 1..].starts_with(['"', '\\']) => {
                escaped = true;
                continue;
            }
            '"' => return (value, &quoted[at + 1..]),
            other => value.push(other),
        }
        escaped = false;
    }
    // no second one: it is part of the value
    let (value, rest) = text.split_once(';').unwrap_or((text, ""));
    (value.to_owned(), rest)
}

fn split(text: &str) -> Result<(&str, &str), String> {
    text.split_once('=').ok_or_else(|| format!("-F {text} has no value; write it as NAME=VALUE"))
}

/// The content type and the body of a form.
pub fn multipart(fields: &[Field]) -> (String, Vec<u8>) {
    let is_within = |boundary: &str| {
        let bytes = boundary.as_bytes();
        fields.iter().any(|field| field.content.windows(bytes.len()).any(|at| at == bytes))
    };
    // the first that no field has in it
    let mut boundaries = (0..u32::MAX).map(|number| format!("------------------------tidemark{number:08x}"));
    let boundary = boundaries.find(|boundary| !is_within(boundary)).unwrap_or_default();
    let quoted = |text: &str| text.replace('"', "%22").replace('\r', "%0D").replace('\n', "%0A");
    let mut body = Vec::new();
    for field in fields {
        let mut head = format!("--{boundary}\r\nContent-Disposition: form-data");
        if !field.name.is_empty() {
            head += &format!("; name=\"{}\"", quoted(&field.name));
        }
        if let Some(file) = &field.file {
            head += &format!("; filename=\"{}\"", quoted(file));
        }
        head += "\r\n";
        if let Some(content_type) = &field.content_type {
            head += &format!("Content-Type: {content_type}\r\n");
        }
        body.extend_from_slice(head.as_bytes());
        body.extend_from_slice(b"\r\n");
        body.extend_from_slice(&field.content);
        body.extend_from_slice(b"\r\n");
    }
    body.extend_from_slice(format!("--{boundary}--\r\n").as_bytes());
    (format!("multipart/form-data; boundary={boundary}"), body)
}

/// A value, or what is in the file that stands behind an `@`.
pub fn value_or_file(value: &str) -> Result<Vec<u8>, String> {
    value.strip_prefix('@').map_or_else(|| Ok(value.as_bytes().to_vec()), file_of)
}

/// `VALUE`, `=VALUE`, `NAME=VALUE`, `@FILE` or `NAME@FILE`, the value percent-encoded, with `+` for a space.
pub fn encoded(text: &str) -> Result<Vec<u8>, String> {
    let (name, value) = match text.find(['=', '@']) {
        None => ("", text.as_bytes().to_vec()),
        Some(at) if text[at..].starts_with('=') => (&text[..at], text.as_bytes()[at + 1..].to_vec()),
        Some(at) => (&text[..at], file_of(&text[at + 1..])?),
    };
    let mut out = String::new();
    if !name.is_empty() {
        out = format!("{name}=");
    }
    out += &percent::encoded(&value).replace("%20", "+");
    Ok(out.into_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_form_has_its_files_and_a_boundary_that_is_in_none() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("a.png");
        std::fs::write(&file, b"\x89------------------------tidemark00000000").unwrap();
        let field = Field::read(&format!("picture=@{};type=image/png", file.display())).unwrap();
        let fields = [
            field,
            Field::read(r#"name="x;\"y\"""#).unwrap(),
            Field::read("json={};type=application/json").unwrap(),
            Field::read(&format!("note=<{}", file.display())).unwrap(),
        ];
        let (content_type, body) = multipart(&fields);
        assert!(content_type.ends_with("tidemark00000001"), "{content_type}");
        let body = String::from_utf8_lossy(&body);
        for part in [
            "name=\"picture\"; filename=\"a.png\"\r\nContent-Type: image/png\r\n\r\n",
            "name=\"name\"\r\n\r\nx;\"y\"\r\n",
            "name=\"json\"\r\nContent-Type: application/json\r\n\r\n{}\r\n",
            "name=\"note\"\r\n\r\n\u{fffd}---",
            "tidemark00000001--\r\n",
        ] {
            assert!(body.contains(part), "{part:?}: {body}");
        }
        assert!(Field::read("alone").unwrap_err().contains("NAME=VALUE"));
        assert!(Field::read("a=b;c").unwrap_err().contains("-F 'a=\"…\"'"));
    }

    #[test]
    fn values_are_encoded() {
        let of = |text: &str| String::from_utf8(encoded(text).unwrap()).unwrap();
        assert_eq!([of("a b"), of("=a&b"), of("n=ä/="), of("n=")], ["a+b", "a%26b", "n=%C3%A4%2F%3D", "n="]);
    }
}
