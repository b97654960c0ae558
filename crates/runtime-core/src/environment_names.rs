//! Which names of environment variables are never let through, whoever asks.
//!
//! Two questions, both about the name alone: does a variable make a program load or run code of the
//! variable's choosing before the program itself has said anything ([`is_loader_variable`]), and
//! does it look like it holds a secret ([`is_secret_shaped`])? The environment rules and the check
//! of the configuration ask both; nothing else decides.
//!
//! Not on the list, on purpose: variables that choose a program a person sees and starts
//! (`EDITOR`, `PAGER`, `BROWSER`, `SHELL`), the ordinary places (`PATH`, `HOME`, `TMPDIR`,
//! `XDG_*`), and `IFS`, which every shell resets when it starts.

/// Families: every name that begins with one of these.
const LOADER_PREFIXES: &[&str] = &[
    // The dynamic loaders of ELF systems and of macOS.
    "LD_",
    "DYLD_",
    "__XPC_DYLD_",
    // Functions exported by bash are code that bash defines at its start.
    "BASH_FUNC_",
    // A whole configuration of git by variables: hooks path, pager, ssh command, aliases.
    "GIT_CONFIG",
    // Profilers of .NET are libraries loaded before the first managed instruction.
    "COR_",
    "CORECLR_",
    // Lua reads these with a version behind them, too: LUA_INIT_5_4.
    "LUA_INIT",
    "LUA_PATH",
    "LUA_CPATH",
];

/// Single names, by what reads them. Sorted within each group.
const LOADER_NAMES: &[&str] = &[
    // The C library: converters, locales and tunables are read before `main`.
    "GCONV_PATH",
    "GETCONF_DIR",
    "GLIBC_TUNABLES",
    "LOCPATH",
    "NLSPATH",
    // Shells: files run at the start, and text that is expanded or run around every command.
    "BASHOPTS",
    "BASH_ENV",
    "BASH_LOADABLES_PATH",
    "ENV",
    "FPATH",
    "PROMPT_COMMAND",
    "PS4",
    "SHELLOPTS",
    "ZDOTDIR",
    // Python. PYTHONWARNINGS imports the module that a warning's category names.
    "PYTHONBREAKPOINT",
    "PYTHONEXECUTABLE",
    "PYTHONHOME",
    "PYTHONPATH",
    "PYTHONPLATLIBDIR",
    "PYTHONPYCACHEPREFIX",
    "PYTHONSTARTUP",
    "PYTHONUSERBASE",
    "PYTHONWARNINGS",
    // Perl.
    "PERL5DB",
    "PERL5LIB",
    "PERL5OPT",
    "PERL5SHELL",
    "PERLLIB",
    // Ruby.
    "BUNDLE_GEMFILE",
    "GEM_HOME",
    "GEM_PATH",
    "JRUBY_OPTS",
    "RUBYGEMS_GEMDEPS",
    "RUBYLIB",
    "RUBYOPT",
    "RUBYSHELL",
    // JavaScript.
    "BUN_INSPECT_PRELOAD",
    "BUN_OPTIONS",
    "NODE_OPTIONS",
    "NODE_PATH",
    "NODE_REPL_EXTERNAL_MODULE",
    // Java: agents and class paths; the *_OPTS are added by the start scripts of the tools.
    "ANT_OPTS",
    "CATALINA_OPTS",
    "CLASSPATH",
    "GRADLE_OPTS",
    "IBM_JAVA_OPTIONS",
    "JAVA_OPTS",
    "JAVA_TOOL_OPTIONS",
    "JDK_JAVA_OPTIONS",
    "MAVEN_OPTS",
    "OPENJ9_JAVA_OPTIONS",
    "SBT_OPTS",
    "_JAVA_OPTIONS",
    // .NET and PowerShell.
    "DOTNET_ADDITIONAL_DEPS",
    "DOTNET_SHARED_STORE",
    "DOTNET_STARTUP_HOOKS",
    "PSMODULEPATH",
    // Other languages.
    "CAML_LD_LIBRARY_PATH",
    "ELIXIR_ERL_OPTIONS",
    "EMACSLOADPATH",
    "ERL_AFLAGS",
    "ERL_FLAGS",
    "ERL_LIBS",
    "ERL_ZFLAGS",
    "EXINIT",
    "GOFLAGS",
    "GUILE_LOAD_COMPILED_PATH",
    "GUILE_LOAD_PATH",
    "JULIA_DEPOT_PATH",
    "JULIA_LOAD_PATH",
    "PHPRC",
    "PHP_INI_SCAN_DIR",
    "RUSTC_WORKSPACE_WRAPPER",
    "RUSTC_WRAPPER",
    "R_ENVIRON",
    "R_ENVIRON_USER",
    "R_HOME",
    "R_LIBS",
    "R_LIBS_SITE",
    "R_LIBS_USER",
    "R_PROFILE",
    "R_PROFILE_USER",
    "TCLLIBPATH",
    "VIMINIT",
    // Tools that run, without being asked to, a command the variable names.
    "CVS_RSH",
    "GIT_ASKPASS",
    "GIT_EDITOR",
    "GIT_EXEC_PATH",
    "GIT_EXTERNAL_DIFF",
    "GIT_PAGER",
    "GIT_PROXY_COMMAND",
    "GIT_SEQUENCE_EDITOR",
    "GIT_SSH",
    "GIT_SSH_COMMAND",
    "GIT_TEMPLATE_DIR",
    "GNUMAKEFLAGS",
    "LESSCLOSE",
    "LESSOPEN",
    "MAKEFILES",
    "MAKEFLAGS",
    "RSYNC_RSH",
    "SSH_ASKPASS",
    "SUDO_ASKPASS",
    "SVN_SSH",
    "TAR_OPTIONS",
    // Libraries that load plug-ins from where the variable says.
    "GDK_PIXBUF_MODULE_FILE",
    "GIO_EXTRA_MODULES",
    "GIO_MODULE_DIR",
    "GTK_MODULES",
    "GTK_PATH",
    "KRB5_CONFIG",
    "OPENSSL_CONF",
    "OPENSSL_ENGINES",
    "OPENSSL_MODULES",
    "QT_PLUGIN_PATH",
    "SASL_PATH",
];

