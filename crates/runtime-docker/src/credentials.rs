//! Credentials for registries, from where `docker login` keeps them.

use std::collections::HashMap;
use std::ffi::OsString;
use std::fmt;
use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use bollard::auth::DockerCredentials;
use prx_runtime_core::{Error, ErrorKind, Result};
use serde::Deserialize;

/// The key under which Docker Hub's credentials are kept.
const HUB_KEY: &str = "https://index.docker.io/v1/";
/// More than any such file has, in bytes.
const LIMIT: u64 = 1 << 20;

/// What is known about access to one registry.
pub(crate) struct Access {
    pub(crate) credentials: Option<DockerCredentials>,
    /// The program that keeps the credentials, which is not run.
    pub(crate) helper: Option<String>,
}

impl fmt::Debug for Access {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Access")
            .field("credentials", &self.credentials.is_some())
            .field("helper", &self.helper)
            .finish()
    }
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", default)]
struct ConfigFile {
    auths: HashMap<String, Auth>,
    creds_store: Option<String>,
    cred_helpers: HashMap<String, String>,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct Auth {
    auth: String,
    username: String,
    password: String,
    identitytoken: String,
}

/// What the Docker configuration file says of `registry` (`docker.io`, `127.0.0.1:5000`).
///
/// # Errors
///
/// [`ErrorKind::Image`] for a file that is there and cannot be understood. No value in it is part
/// of the message.
pub(crate) fn access(registry: &str) -> Result<Access> {
    let nothing = Access {
        credentials: None,
        helper: None,
    };
    let Some(path) = config_path(|name| std::env::var_os(name)) else {
        return Ok(nothing);
    };
    match read(&path) {
        Ok(text) => parse(&text, registry).map_err(|problem| unusable(&path).with_source(problem)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(nothing),
        Err(error) => Err(unusable(&path).with_source(error)),
    }
}

fn unusable(path: &Path) -> Error {
    Error::new(
        ErrorKind::Image,
        format!(
            "the registry credentials in `{}` cannot be read",
            path.display()
        ),
    )
    .with_hint("repair or remove the file; `docker login` writes it anew")
}

/// `$DOCKER_CONFIG/config.json`, else `~/.docker/config.json`.
fn config_path(variable: impl Fn(&str) -> Option<OsString>) -> Option<PathBuf> {
    let set = |name: &str| {
        variable(name)
            .filter(|value| !value.is_empty())
            .map(PathBuf::from)
    };
    let dir = set("DOCKER_CONFIG").or_else(|| Some(set("HOME")?.join(".docker")))?;
    Some(dir.join("config.json"))
}

fn read(path: &Path) -> io::Result<String> {
    let file = File::open(path)?;
    if !file.metadata()?.is_file() {
        return Err(io::Error::new(
            io::ErrorKind::InvalidInput,
            "not a regular file",
        ));
    }
    let mut text = String::new();
    file.take(LIMIT).read_to_string(&mut text)?;
    Ok(text)
}

fn parse(text: &str, registry: &str) -> Result<Access, Box<dyn std::error::Error + Send + Sync>> {
    // The parser's own message may repeat what it found, which may be a secret.
    let config: ConfigFile = serde_json::from_str(text)
        .map_err(|error| format!("line {} is not as expected", error.line()))?;
    let key = if registry == "docker.io" {
        HUB_KEY
    } else {
        registry
    };
    let helper = config.cred_helpers.get(key).or(config.creds_store.as_ref());
    // A file that was written with a scheme is meant as well.
    let names = [
        key.to_owned(),
        format!("https://{key}"),
        format!("http://{key}"),
    ];
    let auth = names.iter().find_map(|name| {
        config
            .auths
            .iter()
            .find(|(known, _)| known.trim_end_matches('/') == name.trim_end_matches('/'))
    });
    let credentials = match auth {
        Some((_, auth)) => credentials(auth, key)?,
        None => None,
    };
    Ok(Access {
        helper: helper.filter(|_| credentials.is_none()).cloned(),
        credentials,
    })
}

fn credentials(
    auth: &Auth,
    key: &str,
) -> Result<Option<DockerCredentials>, Box<dyn std::error::Error + Send + Sync>> {
    let (username, password) = if auth.auth.is_empty() {
        (auth.username.clone(), auth.password.clone())
    } else {
        let malformed = || format!("the auth of `{key}` is not base64 of user:password");
        let decoded = STANDARD.decode(auth.auth.trim()).map_err(|_| malformed())?;
        let decoded = String::from_utf8(decoded).map_err(|_| malformed())?;
        let (username, password) = decoded.split_once(':').ok_or_else(malformed)?;
        (
            username.to_owned(),
            password.trim_end_matches('\0').to_owned(),
        )
    };
    let some = |text: String| Some(text).filter(|text| !text.is_empty());
    let credentials = DockerCredentials {
        username: some(username),
        password: some(password),
        identitytoken: some(auth.identitytoken.clone()),
        serveraddress: Some(key.to_owned()),
        ..Default::default()
    };
    let any = credentials.username.is_some() || credentials.identitytoken.is_some();
    Ok(any.then_some(credentials))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn user(text: &str, registry: &str) -> Option<(String, String)> {
        let credentials = parse(text, registry).unwrap().credentials?;
        Some((credentials.username?, credentials.password?))
    }

    #[test]
    fn every_form_of_credentials() {
        let text = r#"{"auths": {
            "127.0.0.1:5000": {"auth": "YW5hOmE6Yg=="},
            "https://ghcr.io": {"username": "ana", "password": "x"},
            "https://index.docker.io/v1/": {"auth": "aHViOnk="}
        }, "somethingElse": {"x": 1}}"#;
        let pair = |user: &str, password: &str| Some((user.to_owned(), password.to_owned()));
        assert_eq!(user(text, "127.0.0.1:5000"), pair("ana", "a:b"));
        assert_eq!(user(text, "ghcr.io"), pair("ana", "x"));
        assert_eq!(user(text, "docker.io"), pair("hub", "y"));
        assert_eq!(user(text, "other"), None);
    }

    #[test]
    fn a_helper_is_named_where_it_keeps_the_credentials() {
        let text = r#"{"auths": {"a": {}}, "credsStore": "desktop", "credHelpers": {"b": "ecr"}}"#;
        assert_eq!(parse(text, "a").unwrap().helper.as_deref(), Some("desktop"));
        assert_eq!(parse(text, "b").unwrap().helper.as_deref(), Some("ecr"));
    }

    #[test]
    fn no_error_repeats_a_secret() {
        for text in [
            r#"{"auths": {"a": {"auth": "swordfish"}}}"#,
            r#"{"auths": {"a": "swordfish"}}"#,
            "swordfish",
        ] {
            let error = parse(text, "a").unwrap_err().to_string();
            assert!(!error.contains("swordfish"), "{error}");
        }
        let access = parse(
            r#"{"auths": {"a": {"username": "u", "password": "swordfish"}}}"#,
            "a",
        );
        assert!(!format!("{access:?}").contains("swordfish"));
    }

    #[test]
    fn docker_config_names_the_directory() {
        let path = config_path(|name| (name == "DOCKER_CONFIG").then(|| "/c".into()));
        assert_eq!(path, Some("/c/config.json".into()));
        let path = config_path(|name| (name == "HOME").then(|| "/h".into()));
        assert_eq!(path, Some("/h/.docker/config.json".into()));
        assert_eq!(config_path(|_| None), None);
    }
}
