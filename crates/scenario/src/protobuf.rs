//! Message types of gRPC: where they come from, and JSON to bytes and back, by the canonical mapping.
//!
//! Without the feature `grpc` there are none, and whatever asks for them is told so.

#[cfg(feature = "grpc")]
mod stencil;
#[cfg_attr(not(feature = "grpc"), path = "protobuf/absent.rs")]
mod types;
#[cfg(feature = "grpc")]
mod wrong;

#[cfg(feature = "grpc")]
pub use stencil::Stencil;
#[cfg(not(feature = "grpc"))]
pub use types::Stencil;
pub use types::{Method, Reflected, Types};

/// A method by its name: `shop.Cart/Add`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub struct MethodName {
    /// `shop.Cart`.
    pub service: String,
    /// `Add`.
    pub method: String,
}

impl MethodName {
    /// Reads `shop.Cart/Add`, `/shop.Cart/Add` or `shop.Cart.Add`.
    pub fn read(text: &str) -> Option<MethodName> {
        let text = text.strip_prefix('/').unwrap_or(text);
        let (service, method) = text.split_once('/').or_else(|| text.rsplit_once('.'))?;
        let is_name = |name: &str| {
            !name.is_empty()
                && !name.starts_with('.')
                && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'.'))
        };
        let is_one = is_name(service) && is_name(method) && !method.contains('.');
        is_one.then(|| MethodName { service: service.to_owned(), method: method.to_owned() })
    }

    /// The path that it is called by.
    pub fn path(&self) -> String {
        format!("/{self}")
    }
}

impl std::fmt::Display for MethodName {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}/{}", self.service, self.method)
    }
}

/// Why a message cannot be sent.
#[derive(Debug, Clone, Default, PartialEq, Eq, thiserror::Error)]
#[error("{words}")]
pub struct WrongMessage {
    /// The way to what is wrong: names of fields, keys of maps, and places in lists from 0.
    pub way: Vec<String>,
    /// What is wrong, with the way.
    pub words: String,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_method_has_a_service() {
        for text in ["shop.Cart/Add", "/shop.Cart/Add", "shop.Cart.Add"] {
            assert_eq!(
                MethodName::read(text).map(|name| name.path()),
                Some("/shop.Cart/Add".into()),
                "{text}"
            );
        }
        for text in ["", "Add", "/Add", "shop.Cart/", "shop.Cart/Add/More", "shop Cart/Add", ".Add"] {
            assert_eq!(MethodName::read(text), None, "{text}");
        }
    }
}
