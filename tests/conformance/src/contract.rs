//! `docs/contract.md`, from the clauses and their trials.

use std::fmt::Write as _;

use crate::{CONTRACT, Clause, Trial};

const HEAD: &str = "\
# The contract

What every backend keeps, so that where a command runs can be changed by one line of configuration.
A clause that a backend cannot keep is a capability that it declares
([`Capabilities`](../crates/runtime-core/src/adapter.rs)), never a silent difference.

Each clause is held by trials of the conformance suite, [`tests/conformance`](../tests/conformance).
Every backend runs all of them, on both kinds of tokio runtime:
`cargo xtask test --backend native`, or one clause by
`cargo test -p prx-runtime-native --test conformance c05_output`. A trial that means nothing on a
backend is listed with its reason. The suite itself is proved by adapters that break one clause
each (`cargo test -p prx-conformance --test proof`).
";

/// The page `docs/contract.md`: each clause, why it is there, and the trials that hold it.
pub fn contract_markdown() -> String {
    let mut page = HEAD.to_owned();
    for clause in CONTRACT {
        // Writing to a string does not fail.
        let _ = write_clause(&mut page, clause);
    }
    page
}

fn write_clause(page: &mut String, clause: &Clause) -> std::fmt::Result {
    let Clause {
        number,
        module,
        title,
        rule,
        why,
        trials,
    } = clause;
    write!(
        page,
        "\n## C{number} {title}\n\n{rule}\n\n**Why.** {why}\n\n"
    )?;
    writeln!(page, "Held by `{module}`:\n")?;
    for Trial {
        name,
        reason,
        needs,
        ..
    } in *trials
    {
        write!(page, "- `{name}`: {reason}")?;
        if !needs.is_empty() {
            let needs: Vec<_> = needs.iter().map(ToString::to_string).collect();
            write!(page, " *(needs {})*", needs.join(" and "))?;
        }
        page.push('\n');
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn the_page_is_what_the_suite_says() {
        let page = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/contract.md");
        let page = std::fs::read_to_string(page).unwrap().replace("\r\n", "\n");
        assert!(
            page == contract_markdown(),
            "docs/contract.md is not current: cargo xtask docs"
        );
    }

    #[test]
    fn names_are_unique_and_every_clause_has_trials() {
        let names: Vec<_> = CONTRACT
            .iter()
            .flat_map(|clause| clause.trials.iter().map(|trial| clause.name_of(trial)))
            .collect();
        assert_eq!(names.iter().collect::<BTreeSet<_>>().len(), names.len());
        let numbers: Vec<_> = CONTRACT.iter().map(|clause| clause.number).collect();
        assert_eq!(numbers, (1..=14).collect::<Vec<_>>());
        for clause in CONTRACT {
            assert!(
                clause
                    .module
                    .starts_with(&format!("c{:02}_", clause.number))
            );
            assert!(clause.trials.len() >= 4, "{}", clause.module);
        }
    }

    #[test]
    fn reasons_are_sentences() {
        for trial in CONTRACT.iter().flat_map(|clause| clause.trials) {
            assert!(trial.reason.ends_with('.'), "{}", trial.name);
            assert!(!trial.reason.contains('\n'), "{}", trial.name);
        }
    }
}
