//! What is installed beside the program, how it is packed, and the action that runs it in CI.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use tidemark_scenario::source::Value;

use crate::program::{code, run, stderr, stdout, write_airline};

const PROGRAM: &str = env!("CARGO_BIN_EXE_tidemark");

/// A file of the project.
fn project(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(path)
}

fn output_of(command: &mut Command) -> Output {
    command.stdin(Stdio::null()).output().unwrap_or_else(|error| panic!("{command:?}: {error}"))
}

/// What a program says; it must end well.
fn said(program: &str, arguments: &[&str]) -> String {
    let output = output_of(Command::new(program).args(arguments));
    assert_eq!(code(&output), 0, "{program} {arguments:?}: {}", stderr(&output));
    stdout(&output)
}

#[test]
fn shells_are_told_every_verb() {
    let folder = tempfile::tempdir().unwrap();
    for shell in ["bash", "zsh", "fish"] {
        let output = run(folder.path(), &["completions", shell]);
        assert_eq!(code(&output), 0, "{}", stderr(&output));
        for word in ["run", "hit", "init", "verify", "abort-early", "print-scenario"] {
            assert!(stdout(&output).contains(word), "{shell}: {word}");
        }
    }
    // bash itself completes a verb
    let script = format!(
        "source <({PROGRAM} completions bash); COMP_WORDS=(tidemark ver); COMP_CWORD=1; _tidemark tidemark ver tidemark; echo \"${{COMPREPLY[@]}}\""
    );
    assert_eq!(said("bash", &["-c", &script]).trim(), "verify");
    crate::program::assert_refused(folder.path(), &["completions", "tcsh"], "bash");
}

#[test]
fn every_verb_has_a_page() {
    let folder = tempfile::tempdir().unwrap();
    let output = run(folder.path(), &["man", "share/man1"]);
    assert_eq!((code(&output), stdout(&output).as_str()), (0, ""), "{}", stderr(&output));
    let page = |name: &str| fs::read_to_string(folder.path().join("share/man1").join(name)).unwrap();
    for verb in [
        "run",
        "hit",
        "serve",
        "check",
        "init",
        "report",
        "compare",
        "history",
        "limit",
        "verify",
        "cost",
        "cube",
        "ui",
        "agent",
        "fleet",
        "schema",
        "completions",
        "man",
    ] {
        assert!(page("tidemark.1").contains(&format!("tidemark\\-{verb}(1)")), "{verb}");
        assert!(page(&format!("tidemark-{verb}.1")).starts_with(".ie"), "{verb}");
    }
    assert!(page("tidemark-run.1").contains("\\-\\-abort\\-early"));
    fs::write(folder.path().join("file"), "").unwrap();
    let output = run(folder.path(), &["man", "file"]);
    assert_eq!(code(&output), 74, "{}", stderr(&output));
}

/// What it is, how it is installed, a scenario of one's own in ten lines and what it prints; the rest is behind.
#[test]
fn readme_begins_with_what_one_needs_first() {
    let readme = fs::read_to_string(project("README.md")).unwrap();
    let mut from = 0;
    for part in [
        "**Tidemark tells how much load a system holds",
        "docs/report.png",
        "cargo install --locked --git URL-OF-THIS-REPOSITORY tidemark\n",
        "tidemark init http://127.0.0.1:8080/ -o my.yaml",
        "```yaml\n",
        "PASS  all 2 objectives were met",
        "docs/install.md",
        "## Use",
        "**Why not wrk, wrk2 or k6?**",
    ] {
        let at =
            readme[from..].find(part).unwrap_or_else(|| panic!("{part} is missing, or stands elsewhere"));
        from += at + part.len();
    }
    assert!(readme.lines().count() <= 100, "{}", readme.lines().count());
    let long = readme.lines().find(|line| line.chars().count() >= 120);
    assert_eq!(long, None);
    // GitHub cuts what is longer in a block of code
    let of_code = readme.split("```").skip(1).step_by(2).flat_map(str::lines);
    assert_eq!(of_code.into_iter().find(|line| line.chars().count() > 84), None);
    let scenario = readme.split("```yaml\n").nth(1).unwrap().split("```").next().unwrap();
    assert!(scenario.lines().count() <= 10, "{scenario}");
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("my.yaml"), scenario).unwrap();
    let checked = run(folder.path(), &["check", "my.yaml"]);
    assert_eq!((code(&checked), stderr(&checked).as_str()), (0, ""), "{scenario}");
}