/// Names that npm reads whatever their case.
const NPM_NAMES: &[&str] = &[
    "npm_config_node_options",
    "npm_config_script_shell",
    "npm_config_shell",
];

/// Whether `name` makes a loader, a shell, an interpreter or a common tool run code that the
/// variable chooses: `LD_PRELOAD`, `BASH_ENV`, `NODE_OPTIONS`, `GIT_SSH_COMMAND` and their kin.
///
/// Such a variable turns a harmless command into any other, so it is taken neither from the host
/// nor from a call; only the operator's literal `env` may hold one. Names are compared as the
/// operating system compares them: by case, except on Windows.
///
/// ```
/// # use prx_runtime_core::is_loader_variable;
/// assert!(is_loader_variable("LD_PRELOAD"));
/// assert!(is_loader_variable("BASH_FUNC_ls%%"));
/// assert!(!is_loader_variable("LANG"));
/// ```
pub fn is_loader_variable(name: &str) -> bool {
    if NPM_NAMES.iter().any(|npm| name.eq_ignore_ascii_case(npm)) {
        return true;
    }
    let folded;
    let name = if cfg!(windows) {
        folded = name.to_ascii_uppercase();
        folded.as_str()
    } else {
        name
    };
    LOADER_NAMES.contains(&name)
        || LOADER_PREFIXES
            .iter()
            .any(|prefix| name.starts_with(prefix))
}

/// Fragments that make a name secret wherever they stand in it.
const SECRET_FRAGMENTS: &[&str] = &[
    "TOKEN",
    "SECRET",
    "PASSWORD",
    "PASSWD",
    "PASSPHRASE",
    "CREDENTIAL",
];

