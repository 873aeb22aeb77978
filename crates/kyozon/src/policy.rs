//! The operator's policy as a file: a line for each class of findings, and one with the modules that may hook sensitive
//! functions, and the BPF programs that may call sensitive helpers.

use anyhow::{anyhow, bail, Context, Result};
use kyozon_monitor::class::Class;
use kyozon_monitor::policy::{Action, NotAllowed, Policy, Unsuitable};
use std::fmt::Write as _;
use std::path::Path;
use toml::{Table, Value};

/// The key of the modules and BPF programs that may do what is sensitive.
const ALLOWED: &str = "allow-sensitive-hooks";

/// The policy in `bytes`, the content of `path`: TOML, with a class as each key and an action as its value. Classes
/// without a line have the default's action. `allow-sensitive-hooks` has a list of
/// modules and BPF programs.
///
/// # Errors
///
/// The first line that is wrong, and what to write instead.
pub fn parse(path: &Path, bytes: &[u8]) -> Result<Policy> {
    read(bytes).with_context(|| format!("the policy {} is unusable", path.display()))
}

fn read(bytes: &[u8]) -> Result<Policy> {
    let text = std::str::from_utf8(bytes).map_err(|_| anyhow!("it is not text"))?;
    let table: Table = text.parse().map_err(|error: toml::de::Error| {
        let at = error.span().map_or(0, |span| span.start);
        let line = 1 + text.bytes().take(at).filter(|byte| *byte == b'\n').count();
        anyhow!("line {line}: {}", error.message().replace('\n', ", "))
    })?;
    let mut policy = Policy::default();
    for (key, value) in table {
        if key == ALLOWED {
            allow(&mut policy, &value)?;
            continue;
        }
        let Some(class) = Class::named(&key) else {
            bail!("there is no class {key:?}: kyozon policy shows all, each in quotation marks");
        };
        let name = value
            .as_str()
            .ok_or_else(|| anyhow!("{key}: its action is not a word in quotation marks"))?;
        let action = Action::named(name).ok_or_else(|| {
            let all: Vec<&str> = Action::ALL.iter().map(|action| action.name()).collect();
            anyhow!("{key}: there is no action {name:?}: use one of {}", all.join(", "))
        })?;
        policy.set(class, action).map_err(|unsuitable| match unsuitable {
            Unsuitable::NoRepair => {
                anyhow!("{key}: the monitor has no repair: use report or restart")
            }
            Unsuitable::NoProcess => {
                anyhow!(
                    "{key}: it is not about a process that could be stopped: use report or restart"
                )
            }
            Unsuitable::NoModule => {
                anyhow!("{key}: it blames no module whose hooks could be taken out: use report or restart")
            }
        })?;
    }
    Ok(policy)
}

fn allow(policy: &mut Policy, value: &Value) -> Result<()> {
    let wrong = || anyhow!("{ALLOWED}: it is not a list of words in quotation marks");
    for name in value.as_array().ok_or_else(wrong)? {
        let name = name.as_str().ok_or_else(wrong)?;
        policy.allow(name).map_err(|error| match error {
            NotAllowed::NoName => anyhow!(
                "{ALLOWED}: no module or BPF program has the name {name:?}: use the first word of a line of \
                 /proc/modules, or a name of kyozon inspect bpf"
            ),
            NotAllowed::TooMany => {
                anyhow!("{ALLOWED}: there is room for {} names", Policy::MAX_ALLOWED)
            }
        })?;
    }
    Ok(())
}

/// The policy as a file that [`parse`] reads.
pub fn print(policy: &Policy) -> String {
    let mut text = String::from(
        "# What the monitor does about each class of findings, besides the report.\n\
         # Actions: report (nothing more), restart; where there is a repair, repair and repair-or-restart; where a\n\
         # process can be stopped, stop; where a module is to blame, disarm, which takes its hooks out.\n",
    );
    for class in Class::ALL {
        let line = format!("{:?} = {:?}", class.name(), policy.of(*class).name());
        let note = match (class.is_repairable(), class.is_about_process()) {
            _ if class.blames_module() => "# the module can be disarmed",
            (true, true) => "# has a repair; the process can be stopped",
            (true, false) => "# has a repair",
            (false, true) => "# the process can be stopped",
            (false, false) => "",
        };
        let _ = writeln!(text, "{}", format!("{line:60}{note}").trim_end());
    }
    let allowed: Vec<&str> = policy.allowed().collect();
    let _ = writeln!(
        text,
        "# Modules of which hook.sensitive reports nothing.\n{ALLOWED} = {allowed:?}"
    );
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(text: &str) -> String {
        format!("{:#}", parse(Path::new("p.toml"), text.as_bytes()).unwrap_err())
    }

    #[test]
    fn a_printed_policy_is_read_again() {
        let text = "\"hook.hidden\" = \"disarm\"\n'process.hidden' = 'repair-or-restart'\n\
                    allow-sensitive-hooks = ['falcon', \"tracer_2\"]\n";
        let policy = read(text.as_bytes()).expect("a policy");
        assert_eq!(policy.of(Class::HookHidden), Action::Disarm);
        assert_eq!(policy.of(Class::TextModified), Action::Repair);
        let printed = print(&policy);
        assert_eq!(read(printed.as_bytes()).expect("a policy"), policy);
        assert!(policy.allowed().eq(["falcon", "tracer_2"]));
        assert_eq!(printed.lines().count(), 5 + Class::ALL.len());
        assert_eq!(read(b"").expect("the default"), Policy::default());
    }

    #[test]
    fn a_wrong_line_is_named() {
        for (text, part) in [
            ("\"hook.hidden\" = \"restart\"\nx", "line 2: "),
            (
                "hook.hidden = \"restart\"",
                "there is no class \"hook\": kyozon policy shows all, each in",
            ),
            ("\"hook.hiden\" = \"restart\"", "no class \"hook.hiden\""),
            ("\"hook.hidden\" = \"reboot\"", "no action \"reboot\": use one of report, repair, "),
            ("\"hook.hidden\" = 1", "hook.hidden: its action is not a word"),
            ("\"hook.hidden\" = \"repair\"", "hook.hidden: the monitor has no repair: use report"),
            ("\"hook.hidden\" = \"stop\"", "hook.hidden: it is not about a process"),
            ("\"hook.modified\" = \"disarm\"", "hook.modified: it blames no module"),
            ("allow-sensitive-hooks = 'a'", "allow-sensitive-hooks: it is not a list of words"),
            ("allow-sensitive-hooks = [1]", "allow-sensitive-hooks: it is not a list of words"),
            (
                "allow-sensitive-hooks = ['a-b']",
                "no module or BPF program has the name \"a-b\": use the first",
            ),
            (
                "allow-sensitive-hooks = ['a','b','c','d','e','f','g','h','i']",
                "allow-sensitive-hooks: there is room for 8 names",
            ),
        ] {
            let error = refused(text);
            assert!(error.starts_with("the policy p.toml is unusable: "), "{error}");
            assert!(error.contains(part) && !error.contains('\n'), "{error}");
        }
        let error = parse(Path::new("p"), &[0xff]).unwrap_err();
        assert!(format!("{error:#}").contains("not text"));
    }
}
