//! The signals that end us, and through us the command.

#[cfg(unix)]
mod sys {
    use tokio::signal::unix::{Signal, SignalKind, signal};

    /// Interrupt, termination and hang-up, in one; without those that whoever started us has had
    /// us ignore, as `nohup` and a shell's `&` do.
    pub(crate) struct Signals {
        interrupt: Option<Signal>,
        terminate: Option<Signal>,
        hang_up: Option<Signal>,
    }

    impl Signals {
        pub(crate) fn listen() -> std::io::Result<Self> {
            let unless_ignored = |kind: SignalKind| {
                let ignored = is_ignored(kind.as_raw_value());
                (!ignored).then(|| signal(kind)).transpose()
            };
            Ok(Self {
                interrupt: unless_ignored(SignalKind::interrupt())?,
                terminate: unless_ignored(SignalKind::terminate())?,
                hang_up: unless_ignored(SignalKind::hangup())?,
            })
        }

        /// The next one's number. Cancel-safe.
        pub(crate) async fn next(&mut self) -> u8 {
            tokio::select! {
                () = next(&mut self.interrupt) => 2,
                () = next(&mut self.terminate) => 15,
                () = next(&mut self.hang_up) => 1,
            }
        }
    }

    async fn next(signal: &mut Option<Signal>) {
        let heard = match signal {
            Some(signal) => signal.recv().await,
            None => None,
        };
        if heard.is_none() {
            std::future::pending().await
        }
    }

    /// Whether this process ignores `signal` now.
    fn is_ignored(signal: std::ffi::c_int) -> bool {
        // SAFETY: zeros are a disposition; it is only written to.
        let mut now: libc::sigaction = unsafe { std::mem::zeroed() };
        // SAFETY: without a new disposition nothing is changed; `now` is there for the call.
        let asked = unsafe { libc::sigaction(signal, std::ptr::null(), &raw mut now) };
        asked == 0 && now.sa_sigaction == libc::SIG_IGN
    }
}

#[cfg(not(unix))]
mod sys {
    /// Ctrl-C. Untested.
    pub(crate) struct Signals;

    impl Signals {
        pub(crate) fn listen() -> std::io::Result<Self> {
            Ok(Self)
        }

        /// The number that Unix has for it. Cancel-safe.
        pub(crate) async fn next(&mut self) -> u8 {
            if tokio::signal::ctrl_c().await.is_err() {
                std::future::pending::<()>().await;
            }
            2
        }
    }
}

pub(crate) use sys::Signals;
