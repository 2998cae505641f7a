//! What a comparison does to a system: another command in its place, or the same from another folder.

use std::path::Path;

use crate::compile::{READY_WITHIN, split_command};
use crate::plan::{PORT, Plan, System, SystemOrigin};

/// The words of a command, quoted as for a shell.
///
/// # Errors
/// In words: a quote is not closed, only a shell could run it, or there is no word.
pub fn command_words(text: &str) -> Result<Vec<String>, String> {
    let words = split_command(text)?;
    if words.first().is_none_or(String::is_empty) {
        return Err("this command is empty".into());
    }
    Ok(words)
}

impl Plan {
    /// Starts this command in place of the system. What a system that is a command has around it stays (`env`, `cwd`,
    /// `before`, when it is ready); nothing stays of another system but where it takes calls.
    ///
    /// # Errors
    /// In words: it is no command, nobody tells it where to listen, or the system is one of the scenario's stores.
    pub fn start_instead(&mut self, command: &str) -> Result<(), String> {
        if self.drives_a_store() {
            return Err("the system is a store of the scenario, and no command can stand in its place".into());
        }
        let words = command_words(command)?;
        let system = &mut self.system;
        if !matches!(system.origin, SystemOrigin::Command(_)) {
            // what is started is driven over HTTP/1.1
            *system = System { ready_within: READY_WITHIN, rpc: system.rpc.take(), ..System::default() };
        }
        let is_told = words.iter().chain(system.launch.env.values()).any(|text| text.contains(PORT));
        if !is_told && system.launch.port.is_none() {
            return Err(format!(
                "nobody tells `{command}` where to listen; write {PORT} into it, or `port: 8080` into the scenario's system if it \
                 always listens on that"
            ));
        }
        system.origin = SystemOrigin::Command(words);
        Ok(())
    }

    /// Starts the system's command, and what is around it, where it would be started if the tree at `from` stood at `to`. A
    /// command without a folder of its own is started in `here`, which is in `from`. All are absolute.
    ///
    /// # Errors
    /// In words: the system is no command, or its folder is not in that tree.
    pub fn start_within(&mut self, from: &Path, to: &Path, here: &Path) -> Result<(), String> {
        let SystemOrigin::Command(_) = self.system.origin else {
            return Err("only a system that is a `command` can be started from another revision".into());
        };
        let folder = self.system.launch.cwd.as_deref().map_or_else(|| here.to_owned(), |cwd| here.join(cwd));
        // so that links do not hide that it is in the tree
        let folder = folder.canonicalize().unwrap_or(folder);
        let within = folder.strip_prefix(from).map_err(|_| {
            format!(
                "the system is started in {}, which is not in the repository {}, so that each revision would start the same",
                folder.display(),
                from.display()
            )
        })?;
        self.system.launch.cwd = Some(to.join(within));
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::Ready;

    fn plan(system: &str, dir: &Path) -> Plan {
        let text = format!(
            "system: {system}\nsessions: {{s: {{steps: [{{GET: /x}}]}}}}\nload: {{users: 1, hold: 1s}}\n"
        );
        crate::load_text("t.yaml", &text, dir, &[]).unwrap()
    }

    fn words(plan: &Plan) -> Vec<String> {
        match &plan.system.origin {
            SystemOrigin::Command(words) => words.clone(),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn another_command_keeps_what_is_around_it() {
        let here = Path::new(".");
        let mut of = plan("{command: 'a {port}', env: {A: b}, ready: {path: /up}}", here);
        of.start_instead("'my server' --port {port}").unwrap();
        assert_eq!(words(&of), ["my server", "--port", "{port}"]);
        assert_eq!(of.system.launch.env["A"], "b");
        assert!(matches!(of.system.ready, Ready::Answers { .. }));

        let mut of = plan("{url: 'http://127.0.0.1:1', http: '2'}", here);
        of.start_instead("b {port}").unwrap();
        assert_eq!((words(&of), of.system.http.name()), (vec!["b".into(), "{port}".into()], "1.1"));
        assert_eq!((of.system.ready.clone(), of.system.ready_within), (Ready::Connects, READY_WITHIN));
    }

    #[test]
    fn what_is_no_command_is_told() {
        let mut of = plan("{command: 'a {port}'}", Path::new("."));
        for (command, says) in [
            ("b", "nobody tells `b` where to listen"),
            ("b {port} | tee log", "`|` is for a shell"),
            ("'b {port}", "a quote in this command is not closed"),
            (" ", "this command is empty"),
        ] {
            let error = of.start_instead(command).unwrap_err();
            assert!(error.contains(says), "{command}: {error}");
        }
        assert_eq!(words(&of), ["a", "{port}"], "it stays as it was");
        plan("{command: 'a {port}', port: 8080}", Path::new(".")).start_instead("b").unwrap();
    }

    #[test]
    fn folders_are_those_of_the_other_tree() {
        let temp = tempfile::tempdir().unwrap();
        let root = temp.path().canonicalize().unwrap();
        let (from, to) = (root.join("from"), root.join("to"));
        std::fs::create_dir_all(from.join("app/server")).unwrap();
        let here = from.join("app");
        let mut of = plan("{command: 'a {port}'}", &here);
        of.start_within(&from, &to, &here).unwrap();
        assert_eq!(of.system.launch.cwd, Some(to.join("app")));
        let mut of = plan("{command: 'a {port}', cwd: server}", &here);
        of.start_within(&from, &to, &here).unwrap();
        assert_eq!(of.system.launch.cwd, Some(to.join("app/server")));
        let mut of = plan("{command: 'a {port}', cwd: ../..}", &here);
        assert!(of.start_within(&from, &to, &here).unwrap_err().contains("not in the repository"));
        let mut of = plan("{url: 'http://127.0.0.1:1'}", &here);
        assert!(of.start_within(&from, &to, &here).unwrap_err().contains("a `command`"));
    }
}
