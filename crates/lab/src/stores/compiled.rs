//! Products whose jars come without a program: a small one is compiled before the first start.

use std::fs;
use std::io;

use tidemark_scenario::plan::Store;

use super::jars::Jars;
use super::java::Needs;
use super::launcher::{Fetch, NodeSetup, Program, text, with_jars};
use crate::error::LabError;

/// A product's jars, and the program that starts a node of it.
pub struct Compiled {
    /// The jars.
    pub jars: Jars,
    /// The least version of Java that they run on.
    pub java: u32,
    /// The program's class.
    pub class: &'static str,
    /// Its source.
    pub source: &'static str,
    /// What Java is told for every node.
    pub options: &'static [&'static str],
}

impl Compiled {
    /// The jars, fetched where they are not there yet, and a Java for them.
    ///
    /// # Errors
    /// Where Java is missing, or the jars cannot be fetched.
    pub fn program(&self, _: &Store, fetch: &mut Fetch<'_>) -> Result<Program, LabError> {
        with_jars(self.jars, Needs::CompilerFrom(self.java), fetch)
    }

    /// Makes a node's folders, and writes the source of its program.
    pub fn write(&self, node: &NodeSetup<'_>) -> io::Result<()> {
        fs::create_dir_all(&node.configuration)?;
        fs::create_dir_all(node.data.join("tmp"))?;
        fs::write(node.configuration.join(format!("{}.java", self.class)), self.source)
    }

    /// The command that compiles it; none without Java.
    pub fn compile(&self, node: &NodeSetup<'_>) -> Option<Vec<String>> {
        let compiler = node.program.java.as_ref()?.compiler();
        let source = node.configuration.join(format!("{}.java", self.class));
        let (class_path, to) = (class_path(node), text(&node.configuration));
        let words =
            [&text(&compiler), "-nowarn", "-proc:none", "-cp", &class_path, "-d", &to, &text(&source)];
        Some(words.map(str::to_owned).into())
    }

    /// The command that starts it, with options of this node's, up to the words that it takes.
    pub fn command(&self, node: &NodeSetup<'_>, own: &[String]) -> Vec<String> {
        let mut words = vec![
            node.program.java(),
            format!("-Xmx{}M", node.store.heap_bytes >> 20),
            format!("-XX:ErrorFile={}/java-error.log", text(&node.configuration)),
            format!("-Djava.io.tmpdir={}", text(&node.data.join("tmp"))),
        ];
        words.extend_from_slice(own);
        words.extend(self.options.iter().map(|option| (*option).to_owned()));
        words.extend(["-cp".into(), class_path(node), self.class.into()]);
        words
    }
}

/// The class path of a node: its configuration, then its jars.
fn class_path(node: &NodeSetup<'_>) -> String {
    format!("{}:{}/*", text(&node.configuration), text(&node.program.folder))
}