#[test]
fn an_old_glibc_is_held_to() {
    let check = |most: &[&str]| output_of(Command::new(project("dist/glibc")).arg(PROGRAM).args(most));
    let newest = stdout(&check(&[])).trim().to_owned();
    assert!(newest.starts_with("2."), "{newest}");
    assert_eq!(code(&check(&[&newest])), 0);
    assert_eq!(code(&check(&["2.100"])), 0);
    let refused = check(&["2.3"]);
    assert_eq!(code(&refused), 1);
    assert!(stderr(&refused).contains(&format!("needs glibc {newest}")), "{}", stderr(&refused));
}

#[test]
#[ignore = "takes long: make test-long"]
fn what_is_packed_is_whole() {
    let folder = tempfile::tempdir().unwrap();
    // the program without its symbols: what is packed is small
    let small = folder.path().join("small");
    said("strip", &["-o", small.to_str().unwrap(), PROGRAM]);
    let pack = || {
        let mut pack = Command::new(project("dist/pack"));
        pack.arg(&small)
            .arg("tidemark")
            .arg(folder.path().join("out"))
            .env("SOURCE_DATE_EPOCH", "1767225600");
        output_of(&mut pack)
    };
    let packed = pack();
    assert_eq!(code(&packed), 0, "{}", stderr(&packed));
    let names = stdout(&packed);
    let names: Vec<&str> = names.split_whitespace().collect();
    let out = folder.path().join("out");
    let at = |name: &str| out.join(name).to_str().unwrap().to_owned();

    let archive = said("tar", &["-tzf", &at(names[0])]);
    let inside = names[0].trim_end_matches(".tar.gz");
    for file in [
        "tidemark",
        "README.md",
        "LICENSE",
        "CHANGELOG.md",
        "completions/tidemark.bash",
        "completions/_tidemark",
        "completions/tidemark.fish",
        "man/tidemark-run.1",
    ] {
        assert!(archive.lines().any(|line| line == format!("{inside}/{file}")), "{file}:\n{archive}");
    }

    let listed = said("dpkg-deb", &["--contents", &at(names[1])]);
    for file in [
        "usr/bin/tidemark",
        "usr/share/bash-completion/completions/tidemark",
        "usr/share/man/man1/tidemark-run.1.gz",
        "usr/share/doc/tidemark/copyright",
    ] {
        assert!(listed.lines().any(|line| line.ends_with(&format!(" ./{file}"))), "{file}:\n{listed}");
    }
    assert!(listed.lines().all(|line| line.contains(" root/root ")), "{listed}");
    let newest = said(project("dist/glibc").to_str().unwrap(), &[PROGRAM]);
    let needs = said("dpkg-deb", &["--field", &at(names[1]), "Depends"]);
    assert!(needs.contains(&format!("libc6 (>= {})", newest.trim())), "{needs}");
    let version = said("dpkg-deb", &["--field", &at(names[1]), "Version"]);
    assert_eq!(version.trim(), env!("CARGO_PKG_VERSION"));

    // what the Containerfile copies is there, and what it starts runs
    let file = fs::read_to_string(project("dist/Containerfile")).unwrap();
    let line = |word: &str| {
        file.lines().find_map(|line| line.strip_prefix(word)).unwrap_or_else(|| panic!("{file}")).to_owned()
    };
    let copied = line("COPY ").replace("${NAME}", line("ARG NAME=").trim());
    let root = copied.strip_suffix(" /").unwrap_or_else(|| panic!("{copied}"));
    let entry = line("ENTRYPOINT ");
    let entry = entry.trim_matches(['[', ']', '"', '/']);
    let version = said(out.join(root).join(entry).to_str().unwrap(), &["--version"]);
    assert_eq!(version, said(PROGRAM, &["--version"]));

    // twice the same is the same
    let before = [fs::read(at(names[0])).unwrap(), fs::read(at(names[1])).unwrap()];
    assert_eq!(code(&pack()), 0);
    assert!(before == [fs::read(at(names[0])).unwrap(), fs::read(at(names[1])).unwrap()]);
}

