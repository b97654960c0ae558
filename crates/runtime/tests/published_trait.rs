//! An adapter by somebody else, with only the three published methods.

use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use prx_runtime::{
    Capabilities, ErrorKind, ExecutionOutput, ExecutionRequest, Result, RuntimeAdapter, Termination,
};

/// Says what it was asked for.
struct Echo {
    works: bool,
}

#[async_trait]
impl RuntimeAdapter for Echo {
    async fn execute(
        &self,
        command: &str,
        args: &[String],
        env: &HashMap<String, String>,
        working_dir: Option<&Path>,
        timeout: Duration,
    ) -> Result<ExecutionOutput> {
        let mut names: Vec<_> = env.keys().collect();
        names.sort();
        let said = format!("{command} {args:?} {names:?} {working_dir:?} {timeout:?}");
        Ok(ExecutionOutput::new(said, "", 3, Duration::from_millis(5)))
    }

    async fn is_available(&self) -> bool {
        self.works
    }

    fn name(&self) -> &str {
        "echo"
    }
}

fn echo() -> Arc<dyn RuntimeAdapter> {
    Arc::new(Echo { works: true })
}

#[tokio::test]
async fn its_output_is_complete() {
    let args = ["a".to_owned()];
    let output = echo()
        .execute("x", &args, &HashMap::new(), None, Duration::from_secs(1))
        .await
        .unwrap();
    assert_eq!(output.stdout.to_string(), "x [\"a\"] [] None 1s");
    assert_eq!(output.exit_code, 3);
    assert_eq!(output.termination, Termination::Exited);
    assert_eq!(output.duration, Duration::from_millis(5));
    assert!(!output.success());
}

#[tokio::test]
async fn a_request_is_put_into_the_words_that_it_has() {
    let said = async |request| echo().run(request).await.unwrap().stdout.to_string();
    let request = ExecutionRequest::program("x")
        .args(["a", "b c"])
        .env("LANG", "C")
        .working_dir("/")
        .timeout(Duration::from_secs(2));
    assert_eq!(
        said(request).await,
        "x [\"a\", \"b c\"] [\"LANG\"] Some(\"/\") 2s"
    );
    let line = ExecutionRequest::shell("ls | wc");
    assert_eq!(said(line).await, "ls | wc [] [] None 60s");
    // Without arguments `execute` takes a line: a program's name must survive that.
    let alone = ExecutionRequest::program("my program");
    assert_eq!(said(alone).await, "'my program' [] [] None 60s");
}

#[tokio::test]
async fn what_it_cannot_say_is_unsupported() {
    for request in [
        ExecutionRequest::program("x").stdin_bytes("in"),
        ExecutionRequest::program("x").max_output_bytes(10),
    ] {
        let error = echo().run(request).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Unsupported);
        assert!(error.message().contains("`echo`"), "{error}");
    }
    let error = echo()
        .spawn(ExecutionRequest::program("x"))
        .await
        .unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unsupported);
}

#[tokio::test]
async fn its_probe_is_its_own_word() {
    assert!(echo().probe().await.available);
    let broken = Echo { works: false };
    let probe = broken.probe().await;
    assert!(!probe.available);
    assert!(!probe.detail.is_empty());
    assert_eq!(echo().capabilities(), Capabilities::default());
}
