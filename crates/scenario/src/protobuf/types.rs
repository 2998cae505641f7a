//! Types as their descriptors have them.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;

use prost_reflect::prost::Message;
use prost_reflect::prost_types::{FileDescriptorProto, FileDescriptorSet};
use prost_reflect::{
    DescriptorPool, DynamicMessage, FieldDescriptor, Kind, MessageDescriptor, MethodDescriptor,
    SerializeOptions, ServiceDescriptor,
};

use super::stencil::Stencil;
use super::wrong::{self, listed};
use super::{MethodName, WrongMessage};
use crate::diagnostic::did_you_mean;
use crate::template::Template;

/// Most bytes of a descriptor set, and of all that a server tells by reflection.
const DESCRIPTORS_BYTES_MAX: u64 = 64 << 20;
/// Most files that a server tells of.
const FILES_MAX: usize = 10_000;
/// How deep a message that is shown as an example goes.
const EXAMPLE_DEPTH: usize = 4;

/// Message types and services.
#[derive(Debug, Clone, PartialEq)]
pub struct Types(DescriptorPool);

impl Eq for Types {}

impl Types {
    /// Reads `.proto` files, which import each other from these folders; without any, from those in which they are.
    ///
    /// # Errors
    /// In words: what is not there, or is wrong in which line.
    pub fn of_protos(files: &[PathBuf], includes: &[PathBuf]) -> Result<Types, String> {
        let parent = |file: &PathBuf| file.parent().map_or_else(PathBuf::new, Path::to_owned);
        let mut folders = includes.to_vec();
        for folder in files.iter().map(parent) {
            if !folders.iter().any(|known| folder.starts_with(known)) {
                folders.push(folder);
            }
        }
        // the folder that files begin in stands for no name
        folders
            .iter_mut()
            .filter(|folder| folder.as_os_str().is_empty())
            .for_each(|folder| *folder = ".".into());
        let mut compiler = protox::Compiler::new(&folders).map_err(|error| error.to_string())?;
        for file in files {
            compiler.open_file(file).map_err(|error| told(&error, file))?;
        }
        Ok(Types(compiler.descriptor_pool()))
    }

    /// Reads a file with a descriptor set (`protoc --descriptor_set_out --include_imports`).
    ///
    /// # Errors
    /// In words why it cannot be read.
    pub fn of_descriptors(file: &Path) -> Result<Types, String> {
        let wrong = |error: &dyn std::fmt::Display| format!("cannot read {}: {error}", file.display());
        let bytes = fs::metadata(file).map_err(|error| wrong(&error))?.len();
        if bytes > DESCRIPTORS_BYTES_MAX {
            return Err(wrong(&format!(
                "it has {bytes} bytes, and at most {DESCRIPTORS_BYTES_MAX} are read"
            )));
        }
        let bytes = fs::read(file).map_err(|error| wrong(&error))?;
        let no_set =
            |error: &dyn std::fmt::Display| wrong(&format!("not a descriptor set with its imports: {error}"));
        let set = FileDescriptorSet::decode(&*bytes).map_err(|error| no_set(&error))?;
        Types::of_files(set.file).map_err(|error| no_set(&error))
    }

    /// What everybody has is there already, and may differ from what a file says of it.
    fn of_files(files: Vec<FileDescriptorProto>) -> Result<Types, prost_reflect::DescriptorError> {
        let mut pool = DescriptorPool::global();
        let own = files.into_iter().filter(|file| pool.get_file_by_name(file.name()).is_none());
        let own: Vec<_> = own.collect();
        pool.add_file_descriptor_protos(own)?;
        Ok(Types(pool))
    }

    /// The method of a name.
    ///
    /// # Errors
    /// In words: there is none, which is nearest, and which there are.
    pub fn method(&self, name: &MethodName) -> Result<Method, String> {
        let find = |name: &str| {
            let known = self.0.get_service_by_name(name);
            known.or_else(|| HEALTH_CHECK.get_service_by_name(name))
        };
        let methods = |service: &ServiceDescriptor| -> Vec<String> {
            service.methods().map(|method| method.name().to_owned()).collect()
        };
        let Some(service) = find(&name.service) else {
            // all of it may be a service
            if let Some(service) = find(&format!("{}.{}", name.service, name.method)) {
                let (name, methods) = (service.full_name(), listed(&methods(&service)));
                return Err(format!(
                    "{name} is a service; name one of its methods, as {name}/METHOD: {methods}"
                ));
            }
            let names = self.services();
            let hint = did_you_mean(&name.service, names.iter().map(String::as_str));
            return Err(format!("there is no service {} (there is {}){hint}", name.service, listed(&names)));
        };
        let found = service.methods().find(|method| method.name() == name.method);
        found.map(Method).ok_or_else(|| {
            let names = methods(&service);
            let hint = did_you_mean(&name.method, names.iter().map(String::as_str));
            format!(
                "the service {} has no method {} (it has {}){hint}",
                name.service,
                name.method,
                listed(&names)
            )
        })
    }

