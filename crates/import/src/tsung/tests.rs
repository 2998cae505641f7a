//! Plans of Tsung as scenarios.

use std::path::Path;

use super::*;

/// A plan with these sessions, and options in front.
fn plan_with(options: &str, sessions: &str) -> String {
    format!(
        "<?xml version=\"1.0\"?>\n<!DOCTYPE tsung SYSTEM \"/usr/share/tsung/tsung-1.0.dtd\">\n<tsung loglevel=\"notice\">\n\
         <clients><client host=\"localhost\" use_controller_vm=\"true\"/></clients>\n\
         <servers><server host=\"127.0.0.1\" port=\"8080\" type=\"tcp\"/></servers>\n\
         <load><arrivalphase phase=\"1\" duration=\"1\" unit=\"minute\"><users arrivalrate=\"5\" unit=\"second\"/>\
         </arrivalphase></load>\n<options>{options}</options>\n<sessions>{sessions}</sessions>\n</tsung>\n"
    )
}

fn plan(steps: &str) -> String {
    plan_with("", &format!("<session name=\"s\" probability=\"100\" type=\"ts_http\">{steps}</session>"))
}

fn imported_in(folder: &Path, text: &str) -> Imported {
    scenario(&folder.join("plan.xml"), text).unwrap_or_else(|error| panic!("{error}"))
}

/// The scenario as YAML, which the checker finds right, and what was told.
fn made_in(folder: &Path, text: &str) -> (String, Vec<LeftOut>) {
    let imported = imported_in(folder, text);
    let yaml = imported.scenario.to_yaml();
    let (_, mistakes) = tidemark_scenario::check_text("scenario.yaml", &yaml, folder, &imported.secrets());
    assert!(!mistakes.has_errors(), "{mistakes}\n{yaml}");
    (yaml, imported.left_out)
}

fn made(text: &str) -> (String, Vec<LeftOut>) {
    made_in(Path::new("."), text)
}

/// What the sessions became, where nothing was told.
fn sessions(text: &str) -> String {
    let (yaml, told) = made(text);
    assert!(told.is_empty(), "{told:?}\n{yaml}");
    yaml.split_once("sessions:\n").map(|(_, rest)| rest).unwrap_or_default().split("\nload:").next().unwrap_or_default().to_owned()
}

#[test]
fn probe() {
    let file = std::env::var("TSUNG_FILE").unwrap_or_default();
    if file.is_empty() {
        return;
    }
    for file in file.split(',') {
        let path = Path::new(file);
        let text = crate::read(path).unwrap();
        println!("==== {file}");
        match scenario(path, &text) {
            Err(error) => println!("{error}"),
            Ok(imported) => {
                let yaml = imported.scenario.to_yaml();
                for one in &imported.left_out {
                    println!("{}{one}", if one.is_request { "! " } else { "  " });
                }
                println!("{yaml}");
                if let Ok(out) = std::env::var("TSUNG_OUT") {
                    std::fs::write(out, &yaml).unwrap();
                }
                let folder = path.parent().unwrap();
                let (_, mistakes) =
                    tidemark_scenario::check_text("scenario.yaml", &yaml, folder, &imported.secrets());
                println!("{mistakes}");
            }
        }
    }
}
