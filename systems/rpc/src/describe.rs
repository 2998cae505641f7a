//! What a service says about itself; `#[service]` writes it.

use schemars::{JsonSchema, Schema, SchemaGenerator};

/// A service.
#[derive(Debug)]
pub struct Description {
    /// Its name, in front of its methods' names.
    pub name: &'static str,
    /// What it is for.
    pub doc: &'static str,
    /// Its methods, in order.
    pub methods: &'static [Method],
}

/// A method of a service.
#[derive(Debug)]
pub struct Method {
    /// Its name.
    pub name: &'static str,
    /// What it does.
    pub doc: &'static str,
    /// How it is called as REST, if it can be.
    pub route: Option<Route>,
    /// What it takes, in order.
    pub arguments: &'static [Argument],
    /// The schema of what it returns.
    pub returns: fn(&mut SchemaGenerator) -> Schema,
}

/// An argument of a method.
#[derive(Debug)]
pub struct Argument {
    /// Its name.
    pub name: &'static str,
    /// Where REST has it.
    pub place: Place,
    /// Whether it can be left out.
    pub required: bool,
    /// Its schema.
    pub schema: fn(&mut SchemaGenerator) -> Schema,
}

/// Where a REST request has an argument.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Place {
    /// As a part of its path.
    Path,
    /// As a field of its query.
    Query,
    /// As its body.
    Body,
}

/// A REST route.
#[derive(Debug, Clone, Copy)]
pub struct Route {
    /// Its method in HTTP.
    pub verb: Verb,
    /// Its path, with `{argument}` for parts that are arguments.
    pub path: &'static str,
}

/// A method of HTTP.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Verb {
    /// GET, which answers HEAD too.
    Get,
    /// PUT.
    Put,
    /// POST.
    Post,
    /// PATCH.
    Patch,
    /// DELETE.
    Delete,
}

impl Verb {
    /// As HTTP writes it.
    pub fn as_str(self) -> &'static str {
        match self {
            Verb::Get => "GET",
            Verb::Put => "PUT",
            Verb::Post => "POST",
            Verb::Patch => "PATCH",
            Verb::Delete => "DELETE",
        }
    }
}

/// The schema of a type, for descriptions.
pub fn schema_of<T: JsonSchema>(generator: &mut SchemaGenerator) -> Schema {
    generator.subschema_for::<T>()
}
