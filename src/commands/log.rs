//! Where tracing goes: everything to logs/crawler.log, warnings to the screen as well.

use std::fs::OpenOptions;
use std::io;
use std::path::Path;
use std::sync::Arc;

use tracing::Subscriber;
use tracing::level_filters::LevelFilter;
use tracing_subscriber::filter::Targets;
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::registry::LookupSpan;
use tracing_subscriber::util::SubscriberInitExt;
use tracing_subscriber::{Layer, fmt};

use crate::config::Config;
use crate::progress::Screen;

/// Our own events; those of libraries have other targets.
const OURS: &str = "crawler";

/// Starts the log of a job. The first log of a process stays: a second start changes nothing.
///
/// # Errors
/// If the file cannot be opened.
pub(super) fn start(job: &Path, config: &Config, screen: Screen) -> io::Result<()> {
    let path = job.join("logs/crawler.log");
    let file = OpenOptions::new().create(true).append(true).open(path)?;
    let to_screen = fmt::layer()
        .without_time()
        .with_target(false)
        .with_ansi(screen.is_terminal())
        .with_writer(screen)
        .with_filter(Targets::new().with_target(OURS, screen_level(config.quiet)));
    let subscriber = tracing_subscriber::registry()
        .with(file_layer(file, config))
        .with(to_screen);
    // an error here says that there is a log already
    let _ = subscriber.try_init();
    Ok(())
}

fn file_layer<S>(file: std::fs::File, config: &Config) -> Box<dyn Layer<S> + Send + Sync>
where
    S: Subscriber + for<'a> LookupSpan<'a>,
{
    // a full disk is reported where it matters, not once for every line of this log
    let layer = fmt::layer()
        .with_ansi(false)
        .log_internal_errors(false)
        .with_writer(Arc::new(file));
    let filter = file_filter(config.verbose);
    if config.log_json {
        layer.json().with_filter(filter).boxed()
    } else {
        layer.with_filter(filter).boxed()
    }
}

fn screen_level(quiet: bool) -> LevelFilter {
    if quiet { LevelFilter::ERROR } else { LevelFilter::WARN }
}

fn file_filter(verbose: u8) -> Targets {
    let (ours, others) = match verbose {
        0 => (LevelFilter::INFO, LevelFilter::WARN),
        1 => (LevelFilter::DEBUG, LevelFilter::INFO),
        2 => (LevelFilter::TRACE, LevelFilter::DEBUG),
        _ => (LevelFilter::TRACE, LevelFilter::TRACE),
    };
    Targets::new().with_target(OURS, ours).with_default(others)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_v_says_more() {
        use tracing::Level;
        for (verbose, debug, trace, theirs) in [
            (0, false, false, false),
            (1, true, false, false),
            (2, true, true, true),
            (3, true, true, true),
        ] {
            let filter = file_filter(verbose);
            assert!(filter.would_enable("crawler::ledger", &Level::INFO));
            assert_eq!(
                filter.would_enable("crawler::ledger", &Level::DEBUG),
                debug,
                "{verbose}"
            );
            assert_eq!(
                filter.would_enable("crawler::ledger", &Level::TRACE),
                trace,
                "{verbose}"
            );
            assert_eq!(filter.would_enable("hyper::client", &Level::DEBUG), theirs, "{verbose}");
        }
    }

    #[test]
    fn a_line_of_the_log_is_text_or_json() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir(folder.path().join("logs")).unwrap();
        for log_json in [false, true] {
            let path = folder.path().join("logs/crawler.log");
            let file = std::fs::File::create(&path).unwrap();
            let config = Config {
                log_json,
                ..Config::default()
            };
            let subscriber = tracing_subscriber::registry().with(file_layer(file, &config));
            tracing::subscriber::with_default(subscriber, || tracing::info!(target: "crawler::x", pages = 3, "hello"));
            let text = std::fs::read_to_string(&path).unwrap();
            assert_eq!(
                serde_json::from_str::<serde_json::Value>(&text).is_ok(),
                log_json,
                "{text}"
            );
            assert!(text.contains("hello") && text.contains("pages"), "{text}");
        }
    }
}
