//! What stands in for types in a build without gRPC.

use std::ops::Range;
use std::path::{Path, PathBuf};

use super::{MethodName, WrongMessage};
use crate::template::Template;

const ABSENT: &str = "this program was built without gRPC (the cargo feature `grpc`)";

/// Message types and services: none.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Types(());

impl Types {
    /// Reads nothing.
    ///
    /// # Errors
    /// Always.
    pub fn of_protos(_: &[PathBuf], _: &[PathBuf]) -> Result<Types, String> {
        Err(ABSENT.into())
    }

    /// Reads nothing.
    ///
    /// # Errors
    /// Always.
    pub fn of_descriptors(_: &Path) -> Result<Types, String> {
        Err(ABSENT.into())
    }

    /// There is none.
    ///
    /// # Errors
    /// Always.
    pub fn method(&self, _: &MethodName) -> Result<Method, String> {
        Err(ABSENT.into())
    }

    /// There is none.
    pub fn services(&self) -> Vec<String> {
        Vec::new()
    }

    /// There is none.
    pub fn methods(&self) -> Vec<MethodName> {
        Vec::new()
    }
}

/// Files that a server tells of: none.
#[derive(Debug, Default)]
pub struct Reflected(());

impl Reflected {
    /// Takes nothing.
    ///
    /// # Errors
    /// Always.
    pub fn take(&mut self, _: &[u8]) -> Result<(), String> {
        Err(ABSENT.into())
    }

    /// None.
    pub fn missing(&self) -> Option<String> {
        None
    }

    /// No.
    pub fn has_service(&self, _: &str) -> bool {
        false
    }

    /// There are none.
    ///
    /// # Errors
    /// Always.
    pub fn types(self) -> Result<Types, String> {
        Err(ABSENT.into())
    }
}

/// How a message is written: there is none.
#[derive(Debug)]
pub struct Stencil(());

impl Stencil {
    /// Writes nothing.
    pub fn write(&self, _: &[u8], _: &[Range<usize>], _: &mut Vec<u8>) -> bool {
        false
    }
}

/// A method: there is none.
#[derive(Debug, Clone)]
pub struct Method(());

impl Method {
    /// Whether a call sends any number of messages.
    pub fn sends_many(&self) -> bool {
        false
    }

    /// Whether a call is answered by any number of messages.
    pub fn answers_many(&self) -> bool {
        false
    }

    /// The type of what is sent.
    pub fn sends(&self) -> String {
        String::new()
    }

    /// Writes nothing.
    ///
    /// # Errors
    /// Always.
    pub fn encode(&self, _: &[u8], _: &mut Vec<u8>) -> Result<(), String> {
        Err(ABSENT.into())
    }

    /// Checks nothing.
    ///
    /// # Errors
    /// Always.
    pub fn check(&self, _: &Template) -> Result<(), WrongMessage> {
        Err(WrongMessage { way: Vec::new(), words: ABSENT.into() })
    }

    /// Reads nothing.
    ///
    /// # Errors
    /// Always.
    pub fn decode(&self, _: &[u8], _: &mut Vec<u8>) -> Result<(), String> {
        Err(ABSENT.into())
    }

    /// There is none.
    pub fn stencil(&self, _: &Template) -> Option<Stencil> {
        None
    }

    /// There is none.
    pub fn example(&self) -> serde_json::Value {
        serde_json::Value::Null
    }
}