    /// Names of all services.
    pub fn services(&self) -> Vec<String> {
        self.0.services().map(|service| service.full_name().to_owned()).collect()
    }

    /// Names of all methods.
    pub fn methods(&self) -> Vec<MethodName> {
        let of = |method: MethodDescriptor| MethodName {
            service: method.parent_service().full_name().to_owned(),
            method: method.name().to_owned(),
        };
        self.0.services().flat_map(|service| service.methods().map(of).collect::<Vec<_>>()).collect()
    }
}

/// The health check, whose types nobody has to give (gRPC's doc/health-checking.md).
static HEALTH_CHECK: LazyLock<DescriptorPool> = LazyLock::new(|| {
    const SOURCE: &str = r#"syntax = "proto3";
        package grpc.health.v1;
        message HealthCheckRequest { string service = 1; }
        message HealthCheckResponse {
            enum ServingStatus { UNKNOWN = 0; SERVING = 1; NOT_SERVING = 2; SERVICE_UNKNOWN = 3; }
            .grpc.health.v1.HealthCheckResponse.ServingStatus status = 1;
        }
        service Health {
            rpc Check(.grpc.health.v1.HealthCheckRequest) returns (.grpc.health.v1.HealthCheckResponse);
            rpc Watch(.grpc.health.v1.HealthCheckRequest) returns (stream .grpc.health.v1.HealthCheckResponse);
        }"#;
    let mut pool = DescriptorPool::new();
    let file = protox::file::File::from_source("grpc/health/v1/health.proto", SOURCE).expect("it is valid");
    pool.add_file_descriptor_proto(file.into()).expect("its names are whole");
    pool
});

/// An error of the compiler: with its place, where it has one.
fn told(error: &protox::Error, file: &Path) -> String {
    if error.is_file_not_found() && !file.exists() {
        return format!("{} is not there", file.display());
    }
    // what it says in debug is file, line and column before the words
    let hint = if error.is_file_not_found() { "; name the folders of imports with `includes`" } else { "" };
    format!("{error:?}{hint}")
}

/// Files that a server tells of, until none is missing.
#[derive(Debug, Default)]
pub struct Reflected {
    files: Vec<FileDescriptorProto>,
    names: BTreeSet<String>,
    bytes: usize,
}

impl Reflected {
    /// Takes a file that the server told.
    ///
    /// # Errors
    /// In words why it cannot be.
    pub fn take(&mut self, bytes: &[u8]) -> Result<(), String> {
        self.bytes += bytes.len();
        if self.bytes as u64 > DESCRIPTORS_BYTES_MAX || self.files.len() >= FILES_MAX {
            return Err("the server's reflection tells too much".into());
        }
        let file = FileDescriptorProto::decode(bytes)
            .map_err(|error| format!("the server's reflection sent an invalid file: {error}"))?;
        if self.names.insert(file.name().to_owned()) {
            self.files.push(file);
        }
        Ok(())
    }

    /// A file that others import and that has not been told.
    pub fn missing(&self) -> Option<String> {
        let imported = self.files.iter().flat_map(|file| &file.dependency);
        let known = DescriptorPool::global();
        imported
            .filter(|name| !self.names.contains(*name))
            .find(|name| known.get_file_by_name(name).is_none())
            .cloned()
    }

    /// Whether a service is among them.
    pub fn has_service(&self, name: &str) -> bool {
        self.files.iter().any(|file| {
            let package = file.package();
            let own = if package.is_empty() {
                Some(name)
            } else {
                name.strip_prefix(package).and_then(|own| own.strip_prefix('.'))
            };
            own.is_some_and(|own| file.service.iter().any(|service| service.name() == own))
        })
    }

    /// The types.
    ///
    /// # Errors
    /// In words why they do not fit together.
    pub fn types(self) -> Result<Types, String> {
        Types::of_files(self.files)
            .map_err(|error| format!("what the server's reflection tells does not fit together: {error}"))
    }
}

/// A method, and its messages.
#[derive(Debug, Clone)]
pub struct Method(MethodDescriptor);

impl Method {
    /// Whether a call sends any number of messages.
    pub fn sends_many(&self) -> bool {
        self.0.is_client_streaming()
    }