/// Whether `name` looks like the name of a secret: `OPENAI_API_KEY`, `GITHUB_TOKEN`, `MYSQL_PWD`.
///
/// A name is secret-shaped when it contains `TOKEN`, `SECRET`, `PASSWORD`, `PASSWD`, `PASSPHRASE`
/// or `CREDENTIAL`, or when one of its words (separated by `_`, `-` or `.`, digits at the end
/// ignored) ends with `KEY` or `KEYS` or is `PASS` or `PWD`. Case does not matter. `PWD` and
/// `OLDPWD` are the shell's directories and no secrets. A rule by shape errs towards refusing:
/// `MONKEY` is secret-shaped, too.
///
/// ```
/// # use prx_runtime_core::is_secret_shaped;
/// assert!(is_secret_shaped("AWS_ACCESS_KEY_ID"));
/// assert!(!is_secret_shaped("KEYBOARD_LAYOUT"));
/// ```
pub fn is_secret_shaped(name: &str) -> bool {
    let name = name.to_ascii_uppercase();
    if name == "PWD" || name == "OLDPWD" {
        return false;
    }
    SECRET_FRAGMENTS
        .iter()
        .any(|fragment| name.contains(fragment))
        || name.split(['_', '-', '.']).any(|word| {
            let word = word.trim_end_matches(|c: char| c.is_ascii_digit());
            word.ends_with("KEY") || word.ends_with("KEYS") || word == "PASS" || word == "PWD"
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    const ORDINARY: &[&str] = &[
        "PATH",
        "HOME",
        "TERM",
        "LANG",
        "USER",
        "LOGNAME",
        "SHELL",
        "LC_ALL",
        "TZ",
        "TMPDIR",
        "KEYBOARD_LAYOUT",
        "PWD",
        "OLDPWD",
        "EDITOR",
        "PAGER",
        "COLORTERM",
        "NO_COLOR",
        "CI",
        "XDG_CONFIG_HOME",
        "PYTHONUNBUFFERED",
        "PYTHONIOENCODING",
        "GIT_AUTHOR_NAME",
        "GIT_DIR",
        "NODE_ENV",
        "CARGO_HOME",
        "JAVA_HOME",
        "GOPATH",
        "RUST_LOG",
        "RUSTFLAGS",
        "HTTP_PROXY",
        "SSH_AUTH_SOCK",
        "ENVIRONMENT",
        "OLD_PATH",
        "SSLKEYLOGFILE",
        "BYPASS",
        "COMPASS_MODE",
        "",
    ];

    #[test]
    fn ordinary_names_are_neither() {
        for name in ORDINARY {
            assert!(!is_loader_variable(name), "{name} as a loader variable");
            assert!(!is_secret_shaped(name), "{name} as a secret");
        }
    }

    #[test]
    fn loader_and_start_up_variables_are_known() {
        for name in [
            "LD_PRELOAD",
            "LD_AUDIT",
            "LD_LIBRARY_PATH",
            "LD_SOMETHING_NEW",
            "DYLD_INSERT_LIBRARIES",
            "BASH_ENV",
            "ENV",
            "BASH_FUNC_ls%%",
            "SHELLOPTS",
            "BASHOPTS",
            "PS4",
            "PROMPT_COMMAND",
            "ZDOTDIR",
            "PYTHONSTARTUP",
            "PYTHONPATH",
            "PYTHONHOME",
            "PERL5OPT",
            "PERL5LIB",
            "PERL5DB",
            "RUBYOPT",
            "RUBYLIB",
            "NODE_OPTIONS",
            "NODE_PATH",
            "NPM_CONFIG_NODE_OPTIONS",
            "npm_config_script_shell",
            "JAVA_TOOL_OPTIONS",
            "_JAVA_OPTIONS",
            "JDK_JAVA_OPTIONS",
            "CORECLR_PROFILER_PATH",
            "DOTNET_STARTUP_HOOKS",
            "GCONV_PATH",
            "LOCPATH",
            "GIT_SSH_COMMAND",
            "GIT_EXTERNAL_DIFF",
            "GIT_CONFIG_KEY_0",
            "LUA_INIT_5_4",
            "LESSOPEN",
            "TAR_OPTIONS",
            "OPENSSL_CONF",
        ] {
            assert!(is_loader_variable(name), "{name}");
        }
    }

    #[cfg(not(windows))]
    #[test]
    fn loader_variables_are_compared_by_case() {
        assert!(!is_loader_variable("ld_preload"));
        assert!(!is_loader_variable("env"));
    }

    #[cfg(windows)]
    #[test]
    fn loader_variables_are_compared_without_case() {
        assert!(is_loader_variable("PSModulePath"));
        assert!(is_loader_variable("node_options"));
    }

    #[test]
    fn secret_shapes_are_known() {
        for name in [
            "OPENAI_API_KEY",
            "APIKEY",
            "api_key",
            "AWS_ACCESS_KEY_ID",
            "API_KEY2",
            "SSH_KEYS",
            "KEY",
            "GITHUB_TOKEN",
            "TOKENS_PATH",
            "AWS_SECRET_ACCESS_KEY",
            "ClientSecret",
            "DB_PASSWORD",
            "DB_PASSWD",
            "DB_PASS",
            "GPG_PASSPHRASE",
            "GOOGLE_APPLICATION_CREDENTIALS",
            "MYSQL_PWD",
            "npm-token",
        ] {
            assert!(is_secret_shaped(name), "{name}");
        }
    }

    #[test]
    fn every_listed_name_is_listed_once() {
        let mut names = LOADER_NAMES.to_vec();
        names.sort_unstable();
        let listed = names.len();
        names.dedup();
        assert_eq!(names.len(), listed);
        for name in names {
            assert!(
                !LOADER_PREFIXES
                    .iter()
                    .any(|prefix| name.starts_with(prefix)),
                "{name} is covered by a prefix"
            );
        }
    }
}
