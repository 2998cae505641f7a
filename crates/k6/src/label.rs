//! What requests are counted as.

use url::Url;

use crate::requests::is_grpc;

/// What a request of this URL is counted as that has no name of its own: of gRPC its method, as `shop.Cart/Add`.
pub(crate) fn label_of(verb: &str, url: &Url) -> String {
    match is_grpc(url.as_str()) {
        true => url.path().trim_start_matches('/').to_owned(),
        false => label(verb, url.path()),
    }
}

/// What a request is counted as that has no name of its own: its method and path, with numbers and ids left out.
fn label(method: &str, path: &str) -> String {
    let is_id = |part: &str| {
        let digits = part.bytes().filter(u8::is_ascii_digit).count();
        let is_hex = part.bytes().all(|byte| byte.is_ascii_hexdigit() || byte == b'-');
        !part.is_empty() && (digits == part.len() || (is_hex && part.len() >= 16))
    };
    let parts: Vec<&str> = path.split('/').map(|part| if is_id(part) { "{}" } else { part }).collect();
    let mut label = format!("{method} {}", parts.join("/"));
    if label.len() > 120 {
        let cut = (0..=120).rev().find(|at| label.is_char_boundary(*at)).unwrap_or(0);
        label.truncate(cut);
    }
    label
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_not_in_labels() {
        for (path, is) in [
            ("/users/17/orders", "GET /users/{}/orders"),
            ("/", "GET /"),
            ("/a1/b", "GET /a1/b"),
            ("/f47ac10b-58cc-4372-a567-0e02b2c3d479", "GET /{}"),
        ] {
            assert_eq!(label("GET", path), is);
        }
    }
}