    /// Whether a call is answered by any number of messages.
    pub fn answers_many(&self) -> bool {
        self.0.is_server_streaming()
    }

    /// The type of what is sent.
    pub fn sends(&self) -> String {
        self.0.input().full_name().to_owned()
    }

    /// Appends the bytes of a message that is written as JSON.
    ///
    /// # Errors
    /// In words what is wrong with it.
    pub fn encode(&self, json: &[u8], out: &mut Vec<u8>) -> Result<(), String> {
        let message = self.message(json).map_err(|wrong| wrong.words)?;
        // a vector has room for what is put into it
        message.encode(out).map_err(|error| format!("the message is too large: {error}"))
    }

    /// Whether it takes messages that are made of this JSON, whatever stands where a value varies.
    ///
    /// # Errors
    /// What is wrong, and where.
    pub fn check(&self, template: &Template) -> Result<(), WrongMessage> {
        let wrong = match template.as_literal() {
            Some(json) => self.message(json).err(),
            None => wrong::with_marks(template).and_then(|value| wrong::find(&self.0.input(), &value)),
        };
        wrong.map_or(Ok(()), Err)
    }

    fn message(&self, json: &[u8]) -> Result<DynamicMessage, WrongMessage> {
        let input = self.0.input();
        let mut deserializer = serde_json::Deserializer::from_slice(json);
        let message = DynamicMessage::deserialize(input.clone(), &mut deserializer)
            .and_then(|message| deserializer.end().map(|()| message));
        message.map_err(|error| {
            let value = serde_json::from_slice::<serde_json::Value>(json).ok();
            value.and_then(|value| wrong::find(&input, &value)).unwrap_or_else(|| {
                let text = error.to_string();
                let (text, _) = text.rsplit_once(" at line ").unwrap_or((&text, ""));
                let words = format!("the message is not a {}: {text}", input.full_name());
                WrongMessage { way: Vec::new(), words }
            })
        })
    }

    /// Appends a message of the answer as JSON; fields that have their default are there, too.
    ///
    /// # Errors
    /// In words what is wrong with its bytes.
    pub fn decode(&self, bytes: &[u8], json: &mut Vec<u8>) -> Result<(), String> {
        let output = self.0.output();
        let wrong =
            |error: &dyn std::fmt::Display| format!("the answer is not a {}: {error}", output.full_name());
        let message = DynamicMessage::decode(output.clone(), bytes).map_err(|error| wrong(&error))?;
        let options = SerializeOptions::new().skip_default_fields(false);
        message
            .serialize_with_options(&mut serde_json::Serializer::new(json), &options)
            .map_err(|error| wrong(&error))
    }

    /// How a message that is made of this JSON is written without going through it; none where that cannot be.
    pub fn stencil(&self, template: &Template) -> Option<Stencil> {
        Stencil::new(&self.0.input(), template)
    }

    /// A message to begin with, as JSON: each field with its default.
    pub fn example(&self) -> serde_json::Value {
        example(&self.0.input(), &mut Vec::new())
    }
}

/// An example of a message that is within others of these names.
fn example(message: &MessageDescriptor, within: &mut Vec<String>) -> serde_json::Value {
    use serde_json::{Value, json};
    match message.full_name() {
        "google.protobuf.Timestamp" => return json!("2025-01-01T00:00:00Z"),
        "google.protobuf.Duration" => return json!("1s"),
        "google.protobuf.FieldMask" => return json!(""),
        "google.protobuf.Empty" | "google.protobuf.Struct" | "google.protobuf.Any" => return json!({}),
        "google.protobuf.ListValue" => return json!([]),
        name if name.starts_with("google.protobuf.") => return Value::Null,
        _ => {}
    }
    within.push(message.full_name().to_owned());
    let mut fields = serde_json::Map::new();
    let mut chosen = BTreeSet::new();
    for field in message.fields() {
        // of a choice the first
        if let Some(of) = field.containing_oneof()
            && !chosen.insert(of.name().to_owned())
        {
            continue;
        }
        fields.insert(field.json_name().to_owned(), example_of(&field, within));
    }
    within.pop();
    Value::Object(fields)
}

