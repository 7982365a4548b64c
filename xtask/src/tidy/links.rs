//! Links between the documents: what they point to must be there.

use std::path::Path;

use super::{File, Problems};

pub(super) fn check(root: &Path, file: &File, problems: &mut Problems) {
    let folder = root.join(&file.path);
    let folder = folder.parent().expect("a file lies in a folder");
    for (number, line) in file.text.lines().enumerate() {
        for target in line.split("](").skip(1).filter_map(|rest| rest.split(')').next()) {
            let path = target.split('#').next().unwrap_or_default();
            let elsewhere = target.contains("://") || target.starts_with("mailto:");
            if !elsewhere && !path.is_empty() && !folder.join(path).exists() {
                problems.add(file, number, format_args!("the link {target} leads nowhere"));
            }
        }
    }
}
