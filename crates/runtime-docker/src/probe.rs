//! Whether an engine answers.

use std::time::Duration;

use prx_runtime_core::Probe;
use tokio::time::timeout;

use crate::engine::Engine;
use crate::greeting::Greeting;

/// The answer comes within 2 s; this is less.
const LIMIT: Duration = Duration::from_millis(1800);

pub(crate) async fn probe(engine: &Engine) -> Probe {
    let ask = async {
        let client = engine.connect().await?;
        let endpoint = client.endpoint().clone();
        Ok((Greeting::ask(&client).await?.name, endpoint))
    };
    match timeout(LIMIT, ask).await {
        Ok(Ok((name, endpoint))) => Probe::available(format!("{name} at {endpoint}")),
        Ok(Err(error)) => Probe::from_error(&error),
        Err(_) => {
            let shown: Vec<_> = engine
                .candidates
                .endpoints
                .iter()
                .map(ToString::to_string)
                .collect();
            Probe::unavailable(format!(
                "no answer within {LIMIT:?} from {}",
                shown.join(", ")
            ))
            .with_hint(
                "the engine accepts connections and does not answer: look at its log, restart it",
            )
        }
    }
}
