//! The integration tests: one binary, one module a topic.

// tools
#[cfg(test)]
mod harness; // the real binary in a folder of its own
#[cfg(test)]
mod reader; // an independent reader of archive, index and logs
#[cfg(test)]
mod shared; // where shared test data lies
#[cfg(test)]
mod site; // a local web of several hosts with a log that judges
#[cfg(test)]
mod web; // random but seeded webs with their truth

// topics
#[cfg(test)]
mod conformance; // shared cases of other crawlers and the standards
#[cfg(test)]
mod crawl; // whole crawls, behaviour by behaviour
#[cfg(test)]
mod demo; // the demo, as a newcomer runs it
#[cfg(test)]
mod house; // who may import whom
#[cfg(test)]
mod kill; // kill -9, again and again