/// Lines of a Containerfile's instruction, without its word.
fn instructions<'a>(file: &'a str, word: &str) -> Vec<&'a str> {
    file.lines().filter_map(|line| line.strip_prefix(word)?.strip_prefix(' ')).collect()
}

/// No engine is needed: what it copies is enough for cargo, and what it starts are a verb and flags of the program.
#[test]
fn the_image_is_built_of_what_is_there_and_runs_without_rights() {
    let file = fs::read_to_string(project("Containerfile")).unwrap();
    let stages = instructions(&file, "FROM");
    assert_eq!(stages.len(), 2, "{file}");
    let bases = instructions(&file, "ARG").into_iter().filter_map(|argument| argument.split_once('='));
    let bases: Vec<_> = bases.filter(|(_, image)| image.contains(':')).collect();
    assert!(!bases.is_empty(), "{file}");
    for (name, image) in bases {
        assert!(stages.iter().any(|stage| stage.contains(&format!("${{{name}}}"))), "{name}");
        // an image's name, with no host before it
        assert!(!image.contains('/'), "{image}");
    }
    let folder = tempfile::tempdir().unwrap();
    let (from_build, copied): (Vec<_>, Vec<_>) =
        instructions(&file, "COPY").into_iter().partition(|copy| copy.starts_with("--from=build "));
    for copy in copied {
        let (sources, to) = copy.rsplit_once(' ').unwrap();
        for source in sources.split(' ') {
            assert!(project(source).exists(), "{source}");
            if to.starts_with('/') {
                continue;
            }
            let into = folder.path().join(to.trim_start_matches("./"));
            fs::create_dir_all(into.parent().unwrap()).unwrap();
            let into = if to == "./" { into.join(source) } else { into };
            said(
                "cp",
                &["-r", project(source).to_str().unwrap().trim_end_matches('/'), into.to_str().unwrap()],
            );
        }
    }
    // cargo finds every member and the program, with what it is compiled with
    let metadata = Command::new("cargo")
        .args(["metadata", "--no-deps", "--offline", "--format-version", "1"])
        .current_dir(folder.path())
        .output()
        .unwrap();
    assert!(metadata.status.success(), "{}", stderr(&metadata));
    assert!(stdout(&metadata).contains("\"name\":\"tidemark\""));
    let pages = ["web/dist/report.html", "web/dist/newsfeed.html", "web/dist/airline.html"];
    for compiled_in in pages.iter().chain(&["scenarios/airline.yaml"]) {
        assert!(folder.path().join(compiled_in).is_file(), "{compiled_in}");
    }
    let built = instructions(&file, "RUN").into_iter().find(|run| run.starts_with("cargo build ")).unwrap();
    let manifest = fs::read_to_string(project("Cargo.toml")).unwrap();
    let profile = built.split("--profile ").nth(1).unwrap().split(' ').next().unwrap();
    assert!(
        manifest.contains(&format!("[profile.{profile}]")) && built.contains("--package tidemark "),
        "{built}"
    );
    let (built, at) = from_build[0].strip_prefix("--from=build ").unwrap().split_once(' ').unwrap();
    assert_eq!(built, format!("/source/target/{profile}/tidemark"));
    assert_eq!(instructions(&file, "ENTRYPOINT"), [format!("[\"{at}\"]")]);
    let arguments = instructions(&file, "CMD")[0].trim_matches(['[', ']', '"']);
    assert_eq!(code(&run(folder.path(), &[arguments])), 0);
    let user = instructions(&file, "USER");
    assert!(
        user.len() == 1 && file.contains(&format!("useradd --uid 10001 --no-create-home {}", user[0])),
        "{file}"
    );
}

/// The commands of `tidemark` in a text, with words in place of what a shell puts there.
fn commands(text: &str) -> Vec<Vec<String>> {
    let begin =
        |line: &str| line.find("tidemark run ").map(|at| line[at..].replace("\"$SCENARIO\"", "load/my.yaml"));
    let words = |line: String| line.split_whitespace().skip(1).map(str::to_owned).collect();
    text.lines().filter_map(begin).map(words).collect()
}

