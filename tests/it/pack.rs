//! `crawler pack`: one WACZ file that holds what the archive holds, read here by its central directory.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::Read;
use std::path::Path;
use std::time::Duration;

use serde_json::Value;

use crate::harness::Job;
use crate::site::{Answer, Asked, Site};

/// The page that leads to the others.
fn first(pages: u32) -> String {
    let links = (2..=pages).map(|page| format!("<a href=/{page}>{page}</a> "));
    format!(
        "<title>Page 1</title><img src=/picture.png>{}",
        links.collect::<String>()
    )
}

/// A site of so many pages, with a picture, a frame and a page that stands twice.
fn site(pages: u32) -> Site {
    Site::start(1, move |_| {
        move |asked: &Asked| match asked.path.as_str() {
            "/robots.txt" => Answer::not_found(),
            "/picture.png" => Answer::new(200, "image/png", "no picture"),
            "/frame" => Answer::html("<title>In a frame</title>"),
            "/twin" => Answer::html(first(pages)),
            path => match path.trim_start_matches('/').parse::<u32>() {
                Ok(1) => Answer::html(first(pages)),
                Ok(page) if page <= pages => Answer::html(format!(
                    "<title>Page {page} &amp; more</title><iframe src=/frame></iframe>word{page} \
                     <a href=/{}>on</a> <a href=/twin>twin</a>",
                    page + 1
                )),
                _ => Answer::not_found(),
            },
        }
    })
}

/// The files within, and whether each is stored as it is.
fn unpacked(path: &Path) -> BTreeMap<String, (Vec<u8>, bool)> {
    let mut zip = zip::ZipArchive::new(File::open(path).unwrap()).unwrap();
    let mut files = BTreeMap::new();
    for at in 0..zip.len() {
        let mut file = zip.by_index(at).unwrap();
        let stored = file.compression() == zip::CompressionMethod::Stored;
        let mut bytes = Vec::new();
        file.read_to_end(&mut bytes).unwrap();
        files.insert(file.name().unwrap().into_owned(), (bytes, stored));
    }
    files
}

fn lines(files: &BTreeMap<String, (Vec<u8>, bool)>, name: &str) -> Vec<Value> {
    let (bytes, _) = &files[name];
    let text = std::str::from_utf8(bytes).unwrap();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[test]
fn a_finished_job_is_packed_whole_and_what_is_there_is_not_replaced() {
    let site = site(400);
    let job = Job::new(&[site.url(0, "/1")]).flag("--delay", "0ms");
    job.run().assert_code(0);
    job.command(&["pack", "job", "-o", "x.wacz", "--title", "A title", "--text"])
        .assert_code(0);
    job.command(&["verify", "x.wacz"]).assert_code(0);
    let path = job.dir().with_file_name("x.wacz");
    let files = unpacked(&path);
    for entry in fs::read_dir(job.dir().join("archive")).unwrap() {
        let entry = entry.unwrap();
        let within = &files[&format!("archive/{}", entry.file_name().to_string_lossy())];
        assert_eq!(within, &(fs::read(entry.path()).unwrap(), true));
    }
    // more lines than a member holds: a packed index, whose members begin where the list says
    let (packed, stored) = &files["indexes/index.cdx.gz"];
    assert!(stored);
    let mut whole = String::new();
    flate2::read::MultiGzDecoder::new(&packed[..])
        .read_to_string(&mut whole)
        .unwrap();
    assert_eq!(whole, fs::read_to_string(job.dir().join("indexes/index.cdxj")).unwrap());
    let list = String::from_utf8(files["indexes/index.idx"].0.clone()).unwrap();
    assert!(list.starts_with("!meta 0 {\"format\": \"cdxj-gzip-1.0\""), "{list}");
    assert_eq!(list.lines().count(), 1 + whole.lines().count().div_ceil(300));
    for line in list.lines().skip(1) {
        let (first, place) = line.split_once(" {").unwrap();
        let place: Value = serde_json::from_str(&format!("{{{place}")).unwrap();
        let at = usize::try_from(place["offset"].as_u64().unwrap()).unwrap();
        let mut member = String::new();
        flate2::read::GzDecoder::new(&packed[at..])
            .read_to_string(&mut member)
            .unwrap();
        assert!(member.starts_with(first), "{line}");
    }
    let seeds = lines(&files, "pages/pages.jsonl");
    assert_eq!(seeds.len(), 2);
    assert_eq!(
        (&seeds[1]["url"], &seeds[1]["title"]),
        (&site.url(0, "/1").into(), &"Page 1".into())
    );
    let others = lines(&files, "pages/extraPages.jsonl");
    assert_eq!(others.len(), 1 + 399 + 1, "no picture and no frame is a page");
    let of = |path: &str| others.iter().find(|page| page["url"] == site.url(0, path)).unwrap();
    assert_eq!(
        (&of("/7")["title"], &of("/7")["text"]),
        (&"Page 7 & more".into(), &"word7 on twin".into())
    );
    assert_eq!(
        of("/twin")["title"],
        "Page 1",
        "a revisit has the title of what it repeats"
    );
    let package: Value = serde_json::from_slice(&files["datapackage.json"].0).unwrap();
    assert_eq!(
        (&package["title"], &package["mainPageUrl"]),
        (&"A title".into(), &site.url(0, "/1").into())
    );

    let again = job.command(&["pack", "job", "-o", "x.wacz"]);
    again.assert_code(2);
    again.assert_says("x.wacz is there already");
    assert!(!job.dir().with_file_name("x.wacz.partial").exists());
    let nowhere = job.command(&["pack", "job", "-o", "no/folder/x.wacz"]);
    assert_eq!(nowhere.status.code(), Some(1), "{}", nowhere.text());
    job.command(&["pack", "seeds.txt", "-o", "y.wacz"]).assert_code(2);
}

#[test]
fn a_killed_job_is_packed_as_far_as_its_state_vouches_for_it() {
    let site = site(3_000);
    let job = Job::new(&[site.url(0, "/1")]).flag("--delay", "1ms");
    let running = job.start();
    while site.log().fetched().len() < 60 {
        std::thread::sleep(Duration::from_millis(20));
    }
    let refused = job.command(&["pack", "job", "-o", "x.wacz"]);
    refused.assert_code(2);
    refused.assert_says("is being crawled by process");
    assert!(running.kill_after(Duration::ZERO).is_none());
    job.command(&["pack", "job", "-o", "x.wacz"]).assert_code(0);
    job.command(&["verify", "x.wacz"]).assert_code(0);
    let files = unpacked(&job.dir().with_file_name("x.wacz"));
    assert!(lines(&files, "pages/extraPages.jsonl").len() > 10);
}

#[test]
fn a_crawl_packs_at_its_end_if_it_was_asked_to() {
    let site = site(5);
    let job = Job::new(&[site.url(0, "/1")]).switch("--wacz").flag("--max-pages", "3");
    job.run().assert_code(0);
    let pages = |job: &Job| {
        job.command(&["verify", "job/job.wacz"]).assert_code(0);
        let files = unpacked(&job.dir().join("job.wacz"));
        lines(&files, "pages/extraPages.jsonl").len() - 1
    };
    let first = pages(&job);
    let job = job.flag("--max-pages", "100");
    job.run().assert_says("job.wacz: ");
    assert!(pages(&job) > first);
    assert_eq!(pages(&job), 4 + 1);
}
