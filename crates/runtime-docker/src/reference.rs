//! Names of images.

use prx_runtime_core::{Error, ErrorKind, Result};

/// A name of an image, checked: nothing in it can lead a request elsewhere.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct Reference {
    text: String,
    /// Without tag and digest.
    repository: String,
    /// A tag, or a digest where the name has one.
    version: String,
    registry: String,
}

impl Reference {
    /// # Errors
    ///
    /// [`ErrorKind::InvalidConfig`] for what is no `[registry/]repository[:tag][@digest]` and no
    /// `sha256:…` id.
    pub(crate) fn parse(text: &str, key: &str) -> Result<Self> {
        let invalid = || {
            Error::new(
                ErrorKind::InvalidConfig,
                format!("{key}: `{text}` is no name of an image"),
            )
            .with_hint(
                "expected [registry/]repository[:tag][@digest], such as debian:bookworm-slim",
            )
        };
        if let Some(id) = text.strip_prefix("sha256:") {
            if id.len() < 12 || !is_hex(id) {
                return Err(invalid());
            }
            return Ok(Self {
                text: text.to_owned(),
                repository: text.to_owned(),
                version: String::new(),
                registry: String::new(),
            });
        }
        let (name, digest) = match text.split_once('@') {
            Some((name, digest)) => (name, Some(digest)),
            None => (text, None),
        };
        // A colon before the last slash is that of a port.
        let (repository, tag) = match name.rsplit_once(':') {
            Some((repository, tag)) if !tag.contains('/') => (repository, Some(tag)),
            _ => (name, None),
        };
        let digest_ok = digest.is_none_or(|digest| {
            digest.split_once(':').is_some_and(|(algorithm, hex)| {
                algorithm.starts_with("sha")
                    && algorithm.bytes().all(|b| b.is_ascii_alphanumeric())
                    && hex.len() >= 32
                    && is_hex(hex)
            })
        });
        let tag_ok = tag.is_none_or(|tag| {
            (1..=128).contains(&tag.len())
                && !tag.starts_with(['.', '-'])
                && tag
                    .bytes()
                    .all(|b| b.is_ascii_alphanumeric() || b"_.-".contains(&b))
        });
        let mut parts = repository.split('/').peekable();
        let first = parts.peek().copied().unwrap_or_default();
        let has_registry =
            repository.contains('/') && (first.contains(['.', ':']) || first == "localhost");
        let registry_ok = !has_registry
            || first
                .bytes()
                .all(|b| b.is_ascii_alphanumeric() || b".-:[]".contains(&b))
                && !first.starts_with(['.', '-', ':'])
                && !first.contains("..");
        let skip = usize::from(has_registry);
        let parts_ok = parts.skip(skip).all(is_part) && repository.len() <= 255;
        if !(digest_ok && tag_ok && registry_ok && parts_ok) {
            return Err(invalid());
        }
        Ok(Self {
            text: text.to_owned(),
            repository: repository.to_owned(),
            version: digest.or(tag).unwrap_or("latest").to_owned(),
            registry: if has_registry { first } else { "docker.io" }.to_owned(),
        })
    }

    /// The name as it was written.
    pub(crate) fn as_str(&self) -> &str {
        &self.text
    }

    /// The name without tag and digest.
    pub(crate) fn repository(&self) -> &str {
        &self.repository
    }

    /// The digest, or else the tag; `latest` where the name has neither.
    pub(crate) fn version(&self) -> &str {
        &self.version
    }

    /// The registry's host; empty for an id, which no registry has.
    pub(crate) fn registry(&self) -> &str {
        &self.registry
    }
}

fn is_hex(text: &str) -> bool {
    text.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f'))
}

fn is_part(part: &str) -> bool {
    let edge = |b: Option<u8>| b.is_some_and(|b| b.is_ascii_lowercase() || b.is_ascii_digit());
    edge(part.bytes().next())
        && edge(part.bytes().last())
        && part
            .bytes()
            .all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b"_.-".contains(&b))
        && !part.contains("..")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_taken_apart() {
        let digest = format!("sha256:{}", "a".repeat(64));
        for (text, registry, repository, version) in [
            ("debian".to_owned(), "docker.io", "debian", "latest"),
            (
                "debian:bookworm-slim".to_owned(),
                "docker.io",
                "debian",
                "bookworm-slim",
            ),
            (
                "library/debian".to_owned(),
                "docker.io",
                "library/debian",
                "latest",
            ),
            ("ghcr.io/a/b:1".to_owned(), "ghcr.io", "ghcr.io/a/b", "1"),
            (
                "localhost/a".to_owned(),
                "localhost",
                "localhost/a",
                "latest",
            ),
            (
                "127.0.0.1:5000/a".to_owned(),
                "127.0.0.1:5000",
                "127.0.0.1:5000/a",
                "latest",
            ),
            (format!("h:1/a@{digest}"), "h:1", "h:1/a", &digest),
            (format!("h:1/a:t@{digest}"), "h:1", "h:1/a", &digest),
        ] {
            let reference = Reference::parse(&text, "image").unwrap();
            assert_eq!(reference.registry(), registry, "{text}");
            assert_eq!(reference.repository(), repository, "{text}");
            assert_eq!(reference.version(), version, "{text}");
        }
    }

    #[test]
    fn nothing_else_is_a_name() {
        for text in [
            "",
            "Debian",
            "a b",
            "../../containers/x",
            "a/../b",
            "a..b/c",
            "a?x=1",
            "a#b",
            "a%2fb",
            "/a",
            "a/",
            "a:",
            "a@sha256:xyz",
            "a@",
            "-a",
            "a:-x",
            "sha256:short",
            "a\nb",
            "http://a/b",
            "a//b",
        ] {
            let error = Reference::parse(text, "runtime.docker.image").unwrap_err();
            assert_eq!(error.kind(), ErrorKind::InvalidConfig, "{text}");
        }
    }
}
