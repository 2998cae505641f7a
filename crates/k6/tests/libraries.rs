//! Libraries that scripts import: what they give back.

use std::fs;

use tidemark_k6::{Given, K6, Once, Source};

fn read(name: &str, text: &str, others: &[(&str, &str)]) -> Result<K6, String> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join(name);
    fs::write(&path, text).unwrap();
    for (name, text) in others {
        fs::write(folder.path().join(name), text).unwrap();
    }
    let source = Source { name, path: &path, text: text.as_bytes(), env: &[], given: Given::default() };
    // what is opened and imported is kept in memory, and so outlives the folder
    K6::read(&source).map_err(|error| error.to_string())
}

fn run(text: &str) -> Once {
    let k6 = read("script.js", text, &[]).unwrap();
    k6.run_once("default", |_| (200, "Content-Type: text/html\n".into(), b"{\"a\":[1,2]}".to_vec())).unwrap()
}

/// What the function's body returns, as JSON.
fn returned(imports: &str, body: &str) -> String {
    run(&format!("{imports}\nexport default function () {{\n{body}\n}}")).returned.unwrap_or_default()
}

fn checks(once: &Once) -> Vec<(String, u64, u64)> {
    let told = |check: &tidemark_k6::CheckOutcome| {
        (format!("{}::{}", check.group, check.name), check.counts.passes, check.counts.fails)
    };
    once.checks.iter().map(told).collect()
}

#[test]
fn k6_utils() {
    let imports =
        "import { uuidv4, randomIntBetween, randomItem, randomString, findBetween, normalDistributionStages,
        parseDuration } from 'https://jslib.k6.io/k6-utils/1.4.0/index.js';";
    let told = returned(
        imports,
        r"
        const is = /^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/;
        const numbers = Array.from({ length: 500 }, () => randomIntBetween(2, 4));
        return [
            is.test(uuidv4()), is.test(uuidv4(true)), uuidv4() !== uuidv4(),
            [...new Set(numbers)].sort(), ['a', 'b'].includes(randomItem(['a', 'b'])),
            /^[a-z]{9}$/.test(randomString(9)), /^[xy]{3}$/.test(randomString(3, 'xy')),
            findBetween('<b>one</b><b>two</b>', '<b>', '</b>'), findBetween('<b>one</b><b>two</b>', '<b>', '</b>', true),
            findBetween('none', '<', '>'),
            parseDuration('1d5h31m20s9ms'), parseDuration('1531209'), parseDuration('9.3ms'),
        ];",
    );
    let wanted = "[true,true,true,[2,3,4],true,true,true,\"one\",[\"one\",\"two\"],null,106280009,1531209,9]";
    assert_eq!(told, wanted);
    let stages = returned(imports, "return normalDistributionStages(10, 20, 5);");
    assert_eq!(
        stages,
        r#"[{"duration":"4s","target":1},{"duration":"3s","target":5},{"duration":"3s","target":10},{"duration":"3s","target":10},{"duration":"3s","target":5},{"duration":"3s","target":1},{"duration":"4s","target":0}]"#
    );
}

#[test]
fn stages_are_tagged_with() {
    let text = |stages: &str| {
        format!(
            "import {{ tagWithCurrentStageIndex, tagWithCurrentStageProfile, getCurrentStageIndex }} from 'https://jslib.k6.io/k6-utils/1.4.0/index.js';
            import exec from 'k6/execution';
            export const options = {{ scenarios: {{ load: {{ executor: 'ramping-vus', stages: {stages} }} }} }};
            export default function () {{
                tagWithCurrentStageIndex();
                tagWithCurrentStageProfile();
                return [getCurrentStageIndex(), exec.vu.tags.stage, exec.vu.tags.stage_profile];
            }}"
        )
    };
    let told = |stages: &str| run(&text(stages)).returned.unwrap();
    assert_eq!(told("[{ duration: '10m', target: 3 }]"), r#"[0,"0","ramp-up"]"#);
    assert_eq!(
        told("[{ duration: '0s', target: 3 }, { duration: '1h', target: 1 }]"),
        r#"[1,"1","ramp-down"]"#
    );
}
