//! `tidemark manifests`: what it writes is valid for those who read it, and the system runs by it.

use std::fs;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use crate::program::{assert_refused, code, run, stderr, stdout, tidemark, wait_until};

/// An airline of all its services, each but the data tier and the registry in two instances.
const SPLIT: [&str; 8] =
    ["manifests", "airline", "--set", "topology=split", "--set", "web=2", "--set", "auth=2"];

fn written(folder: &Path, arguments: &[&str]) -> Vec<PathBuf> {
    let output = run(folder, arguments);
    assert_eq!((code(&output), stdout(&output).as_str()), (0, ""), "{}", stderr(&output));
    let told = stderr(&output);
    told.lines()
        .filter_map(|line| Some(folder.join(line.strip_prefix("  ")?)))
        .filter(|path| path.is_file())
        .collect()
}

fn of_kind<'p>(files: &'p [PathBuf], extension: &'p str) -> impl Iterator<Item = &'p PathBuf> {
    files.iter().filter(move |path| path.extension().is_some_and(|found| found == extension))
}

/// Runs what `tests/services/install` has put there.
fn checked_by(program: &str, arguments: &[&str], files: &[&PathBuf]) {
    let program = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/services/bin").join(program);
    let output = Command::new(&program).args(arguments).args(files).output();
    let output =
        output.unwrap_or_else(|error| panic!("{}: {error}; run tests/services/install", program.display()));
    assert!(output.status.success(), "{arguments:?} {files:?}: {}{}", stdout(&output), stderr(&output));
}

#[test]
fn whoever_reads_the_files_takes_them() {
    let has_systemd = Command::new("systemd-analyze").arg("--version").output().is_ok();
    if !has_systemd {
        eprintln!("skipped in part: there is no systemd-analyze");
    }
    let with = |first: &[&'static str], settings: &[&'static str]| {
        let settings = settings.iter().flat_map(|setting| ["--set", setting]);
        first.iter().copied().chain(settings).collect::<Vec<&str>>()
    };
    let alone = ["airline", "ingest", "newsfeed", "trade"].map(|system| vec!["manifests", system]);
    let mut all = alone.to_vec();
    all.push(SPLIT.to_vec());
    all.push(
        [&with(&SPLIT, &["discovery=list", "durability=memory"])[..], &["--image", "example/t:1"]].concat(),
    );
    all.push(with(&SPLIT, &["discovery=eureka", "registry=http://eureka:8761/eureka"]));
    // with clients of stores, as `make test` builds it
    if cfg!(all(feature = "cassandra", feature = "kafka", feature = "postgres", feature = "redis")) {
        let intake = ["store=cassandra", "contact=a:9042,b:9142", "buffer=kafka", "brokers=k:9092"];
        all.push(with(&["manifests", "ingest"], &intake));
        all.push(with(
            &SPLIT,
            &["customers_in=postgres", "postgres=postgres://me:geheim@db/x", "bookings_in=postgres"],
        ));
        all.push(with(&["manifests", "newsfeed"], &["cache=redis", "redis=redis://:geheim@cache:6379/1"]));
    }
    for arguments in all {
        let folder = tempfile::tempdir().unwrap();
        let files = written(folder.path(), &arguments);
        assert!(files.len() >= 4, "{arguments:?}: {files:?}");
        let (compose, kubernetes): (Vec<_>, Vec<_>) =
            of_kind(&files, "yaml").partition(|path| path.ends_with("compose.yaml"));
        assert!(kubernetes.len() >= 2, "{arguments:?}: {kubernetes:?}");
        checked_by("kubernetes-validate", &["--strict"], &kubernetes);
        let script = "import sys, compose_spec; compose_spec.PyCompose.from_yaml(open(sys.argv[1]).read())";
        checked_by("python3", &["-c", script], &compose);
        if !has_systemd {
            continue;
        }
        for unit in of_kind(&files, "service") {
            // verified is also that the program is there
            let text = fs::read_to_string(unit).unwrap();
            fs::write(unit, text.replace("/usr/bin/tidemark", env!("CARGO_BIN_EXE_tidemark"))).unwrap();
        }
        let units: Vec<_> = of_kind(&files, "service").collect();
        let output = Command::new("systemd-analyze").arg("verify").args(&units).output().unwrap();
        let told = stderr(&output);
        // of other units of the machine nobody is to hear
        let ours: Vec<&str> =
            told.lines().filter(|line| line.contains(folder.path().to_str().unwrap())).collect();
        assert!(output.status.success() && ours.is_empty(), "{units:?}: {told}");
    }
    let folder = tempfile::tempdir().unwrap();
    let networks = ["--allow", "10.0.0.0/8", "--allow", "fd00::/8"];
    let fleet = written(folder.path(), &[&["manifests", "fleet", "--agents", "20"][..], &networks].concat());
    assert_eq!(fleet.len(), 3, "{fleet:?}");
    checked_by("kubernetes-validate", &["--strict"], &fleet.iter().collect::<Vec<_>>());
}

