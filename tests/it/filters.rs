//! Bodies that are left out for what the head of their answer says.

use crate::harness::Job;
use crate::site::{Answer, Asked, Site};

fn site() -> Site {
    Site::start(1, |_| {
        |asked: &Asked| match asked.path.as_str() {
            "/" => Answer::new(200, "application/x-seed", "http://127.0.0.2/ignored"),
            "/start" => Answer::html(
                "<a href=/film.mp4>f</a><a href=/note.bin>n</a><a href=/long.html>l</a><a href=/page>p</a>\
                 <img src=/pic.png><a href=/moved>m</a><a href=/untyped>u</a>",
            ),
            "/film.mp4" => Answer::new(200, "video/mp4", vec![b'x'; 4 << 20]),
            "/note.bin" => Answer::new(200, "application/octet-stream", "short"),
            "/long.html" => Answer::html(format!("<a href=/behind>b</a>{}", "x".repeat(200_000))),
            "/pic.png" => Answer::new(200, "image/png", "pixels"),
            "/moved" => Answer::new(301, "video/mp4", "").with("Location", "/page2"),
            "/page" | "/page2" | "/untyped" => Answer::html("a page"),
            _ => Answer::not_found(),
        }
    })
}

#[test]
fn bodies_of_other_types_and_sizes_are_not_had_and_not_archived() {
    let site = site();
    let job = Job::new(&[site.url(0, "/"), site.url(0, "/start")])
        .flag("--delay", "0ms")
        .flag("--accept-types", "text/html,image/*")
        .flag("--max-size", "100KB");
    let done = job.run();
    done.assert_code(0);
    job.assert_balanced();
    let report = job.report();
    assert_eq!(
        report["skipped"],
        serde_json::json!({"type": 2, "size": 1}),
        "{report:#}"
    );
    assert_eq!(job.count("/urls/failed"), 0);
    done.assert_says("left out");

    let log = job.log();
    let aborted = |path: &str| {
        let url = site.url(0, path);
        let line = log.iter().find(|line| line.uri == url).unwrap();
        (line.annotations.contains("midFetchAbort"), line.status)
    };
    for path in ["/film.mp4", "/note.bin", "/long.html"] {
        assert_eq!(aborted(path), (true, 200), "{path}");
    }
    // a seed is wanted by whoever named it; redirects and errors are no bodies to leave out
    for (path, status) in [
        ("/", 200),
        ("/start", 200),
        ("/pic.png", 200),
        ("/page", 200),
        ("/moved", 301),
        ("/page2", 200),
    ] {
        assert_eq!(aborted(path), (false, status), "{path}");
    }
    let archived: Vec<String> = job.index().into_iter().map(|line| line.fields["url"].clone()).collect();
    for path in ["/film.mp4", "/note.bin", "/long.html"] {
        assert!(!archived.contains(&site.url(0, path)), "{path} is archived");
    }
    assert!(archived.contains(&site.url(0, "/pic.png")));
    assert!(
        !site.log().fetched().contains(&site.url(0, "/behind")),
        "nobody read that page"
    );
    assert!(job.count("/bytes/received") < 1 << 20, "the film was not had");

    let url = site.url(0, "/film.mp4");
    let told = job.command(&["explain", &url, "--max-size", "1MiB", "--reject-types", "video/*"]);
    told.assert_says("--reject-types video/*; --max-size 1MiB");
}

#[test]
fn a_media_type_that_is_none_is_a_mistake() {
    let done = Job::new(&["http://127.0.0.2/"])
        .flag("--accept-types", "text/html,html")
        .run();
    done.assert_code(2);
    done.assert_says("expected a media type such as text/html");
}
