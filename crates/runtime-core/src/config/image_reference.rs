//! Names of container images.

/// What is wrong with `reference` as `[registry/]repository[:tag][@digest]`, if anything.
///
/// Plausible, not existing: whether there is such an image only the engine knows.
pub(super) fn check(reference: &str) -> Result<(), String> {
    let problem = |what: &str| {
        Err(format!(
            "{reference:?} {what}; expected an image such as \"debian:bookworm-slim\""
        ))
    };
    if reference.is_empty() {
        return Err("is empty; expected an image such as \"debian:bookworm-slim\"".to_owned());
    }
    if reference.contains(|c: char| c.is_whitespace() || c.is_control()) {
        return problem("contains a blank");
    }
    let (name, digest) = match reference.split_once('@') {
        Some((name, digest)) => (name, Some(digest)),
        None => (reference, None),
    };
    if digest.is_some_and(|digest| !is_digest(digest)) {
        return problem("has no usable digest after `@` (algorithm:hex)");
    }
    // A colon before the last slash parts the registry from its port.
    let (name, tag) = match name.rsplit_once(':') {
        Some((name, tag)) if !tag.contains('/') => (name, Some(tag)),
        _ => (name, None),
    };
    if tag.is_some_and(|tag| !is_tag(tag)) {
        return problem("has no usable tag after `:`");
    }
    let repository = match name.split_once('/') {
        Some((first, rest)) if is_registry(first) => rest,
        _ => name,
    };
    if repository.contains(|c: char| c.is_uppercase()) {
        return problem("has capital letters in its repository");
    }
    if !repository.split('/').all(is_component) {
        return problem("is no image name");
    }
    Ok(())
}

/// A host name, told from the first part of a repository by its dot, its port, or a capital.
fn is_registry(text: &str) -> bool {
    let marked = text.contains(['.', ':']) || text == "localhost" || text.starts_with('[');
    let spelled = text
        .bytes()
        .all(|byte| byte.is_ascii_alphanumeric() || b".-_:[]".contains(&byte));
    marked && spelled && !text.starts_with(['.', ':'])
}

/// Lowercase letters and digits, with `.`, `_` and `-` between them.
fn is_component(text: &str) -> bool {
    let alphanumeric = |byte: &u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    let bytes = text.as_bytes();
    bytes.first().is_some_and(alphanumeric)
        && bytes.last().is_some_and(alphanumeric)
        && bytes
            .iter()
            .all(|byte| alphanumeric(byte) || b"._-".contains(byte))
}

fn is_tag(text: &str) -> bool {
    (1..=128).contains(&text.len())
        && !text.starts_with(['.', '-'])
        && text
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || b"._-".contains(&byte))
}

fn is_digest(text: &str) -> bool {
    text.split_once(':').is_some_and(|(algorithm, hex)| {
        algorithm.starts_with(|c: char| c.is_ascii_alphabetic())
            && hex.len() >= 32
            && hex.bytes().all(|byte| byte.is_ascii_hexdigit())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plausible_references_pass() {
        let digest = format!("debian@sha256:{}", "ab".repeat(32));
        for reference in [
            "debian",
            "debian:bookworm-slim",
            "library/debian:12",
            "ghcr.io/open-prx/tool_set:v1.0",
            "localhost:5000/x",
            "localhost/x",
            "REGISTRY.example.com/a/b/c",
            "[::1]:5000/x",
            "a__b/c--d",
            digest.as_str(),
        ] {
            assert_eq!(check(reference), Ok(()), "{reference}");
        }
    }

    #[test]
    fn errors_say_what_is_wrong() {
        for (reference, problem) in [
            ("", "is empty"),
            ("debian 12", "\"debian 12\" contains a blank"),
            ("Debian", "\"Debian\" has capital letters in its repository"),
            ("debian:", "\"debian:\" has no usable tag after `:`"),
            ("debian:-x", "\"debian:-x\" has no usable tag after `:`"),
            (
                "debian@sha256:ab",
                "\"debian@sha256:ab\" has no usable digest after `@`",
            ),
            ("a//b", "\"a//b\" is no image name"),
            ("/debian", "\"/debian\" is no image name"),
            ("-debian", "\"-debian\" is no image name"),
            ("https://x.io/a", "\"https://x.io/a\" is no image name"),
        ] {
            let found = check(reference).unwrap_err();
            assert!(found.starts_with(problem), "{found}");
        }
    }
}
