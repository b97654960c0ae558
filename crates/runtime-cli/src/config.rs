//! `config`, and how every subcommand finds its configuration.

use std::path::{Path, PathBuf};

use prx_runtime::config::{Config, reference};
use prx_runtime::{Error, ErrorKind, Result};

use crate::args::{ConfigCommand, Global};
use crate::exit::{self, Code};
use crate::failure;

/// The configuration in use: the named file, else the user's, else the defaults; then what the
/// command line says otherwise.
///
/// A `config.toml` in the current directory is not looked at: it may come with a project that is
/// not trusted, and it decides about isolation.
pub(crate) fn load(global: &Global) -> Result<Config> {
    let file = match &global.config {
        Some(file) => Some(file.clone()),
        None => found_user_file(),
    };
    let mut config = match file {
        Some(file) => {
            tracing::debug!(file = %file.display(), "configuration");
            Config::load(&file)?
        }
        None => Config::default(),
    };
    if let Some(backend) = &global.backend {
        config.runtime.backend.clone_from(backend);
    }
    config.validate()?;
    Ok(config)
}

/// Where the user's configuration is looked for.
fn user_file() -> Option<PathBuf> {
    let absolute = |name| {
        std::env::var_os(name)
            .map(PathBuf::from)
            .filter(|path| path.is_absolute())
    };
    let directory = if cfg!(windows) {
        absolute("APPDATA")
    } else {
        absolute("XDG_CONFIG_HOME").or_else(|| absolute("HOME").map(|home| home.join(".config")))
    };
    Some(directory?.join("openprx").join("config.toml"))
}

/// The user's configuration, unless there is none. One that cannot be looked at is there: without
/// it, commands would run under weaker rules than the user has set.
fn found_user_file() -> Option<PathBuf> {
    user_file().filter(|file| {
        use std::io::ErrorKind::{NotADirectory, NotFound};

        !file
            .symlink_metadata()
            .is_err_and(|error| matches!(error.kind(), NotFound | NotADirectory))
    })
}

pub(crate) fn run(global: &Global, command: ConfigCommand) -> Result<Code> {
    match command {
        ConfigCommand::Init { file, force } => init(file.or_else(|| global.config.clone()), force),
        ConfigCommand::Check { file } => check(global, file),
        ConfigCommand::Show => {
            failure::print(&load(global)?.redacted().to_toml()?)?;
            Ok(exit::SUCCESS)
        }
        ConfigCommand::Schema => {
            failure::print(&format!("{:#}\n", reference::json_schema()))?;
            Ok(exit::SUCCESS)
        }
    }
}

fn init(file: Option<PathBuf>, force: bool) -> Result<Code> {
    let text = reference::default_file();
    let Some(file) = file.or_else(user_file) else {
        return Err(Error::new(
            ErrorKind::InvalidRequest,
            "there is no configuration directory: HOME is not set",
        )
        .with_hint("name the file to write, or `-` for stdout"));
    };
    if file == Path::new("-") {
        failure::print(&text)?;
        return Ok(exit::SUCCESS);
    }
    let cannot = |error| failure::io(&format!("cannot write `{}`", file.display()), &error);
    if let Some(directory) = file.parent() {
        std::fs::create_dir_all(directory).map_err(cannot)?;
    }
    let mut options = std::fs::OpenOptions::new();
    options.write(true);
    if force {
        options.create(true).truncate(true);
    } else {
        options.create_new(true);
    }
    let mut written = options.open(&file).map_err(|error| match error.kind() {
        std::io::ErrorKind::AlreadyExists => Error::new(
            ErrorKind::InvalidRequest,
            format!("`{}` is there already", file.display()),
        )
        .with_hint("use --force to overwrite it"),
        _ => cannot(error),
    })?;
    std::io::Write::write_all(&mut written, text.as_bytes()).map_err(cannot)?;
    failure::print(&format!("wrote {}\n", file.display()))?;
    Ok(exit::SUCCESS)
}

fn check(global: &Global, file: Option<PathBuf>) -> Result<Code> {
    let Some(file) = file
        .or_else(|| global.config.clone())
        .or_else(found_user_file)
    else {
        failure::print("no configuration file: the defaults are in use\n")?;
        return Ok(exit::SUCCESS);
    };
    Config::load(&file)?;
    let text = std::fs::read_to_string(&file)
        .map_err(|error| failure::io(&format!("cannot read `{}`", file.display()), &error))?;
    for warning in Config::warnings(&text, &file) {
        failure::print(&format!("warning: {warning}\n"))?;
    }
    failure::print(&format!("{}: ok\n", file.display()))?;
    Ok(exit::SUCCESS)
}