/// The words of what a unit starts, as systemd takes them.
fn started_by(unit: &str) -> Vec<String> {
    let unit = unit.replace("\\\n", " ");
    let line = unit.lines().find_map(|line| line.strip_prefix("ExecStart=")).expect("a command");
    let words = shlex::split(line).expect("quoted rightly");
    words.iter().map(|word| word.replace("%%", "%").replace("$$", "$")).collect()
}

/// Stopped when dropped.
struct Started(Child);

impl Drop for Started {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// An answer, head and body; nothing where there is none.
fn answer(port: u16, request: &str) -> String {
    let mut text = String::new();
    if let Ok(mut stream) = TcpStream::connect(("127.0.0.1", port)) {
        let _ = stream.write_all(request.as_bytes()).and_then(|()| stream.read_to_string(&mut text));
    }
    text
}

#[test]
fn the_airline_runs_by_what_its_units_say() {
    let folder = tempfile::tempdir().unwrap();
    let files = written(folder.path(), &SPLIT);
    let mut units: Vec<String> =
        of_kind(&files, "service").map(|path| fs::read_to_string(path).unwrap()).collect();
    assert_eq!(units.len(), 6);
    // other ports and folders than those of an installation
    let held: Vec<TcpListener> = units.iter().map(|_| TcpListener::bind("127.0.0.1:0").unwrap()).collect();
    let ports: Vec<u16> = held.iter().map(|one| one.local_addr().unwrap().port()).collect();
    drop(held);
    for unit in &mut units {
        for (index, port) in ports.iter().enumerate() {
            *unit = unit.replace(&format!(":{}", 9080 + index), &format!(":{port}!"));
        }
        *unit = unit
            .replace('!', "")
            .replace("/var/lib", folder.path().to_str().unwrap())
            .replace("0.0.0.0", "127.0.0.1");
    }
    let start = |unit: &String| {
        let words = started_by(unit);
        let arguments: Vec<&str> = words[1..].iter().map(String::as_str).collect();
        let mut command = tidemark(folder.path(), &arguments);
        Started(command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap())
    };
    let _all: Vec<Started> = units.iter().map(start).collect();
    let get =
        |path: &str, more: &str| format!("GET {path} HTTP/1.1\r\nHost: a\r\nConnection: close\r\n{more}\r\n");
    for port in &ports {
        wait_until("each instance is ready", || answer(*port, &get("/health", "")).contains("200 OK"));
    }
    // signed in at one instance, known at the other: the registry, the auth service and the data tier are found
    let form = "login=uid0@email.com&password=password";
    let login = format!(
        "POST /rest/api/login HTTP/1.1\r\nHost: a\r\nConnection: close\r\nContent-Type: application/x-www-form-urlencoded\r\nContent-Length: {}\r\n\r\n{form}",
        form.len()
    );
    let mut cookie = String::new();
    wait_until("somebody can sign in", || {
        let answer = answer(ports[0], &login);
        let found = answer.split("sessionid=").nth(1).and_then(|rest| rest.split(';').next());
        cookie = format!("Cookie: sessionid={}\r\n", found.unwrap_or_default());
        answer.starts_with("HTTP/1.1 200")
    });
    let profile = answer(ports[1], &get("/rest/api/customer/byid/uid0@email.com", &cookie));
    assert!(profile.starts_with("HTTP/1.1 200") && profile.contains("uid0@email.com"), "{profile}");
}

#[cfg(feature = "postgres")]
#[test]
fn a_password_is_only_where_nobody_else_reads_it() {
    let folder = tempfile::tempdir().unwrap();
    let address = "postgres=postgres://me:s$ecr%25et@db:5433/x";
    let arguments = [&SPLIT[..], &["--set", "customers_in=postgres", "--set", address]].concat();
    let files = written(folder.path(), &arguments);
    let mut secret = Vec::new();
    for file in &files {
        let text = fs::read_to_string(file).unwrap();
        let mode = fs::metadata(file).unwrap().permissions().mode() & 0o777;
        if text.contains("ecr%25et") {
            assert_eq!(mode, 0o600, "{}", file.display());
            assert!(text.contains("postgres://me:s$ecr%25et@db:5433/x"), "{text}");
            secret
                .push(file.strip_prefix(folder.path().join("manifests/airline")).unwrap().to_str().unwrap());
        }
    }
    secret.sort_unstable();
    assert_eq!(secret, ["compose.env", "kubernetes/secret.yaml", "systemd/airline.env"]);
    // only the web instances keep anything there
    let of = |part: &str| {
        let path = folder.path().join(format!("manifests/airline/kubernetes/airline-{part}.yaml"));
        let text = fs::read_to_string(path).unwrap();
        (text.contains("postgres=TIDEMARK_SETTING_POSTGRES"), text.contains("port: 5433"))
    };
    assert_eq!((of("web"), of("auth"), of("data")), ((true, true), (false, false), (false, false)));
    let unused = ["manifests", "airline", "--set", address];
    assert_refused(folder.path(), &unused, "nothing uses it with the other settings");
    // what takes it from there: a variable that is not there, and one whose value is wrong
    let serve = ["serve", "trade", "--set-env", "body_bytes_max=TIDEMARK_SETTING_X"];
    assert_refused(folder.path(), &serve, "environment variable TIDEMARK_SETTING_X is not set");
    let output = tidemark(folder.path(), &serve).env("TIDEMARK_SETTING_X", "many").output().unwrap();
    assert!(
        code(&output) == 2 && stderr(&output).contains("body_bytes_max is \"many\""),
        "{}",
        stderr(&output)
    );
}

#[test]
fn nothing_is_overwritten_unless_it_is_said() {
    let folder = tempfile::tempdir().unwrap();
    let unit = folder.path().join("there/systemd/trade.service");
    fs::create_dir_all(unit.parent().unwrap()).unwrap();
    fs::write(&unit, "mine").unwrap();
    let arguments = ["manifests", "trade", "--out", "there"];
    assert_refused(folder.path(), &arguments, "there already and stays as it is");
    assert_eq!(fs::read_to_string(&unit).unwrap(), "mine");
    assert!(!folder.path().join("there/compose.yaml").exists());
    fs::write(unit.with_file_name("old.service"), "of other settings").unwrap();
    let output = run(folder.path(), &[&arguments[..], &["--force"]].concat());
    assert!(
        stderr(&output).contains("there/systemd/old.service was written for other settings"),
        "{}",
        stderr(&output)
    );
    assert!(fs::read_to_string(&unit).unwrap().contains("ExecStart="));
    let printed = run(folder.path(), &["manifests", "trade", "--out", "-"]);
    let file = fs::read_to_string(folder.path().join("there/kubernetes/trade.yaml")).unwrap();
    assert!(stdout(&printed).contains(&file) && stdout(&printed).contains("trade-default-deny"));
}

#[test]
fn wrong_use_of_manifests_says_what_would_be_right() {
    let folder = tempfile::tempdir().unwrap();
    for (arguments, says) in [
        (vec!["registry"], "there is airline, ingest, newsfeed, trade"),
        (vec!["airline", "--set", "topolgy=split"], "did you mean topology?"),
        (vec!["airline", "--set", "drain_ms=soon"], "drain_ms"),
        (vec!["airline", "--set", "topology=split", "--set", "discovery=eureka"], "--set registry=…"),
        (vec!["trade", "--image", "a b"], "the name of an image"),
        (vec!["trade", "--set", "drain_ms=1\n2"], "drain_ms"),
    ] {
        assert_refused(folder.path(), &[&["manifests"], &arguments[..]].concat(), says);
    }
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0, "nothing was written");
}
