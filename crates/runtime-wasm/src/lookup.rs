//! Which file a program's name means.

use std::path::{Component, Path, PathBuf};

use prx_runtime_core::{Error, ErrorKind, Result};

use crate::error::unreadable;

/// The extension of a module.
const EXTENSION: &str = "wasm";

/// A file that a command names.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct Located {
    pub(crate) path: PathBuf,
    /// Whether the file must lie in the module directory, links resolved.
    pub(crate) confined: bool,
}

/// Finds modules.
#[derive(Debug)]
pub(crate) struct Lookup {
    /// The module directory, absolute.
    directory: PathBuf,
    /// The names of the registered tools, sorted, for messages.
    tools: Vec<String>,
}

impl Lookup {
    pub(crate) fn new(directory: PathBuf, tools: Vec<String>) -> Self {
        Self { directory, tools }
    }

    /// The module directory.
    pub(crate) fn directory(&self) -> &Path {
        &self.directory
    }

    /// The file of a registered tool's module: a path, or a path below the module directory.
    pub(crate) fn of_tool(&self, module: &Path) -> Located {
        Located {
            path: self.directory.join(module),
            confined: module.is_relative(),
        }
    }

    /// The file of `program`: a path, relative to `working_dir`, if it looks like one, else a
    /// module of the module directory.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::ProgramNotFound`], with what was searched.
    pub(crate) fn find(&self, program: &str, working_dir: &Path) -> Result<Located> {
        if is_path(program) {
            let path = working_dir.join(program);
            return match path.try_exists() {
                Ok(false) => Err(Error::new(
                    ErrorKind::ProgramNotFound,
                    format!("there is no module `{}`", path.display()),
                )),
                _ => Ok(Located {
                    path,
                    confined: false,
                }),
            };
        }
        let candidates = self.candidates(program);
        let mut directory = None;
        for path in &candidates {
            match std::fs::metadata(path) {
                Ok(metadata) if metadata.is_dir() => directory = Some(path.clone()),
                // A link that leads nowhere is reported, not passed over.
                Err(_) if path.symlink_metadata().is_err() => {}
                _ => {
                    return Ok(Located {
                        path: path.clone(),
                        confined: true,
                    });
                }
            }
        }
        match directory {
            Some(path) => Ok(Located {
                path,
                confined: true,
            }),
            None => Err(self.not_found(program, &candidates)),
        }
    }

    fn candidates(&self, program: &str) -> Vec<PathBuf> {
        let mut parts = Path::new(program).components();
        if !matches!(
            (parts.next(), parts.next()),
            (Some(Component::Normal(_)), None)
        ) {
            return Vec::new();
        }
        let exact = self.directory.join(program);
        if exact
            .extension()
            .is_some_and(|extension| extension == EXTENSION)
        {
            return vec![exact];
        }
        vec![self.directory.join(format!("{program}.{EXTENSION}")), exact]
    }

    fn not_found(&self, program: &str, candidates: &[PathBuf]) -> Error {
        let mut searched = Vec::new();
        if self.tools.is_empty() {
            searched.push("the registered tools, of which there are none".to_owned());
        } else {
            searched.push(format!("the registered tools {}", self.tools.join(", ")));
        }
        searched.extend(
            candidates
                .iter()
                .map(|path| format!("`{}`", path.display())),
        );
        Error::new(
            ErrorKind::ProgramNotFound,
            format!(
                "there is no tool or module `{program}`: searched {}",
                searched.join("; ")
            ),
        )
        .with_hint(format!(
            "put the module into `{}`, or register it in [tools.custom.NAME]",
            self.directory.display()
        ))
    }

    /// The file itself, links resolved.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Refused`] for a file outside the module directory that has to lie in it.
    pub(crate) fn resolve(&self, located: &Located) -> Result<PathBuf> {
        let canonical = |path: &Path| path.canonicalize().map_err(|error| unreadable(path, error));
        let file = canonical(&located.path)?;
        if located.confined && !file.starts_with(canonical(&self.directory)?) {
            return Err(Error::new(
                ErrorKind::Refused,
                format!(
                    "the module `{}` lies outside the module directory: it is `{}`",
                    located.path.display(),
                    file.display()
                ),
            )
            .with_hint("move it there, or register a tool with an absolute path"));
        }
        Ok(file)
    }
}

/// Whether `program` names a file rather than a module or a tool.
fn is_path(program: &str) -> bool {
    program.contains(std::path::is_separator)
}

#[cfg(test)]
#[cfg(unix)]
mod tests {
    use super::*;
    use std::fs;

    fn lookup() -> (tempfile::TempDir, Lookup) {
        let root = tempfile::tempdir().unwrap();
        let modules = root.path().join("modules");
        fs::create_dir_all(modules.join("dir")).unwrap();
        fs::write(modules.join("a.wasm"), "").unwrap();
        fs::write(modules.join("plain"), "").unwrap();
        fs::write(root.path().join("outside.wasm"), "").unwrap();
        std::os::unix::fs::symlink("../outside.wasm", modules.join("link.wasm")).unwrap();
        std::os::unix::fs::symlink("a.wasm", modules.join("inner.wasm")).unwrap();
        let tools = vec!["one".to_owned(), "two".to_owned()];
        (root, Lookup::new(modules, tools))
    }

    #[test]
    fn names_are_found_in_the_module_directory() {
        let (root, lookup) = lookup();
        for (name, file) in [
            ("a", "a.wasm"),
            ("a.wasm", "a.wasm"),
            ("plain", "plain"),
            ("dir", "dir"),
            ("inner", "inner.wasm"),
        ] {
            let located = lookup.find(name, Path::new("/")).unwrap();
            assert_eq!(located.path, root.path().join("modules").join(file));
            assert!(located.confined);
            lookup.resolve(&located).unwrap();
        }
    }

    #[test]
    fn what_was_searched_is_said() {
        let (root, lookup) = lookup();
        let modules = root.path().join("modules");
        let error = lookup.find("b", Path::new("/")).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::ProgramNotFound);
        for part in [
            "`b`",
            "one, two",
            &format!("`{}/b.wasm`", modules.display()),
        ] {
            assert!(error.to_string().contains(part), "{error}");
        }
        assert_eq!(
            lookup.find("..", Path::new("/")).unwrap_err().kind(),
            ErrorKind::ProgramNotFound
        );
    }

    #[test]
    fn nothing_leads_out_of_the_module_directory() {
        let (_root, lookup) = lookup();
        let link = lookup.find("link", Path::new("/")).unwrap();
        let dots = lookup.of_tool(Path::new("../outside.wasm"));
        for located in [link, dots] {
            let error = lookup.resolve(&located).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Refused);
            assert!(
                error.to_string().contains("outside the module directory"),
                "{error}"
            );
        }
    }

    #[test]
    fn a_path_is_taken_from_the_working_directory() {
        let (root, lookup) = lookup();
        let located = lookup.find("./outside.wasm", root.path()).unwrap();
        assert!(!located.confined);
        lookup.resolve(&located).unwrap();
        let error = lookup.find("./none.wasm", root.path()).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::ProgramNotFound);
    }
}
