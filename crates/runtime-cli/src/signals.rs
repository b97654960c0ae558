//! The signals that end us, and through us the command.

#[cfg(unix)]
mod sys {
    use tokio::signal::unix::{Signal, SignalKind, signal};

    /// Interrupt, termination and hang-up, in one.
    pub(crate) struct Signals {
        interrupt: Signal,
        terminate: Signal,
        hang_up: Signal,
    }

    impl Signals {
        pub(crate) fn listen() -> std::io::Result<Self> {
            Ok(Self {
                interrupt: signal(SignalKind::interrupt())?,
                terminate: signal(SignalKind::terminate())?,
                hang_up: signal(SignalKind::hangup())?,
            })
        }

        /// The next one's number. Cancel-safe.
        pub(crate) async fn next(&mut self) -> u8 {
            tokio::select! {
                _ = self.interrupt.recv() => 2,
                _ = self.terminate.recv() => 15,
                _ = self.hang_up.recv() => 1,
            }
        }
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
