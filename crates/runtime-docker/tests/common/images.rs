//! The images that tests run, made on the spot from the busybox of this machine.
//!
//! They are imported, not built and not pulled, so that tests need no network.

use std::io::{self, Write as _};
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::Path;
use std::process::{Command, Stdio};

/// A command line of the engine's own tool. Its standard output, or why it failed.
pub(crate) fn docker(args: &[&str]) -> Result<String, String> {
    ask(&["docker"], args)
}

/// The same with the tool of another engine: a program and its first arguments.
#[expect(
    clippy::disallowed_methods,
    reason = "tests look at the engine with its own tool"
)]
pub(crate) fn ask(tool: &[&str], args: &[&str]) -> Result<String, String> {
    let output = Command::new(tool[0])
        .args(&tool[1..])
        .args(args)
        .stdin(Stdio::null())
        .output()
        .map_err(|error| format!("{}: {error}", tool[0]))?;
    if !output.status.success() {
        return Err(String::from_utf8_lossy(&output.stderr).trim().to_owned());
    }
    Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned())
}

/// One image: the files of busybox, and what makes it different.
pub(crate) struct TestImage {
    /// Its name. The tag changes with the recipe, so that an old one is never taken for it.
    pub(crate) name: &'static str,
    /// Instructions such as `ENV A=b`.
    pub(crate) changes: &'static [&'static str],
    /// What is done to its root directory.
    pub(crate) prepare: fn(&Path) -> io::Result<()>,
}

/// What most tests run.
pub(crate) const BUSYBOX: TestImage = TestImage {
    name: "prx-runtime-test/busybox:3",
    changes: &[],
    prepare: busybox,
};

/// One that would do everything its own way.
pub(crate) const WILFUL: TestImage = TestImage {
    name: "prx-runtime-test/wilful:3",
    changes: &[
        "ENTRYPOINT [\"/bin/echo\",\"the entrypoint ran\"]",
        "CMD [\"the command of the image\"]",
        "ENV LD_PRELOAD=/lib/evil.so",
        "ENV BASH_ENV=/etc/evil",
        "ENV IMAGE_VARIABLE=kept",
        "USER 12345",
        "WORKDIR /elsewhere",
        "VOLUME /data",
        "HEALTHCHECK --interval=1s CMD /bin/touch /workspace/healthcheck",
    ],
    prepare: busybox,
};

/// One in which `/workspace` is a link.
pub(crate) const LINKED: TestImage = TestImage {
    name: "prx-runtime-test/linked:3",
    changes: &[],
    prepare: |root| {
        busybox(root)?;
        symlink("/etc", root.join("workspace"))
    },
};

/// One whose programs are searched by way of the workspace first.
pub(crate) const LEADING: TestImage = TestImage {
    name: "prx-runtime-test/leading:1",
    changes: &["ENV PATH=/opt/bin:/bin"],
    prepare: |root| {
        busybox(root)?;
        std::fs::create_dir(root.join("opt"))?;
        symlink("/workspace/bin", root.join("opt/bin"))
    },
};

/// One with a volume below the place of the workspace.
pub(crate) const INTRUSIVE: TestImage = TestImage {
    name: "prx-runtime-test/intrusive:1",
    changes: &["VOLUME /workspace/./data"],
    prepare: busybox,
};

/// One without any shell: it has `/bin/true` and nothing else.
pub(crate) const SHELLLESS: TestImage = TestImage {
    name: "prx-runtime-test/shellless:3",
    changes: &[],
    prepare: |root| {
        std::fs::create_dir(root.join("bin"))?;
        std::fs::copy(BUSYBOX_HERE, root.join("bin/true")).map(drop)
    },
};

/// One whose own command ends before anybody can read from it.
pub(crate) const BRIEF: TestImage = TestImage {
    name: "prx-runtime-test/brief:1",
    changes: &["CMD [\"/bin/echo\",\"the command of the image\"]"],
    prepare: busybox,
};

/// Debian's busybox-static.
const BUSYBOX_HERE: &str = "/bin/busybox";

/// What a POSIX guest needs, and what looks at a container from inside.
const APPLETS: [&str; 47] = [
    "ash", "awk", "base64", "cat", "chmod", "chown", "cp", "cut", "date", "dd", "df", "echo",
    "env", "false", "find", "grep", "head", "id", "ip", "kill", "ln", "ls", "mkdir", "mkfifo",
    "mknod", "mount", "mv", "nc", "printf", "ps", "pwd", "readlink", "rm", "sed", "seq", "setsid",
    "sh", "sleep", "stat", "tail", "tee", "test", "touch", "true", "wc", "wget", "yes",
];

const PRINTENV: &str = r#"#!/bin/sh
eval "[ \"\${$1+set}\" ]" || exit 1
eval "printf '%s\n' \"\$$1\""
"#;

fn busybox(root: &Path) -> io::Result<()> {
    for dir in ["bin", "etc", "root", "tmp"] {
        std::fs::create_dir(root.join(dir))?;
    }
    std::fs::copy(BUSYBOX_HERE, root.join("bin/busybox"))?;
    for applet in APPLETS {
        symlink("busybox", root.join("bin").join(applet))?;
    }
    // Which Debian's busybox lacks.
    let printenv = root.join("bin/printenv");
    std::fs::write(&printenv, PRINTENV)?;
    std::fs::set_permissions(printenv, std::fs::Permissions::from_mode(0o755))?;
    std::fs::write(root.join("etc/passwd"), "root:x:0:0::/root:/bin/sh\n")
}

impl TestImage {
    /// Whether the engine has it.
    pub(crate) fn is_there(&self) -> bool {
        docker(&["image", "inspect", self.name]).is_ok()
    }

    /// Its name, once the engine has it. Two tests that miss it make the same.
    pub(crate) fn make(&self) -> io::Result<&'static str> {
        if !self.is_there() {
            self.make_with(&["docker"])?;
        }
        Ok(self.name)
    }

    /// Makes it in the engine of that tool.
    pub(crate) fn make_with(&self, tool: &[&str]) -> io::Result<()> {
        let root = tempfile::tempdir()?;
        (self.prepare)(root.path())?;
        import(tool, root.path(), self.changes, self.name)
    }
}

#[expect(
    clippy::disallowed_methods,
    reason = "tests look at the engine with its own tool"
)]
fn import(tool: &[&str], root: &Path, changes: &[&str], name: &str) -> io::Result<()> {
    let mut tar = Command::new("tar");
    tar.arg("-C")
        .arg(root)
        .args(["--owner=0", "--group=0", "--numeric-owner", "-c", "."]);
    let tar = tar.stdin(Stdio::null()).output()?;
    let mut import = Command::new(tool[0]);
    import.args(&tool[1..]).arg("import");
    for change in changes {
        import.args(["--change", change]);
    }
    import
        .args(["-", name])
        .stdin(Stdio::piped())
        .stdout(Stdio::null());
    let mut import = import.spawn()?;
    if let Some(mut stdin) = import.stdin.take() {
        stdin.write_all(&tar.stdout)?;
    }
    if tar.status.success() && import.wait()?.success() {
        Ok(())
    } else {
        Err(io::Error::other(format!(
            "the image {name} could not be imported"
        )))
    }
}
