//! How the settings of the cases are said to the crawler: the one table.

use std::collections::BTreeMap;

use serde_json::Value;

use super::format::Case;

/// A setting of the cases.
struct Setting {
    name: &'static str,
    /// Its value when a case says nothing, as JSON.
    default: &'static str,
    /// Its flags, from its value.
    say: fn(&Value) -> Vec<String>,
}

/// What is off by default and has no flag yet is named by the flag it is to have: a case that needs it then fails at
/// the command line until it is built.
const TABLE: &[Setting] = &[
    Setting {
        name: "user_agent",
        default: r#""casebot/1.0""#,
        say: |value| flag("--user-agent", value),
    },
    Setting {
        name: "delay_ms",
        default: "0",
        say: |value| flag("--delay", format!("{value}ms")),
    },
    Setting {
        name: "delay_per_address",
        default: "false",
        say: |value| {
            if *value == true {
                vec!["--delay-per-address".to_owned()]
            } else {
                Vec::new()
            }
        },
    },
    Setting {
        name: "per_host_connections",
        default: "2",
        say: |value| flag("--per-host-connections", value),
    },
    Setting {
        name: "retries",
        default: "1",
        say: |value| flag("--retries", value),
    },
    Setting {
        name: "header_timeout_s",
        default: "2",
        say: |value| flag("--header-timeout", format!("{value}s")),
    },
    Setting {
        name: "fetch_timeout_s",
        default: "5",
        say: |value| flag("--timeout", format!("{value}s")),
    },
    Setting {
        name: "max_body_mb",
        default: "8",
        say: |value| flag("--max-body", format!("{value}MiB")),
    },
    Setting {
        name: "max_wait_s",
        default: "30",
        say: |value| flag("--max-wait", format!("{value}s")),
    },
    Setting {
        name: "bloom_capacity",
        default: "100000",
        say: |value| flag("--capacity", value),
    },
    Setting {
        name: "max_redirects",
        default: "10",
        say: |value| constant(value, u64::from(crawler::visit::judge::MAX_REDIRECTS)),
    },
    Setting {
        name: "max_url_bytes",
        default: "8190",
        say: |value| constant(value, crawler::url::MAX_URL_BYTES as u64),
    },
    Setting {
        name: "max_pages",
        default: "null",
        say: |value| {
            if value.is_null() {
                Vec::new()
            } else {
                flag("--max-pages", value)
            }
        },
    },
    Setting {
        name: "scope",
        default: r#""seeds""#,
        say: |value| {
            if value == "any" {
                flag("--scope", "any")
            } else {
                Vec::new()
            }
        },
    },
    Setting {
        name: "allow_addresses",
        default: r#"["127.0.0.0/8"]"#,
        say: |value| each(value, |range| flag("--allow-address", range)),
    },
    Setting {
        name: "block_hosts",
        default: "[]",
        say: |value| {
            each(value, |host| {
                flag("--exclude", format!("^https?://{}[:/]", regex::escape(host)))
            })
        },
    },
    Setting {
        name: "cookies",
        default: "false",
        say: |value| switch("--keep-cookies", value),
    },
    Setting {
        name: "sitemaps",
        default: "false",
        say: |value| flag("--sitemaps", if *value == true { "yes" } else { "no" }),
    },
    Setting {
        name: "strip_session_ids",
        default: "false",
        say: |value| switch("--strip-session-ids", value),
    },
    Setting {
        name: "checkpoint_every_ms",
        default: "1000",
        say: |value| flag("--checkpoint-every", format!("{value}ms")),
    },
];

/// The cases count each page. At the crawler's own rate a filter of this size takes one new address in a thousand for
/// seen, as it promises; here none is to be lost by chance.
const FP_RATE: &str = "0.000001";

/// A scope of named hosts takes both settings at once: any address, if its host is one of them.
const SCOPE_HOSTS: &str = "scope_hosts";
const SCOPE_ANY_PORT: &str = "scope_any_port";

/// The flags of a run: the case's settings, what `more` says otherwise, and the defaults.
pub(crate) fn flags(case: &Case, more: &BTreeMap<String, Value>, port: u16) -> Vec<String> {
    let mut settings = case.settings.clone();
    settings.extend(more.clone());
    let mut flags = flag("--fp-rate", FP_RATE);
    for setting in TABLE {
        let default = || serde_json::from_str(setting.default).unwrap();
        flags.extend((setting.say)(&settings.remove(setting.name).unwrap_or_else(default)));
    }
    let any_port = settings.remove(SCOPE_ANY_PORT).is_some_and(|value| value == true);
    if let Some(hosts) = settings.remove(SCOPE_HOSTS) {
        let ports = if any_port {
            r":\d+".to_owned()
        } else {
            format!(":{port}")
        };
        flags.extend(flag("--scope", "any"));
        flags.extend(each(&hosts, |host| {
            flag("--include", format!("^https?://{}{ports}/", regex::escape(host)))
        }));
    }
    assert!(settings.is_empty(), "settings that no flag says: {settings:?}");
    for (key, host) in &case.hosts {
        let name = host.name.as_deref().unwrap_or(key);
        flags.extend(flag("--resolve", format!("{name}:{}:{}", port + host.port, host.ip)));
    }
    flags
}

fn flag(name: &str, value: impl std::fmt::Display) -> Vec<String> {
    vec![name.to_owned(), value.to_string().trim_matches('"').to_owned()]
}

fn switch(name: &str, value: &Value) -> Vec<String> {
    // one word: of a switch the value is optional and never the next word
    if *value == true {
        vec![format!("{name}=yes")]
    } else {
        Vec::new()
    }
}

fn each(values: &Value, say: impl Fn(&str) -> Vec<String>) -> Vec<String> {
    values
        .as_array()
        .unwrap()
        .iter()
        .flat_map(|value| say(value.as_str().unwrap()))
        .collect()
}

/// No flag: the crawler has one bound for all crawls.
fn constant(value: &Value, own: u64) -> Vec<String> {
    assert_eq!(value.as_u64(), Some(own), "the crawler's bound is another");
    Vec::new()
}