fn example_of(field: &FieldDescriptor, within: &mut Vec<String>) -> serde_json::Value {
    use serde_json::json;
    if field.is_map() {
        return json!({});
    }
    let one = match field.kind() {
        // not deeper, and no type within itself
        Kind::Message(of)
            if within.len() > EXAMPLE_DEPTH || within.iter().any(|name| name == of.full_name()) =>
        {
            return if field.is_list() { json!([]) } else { serde_json::Value::Null };
        }
        Kind::Message(message) => example(&message, within),
        Kind::Enum(of) => json!(of.default_value().name()),
        Kind::Bool => json!(false),
        Kind::String | Kind::Bytes => json!(""),
        _ => json!(0),
    };
    if field.is_list() { json!([one]) } else { one }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::encoding::Encoding;
    use crate::expr::Expr;
    use crate::template::Part;

    const SHOP: &str = r#"
        syntax = "proto3";
        package shop;
        import "google/protobuf/timestamp.proto";
        enum Size { SMALL = 0; LARGE = 1; }
        message Item {
          string name = 1;
          int64 count = 2;
          Size size = 3;
          bytes picture = 4;
          map<string, int32> marks = 5;
          google.protobuf.Timestamp at = 6;
          oneof how { string card = 7; bool cash = 8; }
          repeated Item parts = 9;
        }
        service Cart {
          rpc Add(Item) returns (Item);
          rpc Watch(Item) returns (stream Item);
        }
    "#;

    fn shop() -> Types {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("shop.proto");
        fs::write(&file, SHOP).unwrap();
        Types::of_protos(&[file], &[]).unwrap()
    }

    fn method(types: &Types, name: &str) -> Result<Method, String> {
        types.method(&MethodName::read(name).unwrap())
    }

    #[test]
    fn messages_go_through_json_as_the_canonical_mapping_has_them() {
        let add = method(&shop(), "shop.Cart/Add").unwrap();
        assert_eq!((add.sends_many(), add.answers_many(), add.sends()), (false, false, "shop.Item".into()));
        let json = r#"{"name":"ibm","count":"9007199254740993","size":"LARGE","picture":"aGk=","marks":{"a":1},"at":"2025-01-01T00:00:00Z","cash":false,"parts":[]}"#;
        let mut bytes = Vec::new();
        add.encode(json.as_bytes(), &mut bytes).unwrap();
        let mut back = Vec::new();
        add.decode(&bytes, &mut back).unwrap();
        let value = |text: &[u8]| serde_json::from_slice::<serde_json::Value>(text).unwrap();
        assert_eq!(value(&back), value(json.as_bytes()));
        back.clear();
        add.decode(b"", &mut back).unwrap();
        assert_eq!(
            value(&back)["count"],
            "0",
            "what is left out is there: {}",
            String::from_utf8_lossy(&back)
        );
    }

    #[test]
    fn what_is_wrong_is_told_with_what_is_near() {
        let types = shop();
        assert!(method(&types, "shop.Cart/Watch").unwrap().answers_many());
        for (name, words) in [
            ("shop.Card/Add", "did you mean shop.Cart?"),
            ("shop.Cart/Ad", "did you mean Add?"),
            ("shop.Cart/Ad", "(it has Add, Watch)"),
            ("other.Thing/Do", "there is no service other.Thing (there is shop.Cart)"),
            ("shop.Cart", "shop.Cart is a service; name one of its methods, as shop.Cart/METHOD: Add, Watch"),
        ] {
            let error = method(&types, name).unwrap_err();
            assert!(error.contains(words), "{error}");
        }
        let add = method(&types, "shop.Cart/Add").unwrap();
        for (json, words) in [
            (r#"{"nmae": "x"}"#, "shop.Item has no field nmae; did you mean name?"),
            (r#"{"zzz": 1}"#, "shop.Item has no field zzz; it has name, count, size"),
            (
                r#"{"parts": [{}, {"nmae": 1}]}"#,
                "parts[1].nmae: shop.Item has no field nmae; did you mean name?",
            ),
            (r#"{"count": "x"}"#, r#"count of shop.Item takes int64 (a whole number), not "x""#),
            (r#"{"name": 3}"#, "name of shop.Item takes string (a text), not 3"),
            (
                r#"{"marks": {"a": 2147483648}}"#,
                "marks.a of shop.Item takes int32 (-2147483648 to 2147483647)",
            ),
            (r#"{"marks": 1}"#, "marks of shop.Item takes a mapping, not 1"),
            (r#"{"parts": {}}"#, "parts of shop.Item takes a list of shop.Item, not {}"),
            (r#"{"parts": [1]}"#, "parts[0] of shop.Item takes shop.Item, not 1"),
            (r#"{"size": "LARG"}"#, "takes shop.Size (SMALL, LARGE), not \"LARG\"; did you mean LARGE?"),
            (r#"{"picture": "%"}"#, "picture of shop.Item takes bytes (a text in base64)"),
            (
                r#"{"at": "noon"}"#,
                "google.protobuf.Timestamp (a time like 2025-01-02T03:04:05Z), not \"noon\"",
            ),
            (
                r#"{"card": "a", "cash": true}"#,
                "card and cash are both in the oneof `how` of shop.Item; give one",
            ),
            (r#"[]"#, "the message is not a shop.Item"),
            (r#"{"name": "x"} x"#, "the message is not a shop.Item"),
        ] {
            let error = add.encode(json.as_bytes(), &mut Vec::new()).unwrap_err();
            assert!(error.contains(words), "{error}");
        }
        assert!(
            add.decode(b"\x0a\xff", &mut Vec::new()).unwrap_err().contains("the answer is not a shop.Item")
        );
    }

    /// Text and value that vary, in fields, lists and keys.
    #[test]
    fn a_message_that_varies_is_checked_but_for_what_varies() {
        let add = method(&shop(), "shop.Cart/Add").unwrap();
        let check = |before: &str, encoding: Encoding, behind: &str| {
            let mut template = Template::literal(before);
            template.parts.push(Part::Hole(Expr::variable(0), encoding));
            template.push_literal(behind.as_bytes());
            add.check(&template)
        };
        for (before, encoding, behind) in [
            (r#"{"count": "#, Encoding::JsonValue, "}"),
            (r#"{"size": ""#, Encoding::JsonText, r#"GE"}"#),
            (r#"{"marks": {"a": "#, Encoding::JsonValue, "}}"),
            (r#"{"marks": {""#, Encoding::JsonText, r#"": 1}}"#),
            (r#"{"parts": ["#, Encoding::JsonValue, r#", {"cash": true}]}"#),
            (r#"{"card": "#, Encoding::JsonValue, r#", "cash": true}"#),
            ("", Encoding::JsonValue, ""),
        ] {
            assert_eq!(check(before, encoding, behind), Ok(()), "{before}");
        }
        let wrong = check(r#"{"name": "a "#, Encoding::JsonText, r#"", "parts": [{}, {"count": "x"}]}"#);
        let wrong = wrong.unwrap_err();
        assert_eq!(wrong.way, ["parts", "1", "count"]);
        assert!(wrong.words.starts_with("parts[1].count of shop.Item takes int64"), "{wrong}");
    }

    #[test]
    fn files_that_are_wrong_are_told_with_their_place() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("a.proto");
        let error = Types::of_protos(std::slice::from_ref(&file), &[]).unwrap_err();
        assert!(error.contains("a.proto"), "{error}");
        fs::write(&file, "syntax = \"proto3\";\nmessage A { strin name = 1; }\n").unwrap();
        let error = Types::of_protos(std::slice::from_ref(&file), &[]).unwrap_err();
        assert!(error.contains("a.proto:2") && error.contains("strin"), "{error}");
        fs::write(&file, "syntax = \"proto3\";\nimport \"b/c.proto\";\n").unwrap();
        let error = Types::of_protos(std::slice::from_ref(&file), &[]).unwrap_err();
        assert!(error.contains("a.proto:2") && error.contains("b/c.proto"), "{error}");
        assert!(error.contains("name the folders of imports with `includes`"), "{error}");
        fs::write(&file, b"\xff").unwrap();
        assert!(Types::of_descriptors(&file).unwrap_err().contains("not a descriptor set"));
    }

    #[test]
    fn an_example_has_each_field_and_is_a_message() {
        let add = method(&shop(), "shop.Cart/Add").unwrap();
        let example = add.example();
        assert_eq!((&example["size"], &example["count"]), (&"SMALL".into(), &0.into()));
        assert_eq!((example.get("card").is_some(), example.get("cash").is_some()), (true, false));
        add.encode(example.to_string().as_bytes(), &mut Vec::new()).unwrap();
    }

    #[test]
    fn what_a_server_tells_is_asked_for_until_nothing_is_missing() {
        let types = shop();
        let file = types.0.get_file_by_name("shop.proto").unwrap();
        let mut reflected = Reflected::default();
        reflected.take(&file.encode_to_vec()).unwrap();
        assert_eq!(reflected.missing(), None, "what everybody has is not asked for");
        assert!(reflected.has_service("shop.Cart") && !reflected.has_service("Cart"));
        assert_eq!(reflected.types().unwrap().methods(), types.methods());
        let mut reflected = Reflected::default();
        let own = FileDescriptorProto {
            name: Some("b.proto".into()),
            dependency: vec!["a.proto".into()],
            ..Default::default()
        };
        reflected.take(&own.encode_to_vec()).unwrap();
        assert_eq!(reflected.missing().as_deref(), Some("a.proto"));
        assert!(reflected.types().is_err());
    }
}
