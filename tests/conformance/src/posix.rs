//! Every task, spelt for a POSIX shell.

use std::fmt::Write as _;
use std::time::Duration;

use prx_runtime_core::ExecutionRequest;

use crate::task::{Descendant, Then};
use crate::{Marker, Task};

/// The spelling of every [`Task`] for a guest that has a POSIX `sh` and the usual small programs
/// (busybox is enough): `cat env head printenv printf pwd sleep yes`, and `setsid` for descendants
/// that leave their session.
///
/// Guests are programs (`sh -c …`), never lines for the backend's own shell: what a line means is
/// itself under trial.
#[derive(Debug, Clone)]
pub struct PosixSpelling {
    setsid: bool,
    bash: bool,
}

impl Default for PosixSpelling {
    fn default() -> Self {
        Self {
            setsid: true,
            bash: false,
        }
    }
}

/// What a descendant does: `$1` is the marker, `$2` its delay.
const WRITER: &str = r#": > "$1.started"; sleep "$2"; : > "$1""#;

impl PosixSpelling {
    /// For a system without `setsid`: the tasks that need it have no spelling.
    #[must_use]
    pub fn without_setsid(mut self) -> Self {
        self.setsid = false;
        self
    }

    /// For a system with `bash`, whose `/dev/tcp` spells [`Task::Connect`].
    #[must_use]
    pub fn with_bash(mut self) -> Self {
        self.bash = true;
        self
    }

    /// The task as a program with arguments; `None` for one that this system cannot do.
    pub fn spell(&self, task: &Task) -> Option<ExecutionRequest> {
        Some(match task {
            Task::PrintArgs(args) => program("printf").arg(r"%s\0").args(args),
            Task::PrintEnv => program("env"),
            Task::PrintVariable(name) => program("printenv").arg(name),
            Task::PrintDirectory => script("pwd -P"),
            Task::Print { stdout, stderr } => script(r#"printf "$1"; printf "$2" >&2"#)
                .arg(format(stdout))
                .arg(format(stderr)),
            Task::PrintPieces { pieces, pause } => {
                script(r#"pause="$1"; shift; for piece; do printf "$piece"; sleep "$pause"; done"#)
                    .arg(seconds(*pause))
                    .args(pieces.iter().map(|piece| format(piece)))
            }
            Task::PrintThenSleep {
                stdout,
                stderr,
                sleep,
            } => script(r#"printf "$1"; printf "$2" >&2; sleep "$3""#)
                .arg(format(stdout))
                .arg(format(stderr))
                .arg(seconds(*sleep)),
            Task::Fill { stdout, stderr } => script(
                r#"yes 0123456789abcde | head -c "$1" &
                   yes 0123456789abcde | head -c "$2" >&2 &
                   wait"#,
            )
            .arg(stdout.to_string())
            .arg(stderr.to_string()),
            Task::CopyStdin => program("cat"),
            Task::CopySome(bytes) => program("head").arg("-c").arg(bytes.to_string()),
            Task::EchoLines => {
                script(r#"while IFS= read -r line; do printf 'echo:%s\n' "$line"; done"#)
            }
            Task::Exit(code) => script(r#"exit "$1""#).arg(code.to_string()),
            Task::KillItself(signal) => {
                script(r#"kill "-$1" $$; sleep 60"#).arg(signal.to_string())
            }
            Task::Sleep(duration) => program("sleep").arg(seconds(*duration)),
            Task::Spin => script("while :; do :; done"),
            Task::CloseOutputThenSleep(duration) => {
                script(r#"exec >&- 2>&-; sleep "$1""#).arg(seconds(*duration))
            }
            Task::LastWords => script(
                r#"trap 'echo last words; exit 0' TERM
                   echo ready
                   turns=0
                   while [ $turns -lt 600 ]; do sleep 0.1; turns=$((turns + 1)); done"#,
            ),
            Task::Mark(marker) => marked(WRITER, marker),
            Task::MarkDeaf(marker) => marked(&format!(r#"trap "" TERM; {WRITER}"#), marker),
            Task::MarkStopped(marker) => {
                marked(r#": > "$1.started"; kill -STOP $$; : > "$1""#, marker)
            }
            Task::Leave {
                descendant,
                marker,
                then,
            } => {
                let start = self.start(*descendant)?;
                let then = match then {
                    Then::Exit(code) => format!("exit {code}"),
                    Then::Die(signal) => format!("kill -{signal} $$; sleep 60"),
                    Then::Sleep(duration) => format!("sleep {}; :", seconds(*duration)),
                };
                let wait = r#"while [ ! -e "$1.started" ]; do sleep 0.02; done; echo left"#;
                marked(&format!("{start}\n{wait}\n{then}"), marker)
            }
            Task::LeaveMany { count, sleep } => script(
                r#"turns=0
                   while [ $turns -lt "$1" ]; do sleep "$2" & turns=$((turns + 1)); done
                   exit 0"#,
            )
            .arg(count.to_string())
            .arg(seconds(*sleep)),
            Task::WaitForChild => script("sleep 0.05 & wait; exit 0"),
            Task::ReadFile(path) => program("cat").arg(path.to_str()?),
            Task::WriteFile { file, text } => {
                script(r#"printf %s "$2" > "$1""#).arg(file).arg(text)
            }
            Task::Connect(port) if self.bash => program("bash")
                .args(["-c", r#"exec 3<>"/dev/tcp/127.0.0.1/$1""#, "bash"])
                .arg(port.to_string()),
            Task::Connect(_) => return None,
        })
    }

    /// The command that starts a descendant.
    fn start(&self, descendant: Descendant) -> Option<String> {
        let leaves_session = matches!(descendant, Descendant::Session | Descendant::Daemon);
        if leaves_session && !self.setsid {
            return None;
        }
        Some(match descendant {
            Descendant::Child => format!("( {WRITER} ) &"),
            // The colons keep each shell from becoming its last command instead of waiting for it.
            Descendant::GreatGrandchild => {
                let lowest = format!(r#"sh -c '{WRITER}; :' sh "$1" "$2""#);
                format!("( ( {lowest}; : ); : ) &")
            }
            Descendant::Session => format!(r#"setsid sh -c '{WRITER}' sh "$1" "$2" &"#),
            Descendant::Orphan => format!("( ( {WRITER} ) & )"),
            Descendant::Daemon => {
                format!(r#"( setsid sh -c '{WRITER}' sh "$1" "$2" </dev/null >/dev/null 2>&1 & )"#)
            }
            Descendant::Deaf => format!(r#"( trap "" TERM; {WRITER} ) &"#),
            Descendant::Stopped => {
                r#"sh -c ': > "$1.started"; kill -STOP $$; : > "$1"' sh "$1" &"#.to_owned()
            }
        })
    }
}

fn program(name: &str) -> ExecutionRequest {
    ExecutionRequest::program(name)
}

/// A script whose `$1`, `$2`, … are the arguments added to it.
fn script(text: &str) -> ExecutionRequest {
    program("sh").args(["-c", text, "sh"])
}

fn marked(text: &str, marker: &Marker) -> ExecutionRequest {
    script(text).arg(&marker.file).arg(seconds(marker.delay))
}

fn seconds(duration: Duration) -> String {
    format!("{:.3}", duration.as_secs_f64())
}

/// The format that makes `printf` print `bytes`, whatever they are.
fn format(bytes: &[u8]) -> String {
    bytes
        .iter()
        .fold(String::with_capacity(4 * bytes.len()), |mut text, byte| {
            // Writing to a string does not fail.
            let _ = write!(text, "\\{byte:03o}");
            text
        })
}
