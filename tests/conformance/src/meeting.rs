//! A stdin that ends only when others have come as far.

use std::future::Future;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::io::{AsyncRead, ReadBuf};
use tokio::sync::watch;

/// Where the readers of several executions meet: each ends when all expected are being read at the
/// same time. That is a fact about concurrency that no clock is needed for.
#[derive(Clone)]
pub(crate) struct Meeting {
    expected: usize,
    present: Arc<AtomicUsize>,
    /// The most that were present at one time.
    most: Arc<AtomicUsize>,
    over: Arc<watch::Sender<bool>>,
}

impl Meeting {
    /// A meeting of `expected` readers.
    pub(crate) fn of(expected: usize) -> Self {
        Self {
            expected,
            present: Arc::default(),
            most: Arc::default(),
            over: Arc::new(watch::Sender::new(false)),
        }
    }

    /// Whether all were there at the same time.
    pub(crate) fn took_place(&self) -> bool {
        self.most() >= self.expected
    }

    /// The most readers that were read at one time.
    pub(crate) fn most(&self) -> usize {
        self.most.load(Ordering::SeqCst)
    }

    /// Lets everybody go, those who are still to come included.
    pub(crate) fn end(&self) {
        self.over.send_replace(true);
    }

    /// Lets everybody go when `patience` is over.
    pub(crate) async fn end_after(&self, patience: Duration) {
        let mut over = self.over.subscribe();
        let _ = tokio::time::timeout(patience, over.wait_for(|over| *over)).await;
        self.end();
    }

    /// One that comes to the meeting when it is first read, and gives no bytes.
    pub(crate) fn reader(&self) -> Box<dyn AsyncRead + Send + Unpin> {
        Box::new(Participant {
            meeting: self.clone(),
            wait: None,
        })
    }

    async fn attend(self) {
        let _presence = Presence::new(&self);
        if self.took_place() {
            self.end();
        }
        let mut over = self.over.subscribe();
        // The sender is in `self`: this ends only when the meeting is over.
        let _ = over.wait_for(|over| *over).await;
    }
}

/// One who is counted as present for as long as it lives.
struct Presence<'a>(&'a Meeting);

impl<'a> Presence<'a> {
    fn new(meeting: &'a Meeting) -> Self {
        let present = meeting.present.fetch_add(1, Ordering::SeqCst) + 1;
        meeting.most.fetch_max(present, Ordering::SeqCst);
        Self(meeting)
    }
}

impl Drop for Presence<'_> {
    fn drop(&mut self) {
        self.0.present.fetch_sub(1, Ordering::SeqCst);
    }
}

struct Participant {
    meeting: Meeting,
    wait: Option<Pin<Box<dyn Future<Output = ()> + Send>>>,
}

impl AsyncRead for Participant {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        _: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let meeting = self.meeting.clone();
        let wait = self.wait.get_or_insert_with(|| Box::pin(meeting.attend()));
        // Polled again after its end, it has to end again.
        let Poll::Ready(()) = wait.as_mut().poll(cx) else {
            return Poll::Pending;
        };
        self.wait = Some(Box::pin(std::future::ready(())));
        Poll::Ready(Ok(()))
    }
}
