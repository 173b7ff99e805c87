//! The integration tests: one binary, one module a topic.
#![cfg(test)]

// tools
mod harness; // the real binary in a folder of its own
mod raw_server; // bytes as a hostile server sends them
mod reader; // an independent reader of archive, index and logs
mod secure_server; // TLS and HTTP/2
mod shared; // where shared test data lies
mod site;
mod traps; // a local web of several hosts with a log that judges
mod web; // random but seeded webs with their truth

// topics
mod archive; // records and index, judged by the tools of the trade
mod audit; // were the promises kept
mod blocklist; // hosts that are never asked
mod cases; // what other crawlers stumbled over, played by the byte
mod cli; // messages, exit codes and files of the command line
mod conformance; // shared cases of other crawlers and the standards
mod control; // pause, resume, stop
mod cookies; // kept with the job, sent to their own site alone
mod crawl; // whole crawls, behaviour by behaviour
mod damage; // jobs that were broken from outside
mod dedup; // lines in, first occurrences out
mod demo; // the demo, as a newcomer runs it
mod directives; // what pages say to crawlers
mod explain;
mod extract; // links, equal to a DOM parser's
mod filters; // bodies that are left out for what their head says
mod fetch; // one request, every way it can go wrong
mod fields; // fields and links of pages against truth by hand and by lxml
mod fuzz; // bytes that nobody foresaw, at every entrance
mod house; // who may import whom
mod identity; // what counts as one page
mod large; // bodies that memory must not hold
mod kill; // kill -9, again and again
mod pace; // how gently hosts are asked
mod links; // kinds of links, and queries in the encoding of their page
mod lists; // seeds that come from the Web
mod old_jobs; // job folders of earlier versions
mod pack; // an archive as one WACZ file
mod proxies; // ways through a proxy
mod report; // what a job came to
mod seed_rules; // options of single seeds, and of single hosts
mod seen; // what URLs are remembered by, and forgotten again
mod redirects; // where a redirect leads, and why not
mod simulate; // a web of arithmetic, where truth is counted
mod sitemap; // sitemaps and feeds: found, read, bounded
mod survey; // what was met, by estimate
mod status; // where a job stands
mod verify; // archives of any make, byte by byte
mod virtual_time; // whole crawls in virtual time, killed thousands of times
mod wire; // TLS, HTTP/2, kept connections, cuts of the same bytes