#[test]
fn jobs_for_ci_name_flags_and_files_that_there_are() {
    let job = fs::read_to_string(project("dist/gitlab-ci.yml")).unwrap();
    Value::from_yaml("gitlab-ci.yml", &job).unwrap();
    assert!(project("Containerfile").exists() && job.contains("$TIDEMARK_SOURCE/Containerfile"));
    let docs = fs::read_to_string(project("docs/ci.md")).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let all = commands(&job).into_iter().chain(commands(&docs));
    let all: Vec<_> = all.filter(|command| command.iter().all(|word| !word.contains('`'))).collect();
    assert!(all.len() >= 3, "{all:?}");
    for command in all {
        // flags are read in order, so that a wrong one is refused before the help is shown
        for (more, status) in [(&["--help"][..], 0), (&["--no-such-flag", "--help"][..], 2)] {
            let words: Vec<&str> = command.iter().map(String::as_str).chain(more.iter().copied()).collect();
            let output = run(folder.path(), &words);
            assert_eq!(code(&output), status, "{words:?}: {}", stderr(&output));
        }
    }
}

/// Whether a path fits one with a `*` in it.
fn fits(glob: &str, path: &str) -> bool {
    match glob.split_once('*') {
        Some((begin, end)) => path.strip_prefix(begin).is_some_and(|rest| rest.ends_with(end)),
        None => glob == path,
    }
}

#[test]
#[ignore = "takes long: make test-long"]
fn a_release_has_all_that_is_packed() {
    let release = fs::read_to_string(project(".github/workflows/release.yml")).unwrap();
    let release = Value::from_yaml("release.yml", &release).unwrap();
    let step = |name: &str| of(&release, &["jobs", "dist", "steps", name, "run"]).as_str().unwrap();
    assert_eq!(step("Build and pack"), "make dist");
    let globs: Vec<&str> =
        step("Release").split_whitespace().filter(|word| word.starts_with("target/dist/")).collect();

    let folder = tempfile::tempdir().unwrap();
    let small = folder.path().join("small");
    said("strip", &["-o", small.to_str().unwrap(), PROGRAM]);
    // a program with musl differs by what readelf says of it
    let bin = folder.path().join("bin");
    fs::create_dir(&bin).unwrap();
    let readelf = "#!/bin/sh\nPATH=${PATH#*:}\nreadelf \"$@\" | grep -v -e INTERP -e interpreter\n";
    fs::write(bin.join("readelf"), readelf).unwrap();
    fs::set_permissions(bin.join("readelf"), fs::Permissions::from_mode(0o755)).unwrap();
    let path = std::env::var("PATH").unwrap();
    let mut packed = Vec::new();
    for path in [path.clone(), format!("{}:{path}", bin.display())] {
        let out = folder.path().join(format!("out{}", packed.len()));
        let mut pack = Command::new(project("dist/pack"));
        let output = output_of(pack.arg(&small).arg("tidemark").arg(&out).env("PATH", path));
        assert_eq!(code(&output), 0, "{}", stderr(&output));
        let files = fs::read_dir(&out).unwrap().map(|entry| entry.unwrap().path());
        let mut files: Vec<String> = files
            .filter(|path| path.is_file())
            .map(|path| path.file_name().unwrap().to_str().unwrap().to_owned())
            .collect();
        files.sort();
        packed.push(files);
    }
    let [usual, musl] = &packed[..] else { panic!("{packed:?}") };
    assert!(usual.len() == 2 && usual[0].ends_with(".tar.gz") && usual[1].ends_with(".deb"), "{packed:?}");
    assert_eq!(*musl, [usual[0].replace(".tar.gz", "-musl.tar.gz")]);
    for name in usual.iter().chain(musl).map(String::as_str).chain(["SHA256SUMS"]) {
        let path = format!("target/dist/{name}");
        assert!(globs.iter().any(|glob| fits(glob, &path)), "{path} is in no release: {globs:?}");
    }
    // and nothing is named that nobody makes
    for glob in &globs {
        let mut made = usual.iter().map(String::as_str).chain(["SHA256SUMS"]);
        assert!(made.any(|name| fits(glob, &format!("target/dist/{name}"))), "{glob}");
    }
}

