//! Lists the scenarios that come with the program, by name: every file of the folder `scenarios`.

use std::path::Path;
use std::{env, fs, io};

fn main() -> io::Result<()> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scenarios").canonicalize()?;
    println!("cargo::rerun-if-changed={}", folder.display());
    let mut files: Vec<_> =
        fs::read_dir(&folder)?.map(|entry| Ok(entry?.path())).collect::<io::Result<_>>()?;
    files.retain(|file| file.extension().is_some_and(|extension| extension == "yaml"));
    files.sort();
    let mut list =
        format!("/// Name and text of each.\nconst SHIPPED: [(&str, &str); {}] = [\n", files.len());
    for file in &files {
        let name = file.file_stem().unwrap_or_default();
        list += &format!("    ({name:?}, include_str!({file:?})),\n");
    }
    list += "];\n";
    let out = env::var_os("OUT_DIR").ok_or_else(|| io::Error::other("cargo names no OUT_DIR"))?;
    fs::write(Path::new(&out).join("shipped.rs"), list)
}