/// A value of the action by its keys; a step of a list by its name.
fn of<'a>(value: &'a Value, keys: &[&str]) -> &'a Value {
    let Some((key, rest)) = keys.split_first() else { return value };
    let found = match value {
        Value::Map(map) => map.get(key),
        Value::List(items) => items.iter().find(|item| match item {
            Value::Map(map) => map.get("name").is_some_and(|name| name.as_str() == Some(key)),
            _ => false,
        }),
        Value::Scalar(_) => None,
    };
    of(found.unwrap_or_else(|| panic!("no {key}")), rest)
}

#[test]
fn the_action_runs_a_scenario_and_comments_once() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    let action = fs::read_to_string(project("action.yml")).unwrap();
    let action = Value::from_yaml("action.yml", &action).unwrap();
    let script = |name: &str| of(&action, &["runs", "steps", name, "run"]).as_str().unwrap().to_owned();
    // a gh that knows one comment of somebody else's, and later ours
    fs::create_dir(path("bin")).unwrap();
    let gh = "#!/bin/sh\ncase \"$*\" in *--paginate*) cat known ;; *) echo \"$@\" >> calls ;; esac\n";
    fs::write(path("bin/gh"), gh).unwrap();
    fs::set_permissions(path("bin/gh"), fs::Permissions::from_mode(0o755)).unwrap();
    fs::write(path("known"), "1 Looks good\n").unwrap();
    write_airline(folder.path());
    let bin = format!(
        "{}:{}:{}",
        path("bin").display(),
        Path::new(PROGRAM).parent().unwrap().display(),
        std::env::var("PATH").unwrap_or_default()
    );
    let named = |name: &str, artifact: &str| {
        let mut bash = Command::new("bash");
        bash.args(["--noprofile", "--norc", "-eo", "pipefail", "-c", &script(name)])
            .current_dir(folder.path());
        bash.env("PATH", &bin).env("RUNNER_TEMP", path("temp")).env("GITHUB_OUTPUT", path("output"));
        bash.env("GITHUB_STEP_SUMMARY", path("summary"))
            .env("SCENARIO", "airline.yaml")
            .env("NUMBER", "7")
            .env("GH_REPO", "a/b")
            .env("JOB", "load-0-1");
        bash.env("ARGUMENTS", "--for=1s\n\n--set=durability=memory\n--set=users=2\n").env("NAME", artifact);
        output_of(&mut bash)
    };
    let step = |name: &str| named(name, "");
    let ran = step("Run the scenario");
    assert_eq!(code(&ran), 0, "{}", stderr(&ran));
    let output = fs::read_to_string(path("output")).unwrap();
    let status = output.lines().find_map(|line| line.strip_prefix("status=")).unwrap();
    assert!(["0", "1", "3"].contains(&status), "{output}: {}", stderr(&ran));
    let report = output.lines().find_map(|line| line.strip_prefix("report=")).unwrap();
    assert!(Path::new(report).exists(), "{output}");
    // the same action once more in the same job, and with a name
    step("Run the scenario");
    named("Run the scenario", "mine");
    let output = fs::read_to_string(path("output")).unwrap();
    let artifacts: Vec<&str> = output.lines().filter_map(|line| line.strip_prefix("artifact=")).collect();
    assert_eq!(artifacts, ["tidemark-load-0-1", "tidemark-load-0-1-2", "mine"]);
    let summary = fs::read_to_string(path("summary")).unwrap();
    assert!(summary.contains("airline"), "{summary}");

    assert_eq!(code(&step("Comment on the pull request")), 0);
    let comment = fs::read_to_string(path("temp/tidemark/comment.md")).unwrap();
    assert!(
        comment.starts_with("<!-- tidemark: airline.yaml -->\n") && comment.contains("airline"),
        "{comment}"
    );
    fs::write(
        path("known"),
        "1 Looks good\n22 <!-- tidemark: airline.yaml -->\n23 <!-- tidemark: airline.yaml -->\n",
    )
    .unwrap();
    assert_eq!(code(&step("Comment on the pull request")), 0);
    let calls = fs::read_to_string(path("calls")).unwrap();
    let calls: Vec<&str> = calls.lines().collect();
    assert!(calls[0].starts_with("api --method POST repos/a/b/issues/7/comments "), "{calls:?}");
    assert!(
        calls[1].starts_with("api --method PATCH repos/a/b/issues/comments/22 ") && calls.len() == 2,
        "{calls:?}"
    );
}
