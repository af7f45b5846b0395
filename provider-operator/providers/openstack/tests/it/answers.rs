//! What answers mean, with bodies as Keystone, Glance and what stands before them send them.

use http::{HeaderMap, HeaderName, HeaderValue, StatusCode};
use provider_openstack::answer::error_of;
use provider_plugin::{CloudError, ErrorClass, Quota};

fn error(status: u16, headers: &[(&str, &str)], body: &str) -> CloudError {
    let headers = headers.iter().map(|(name, value)| {
        (
            name.parse::<HeaderName>().unwrap(),
            HeaderValue::from_str(value).unwrap(),
        )
    });
    let headers: HeaderMap = headers.collect();
    error_of(
        "create the image",
        StatusCode::from_u16(status).unwrap(),
        &headers,
        body.as_bytes(),
    )
}

fn page(status: &str, words: &str) -> String {
    format!(
        "<html>\n <head>\n  <title>{status}</title>\n </head>\n <body>\n  <h1>{status}</h1>\n  {words}<br /><br />\n\n\n\n </body>\n</html>"
    )
}

const OVER_SIZE: &str = "Request Entity Too Large: Project f1 is over a limit for [Resource image_size_total is over limit of 8 due to \
                         current usage 9 and delta 1]";

#[test]
fn every_status_has_its_class() {
    for (status, class) in [
        (300, ErrorClass::Unavailable),
        (302, ErrorClass::Unavailable),
        (400, ErrorClass::Invalid),
        (401, ErrorClass::Credentials),
        (403, ErrorClass::Permission),
        (404, ErrorClass::Gone),
        (405, ErrorClass::Unsupported),
        (408, ErrorClass::Unavailable),
        (409, ErrorClass::State),
        (407, ErrorClass::Unavailable),
        (410, ErrorClass::Gone),
        (411, ErrorClass::Invalid),
        (413, ErrorClass::Quota),
        (415, ErrorClass::Invalid),
        (416, ErrorClass::Unavailable),
        (421, ErrorClass::Unavailable),
        (422, ErrorClass::Invalid),
        (423, ErrorClass::Unavailable),
        (425, ErrorClass::Unavailable),
        (451, ErrorClass::Unavailable),
        (429, ErrorClass::Throttled),
        (500, ErrorClass::Unavailable),
        (501, ErrorClass::Unsupported),
        (502, ErrorClass::Unavailable),
        (503, ErrorClass::Unavailable),
        (504, ErrorClass::Unavailable),
        (599, ErrorClass::Unavailable),
    ] {
        assert_eq!(error(status, &[], "").class, class, "{status}");
    }
}

#[test]
fn bounds_are_told_with_their_numbers() {
    let size = error(413, &[], &page("413 Request Entity Too Large", OVER_SIZE));
    assert_eq!(size.class, ErrorClass::Quota);
    let quota = Quota {
        resource: "image_size_total".into(),
        limit: Some(8),
        used: Some(9),
        requested: Some(1),
    };
    assert_eq!(size.quota, Some(Box::new(quota)));
    let busy = error(
        413,
        &[],
        &OVER_SIZE.replace("image_size_total", "image_count_uploading"),
    );
    assert_eq!((busy.class, busy.quota), (ErrorClass::Busy, None));
    let waits = error(413, &[("retry-after", "30")], "slow down");
    assert_eq!(
        (waits.class, waits.retry_after.unwrap().as_secs()),
        (ErrorClass::Throttled, 30)
    );
    let tags = "The limit has been exceeded on the number of allowed image tags. Attempted: 129, Maximum: 128";
    assert_eq!(
        error(413, &[], &page("413 Request Entity Too Large", tags)).class,
        ErrorClass::Invalid
    );
}

#[test]
fn a_bound_that_is_not_named_is_not_told_as_one_of_the_project() {
    let proxy = "<html><head><title>413 Request Entity Too Large</title></head>\r\n<body>\r\n<center><h1>413 Request Entity Too \
                 Large</h1></center>\r\n<hr><center>nginx</center>\r\n</body>\r\n</html>";
    let nameless = error(413, &[("content-type", "text/html")], proxy);
    assert_eq!((nameless.class, &nameless.quota), (ErrorClass::Quota, &None));
    let words =
        "the cloud answered 413: nginx; ask its operator which bound it is, as the answer names none of the project's";
    assert_eq!(nameless.message, words);
    let older = "Denying attempt to upload image because it exceeds the quota: 10 bytes";
    let older = error(413, &[], &page("413 Request Entity Too Large", older)).message;
    assert!(older.ends_with("10 bytes"), "{older}");
    let size = error(413, &[], &page("413 Request Entity Too Large", OVER_SIZE)).message;
    assert!(!size.contains("ask"), "{size}");
}

#[test]
fn bytes_that_a_cloud_looked_into_and_refused_are_told_with_the_options_by_which_it_looks() {
    let words = "Image disk_format iso does not match stream data qcow2";
    let looked = error(415, &[], &page("415 Unsupported Media Type", words));
    assert_eq!(looked.class, ErrorClass::Invalid);
    let told = format!(
        "the cloud answered 415: {words}; correct createOpts.disk_format, or the cloud's require_image_format_match, \
         gpt_safety_checks_nonfatal"
    );
    assert_eq!(looked.message, told);
    let other = error(400, &[], &page("400 Bad Request", "no such format")).message;
    assert!(!other.contains("ask"), "{other}");
}

#[test]
fn a_wait_is_told_in_seconds_or_by_a_date_of_the_clouds_clock() {
    let wait = |headers: &[(&str, &str)]| error(429, headers, "").retry_after.map(|wait| wait.as_secs());
    assert_eq!(wait(&[("retry-after", "120")]), Some(120));
    let date = ("date", "Sun, 01 Mar 2026 10:00:00 GMT");
    assert_eq!(
        wait(&[("retry-after", "Sun, 01 Mar 2026 10:00:30 GMT"), date]),
        Some(30)
    );
    assert_eq!(wait(&[("retry-after", "Sun, 01 Mar 2026 09:00:00 GMT"), date]), None);
    assert_eq!(wait(&[("retry-after", "99999999")]), Some(3600));
    assert_eq!(wait(&[("retry-after", "soon")]), None);
    assert_eq!(wait(&[]), None);
}

#[test]
fn words_for_people_are_found_in_pages_json_and_text() {
    let told = |body: &str| error(500, &[], body).message;
    let html = page(
        "403 Forbidden",
        "You are not &lt;authorized&gt; to complete <b>publicize_image</b> action.",
    );
    assert_eq!(
        told(&html),
        "the cloud answered 500: You are not <authorized> to complete publicize_image action."
    );
    let proxy = "<html><body><h1>503 Service Unavailable</h1>\nNo server is available to handle this request.\n</body></html>\n";
    assert_eq!(
        told(proxy),
        "the cloud answered 500: No server is available to handle this request."
    );
    let keystone = r#"{"error":{"code":401,"message":"The request you have made requires authentication.","title":"Unauthorized"}}"#;
    assert_eq!(
        told(keystone),
        "the cloud answered 500: The request you have made requires authentication."
    );
    assert_eq!(told(r#"{"message":"no","code":"1"}"#), "the cloud answered 500: no");
    assert_eq!(told("plainly no\n"), "the cloud answered 500: plainly no");
    assert_eq!(told(""), "the cloud answered 500: Internal Server Error");
    assert_eq!(told("<p>a < b"), "the cloud answered 500: a");
    let long = told(&page("500", &"so many words ".repeat(100)));
    assert!(long.chars().count() <= 300 && long.ends_with('…'), "{long}");
}

#[test]
fn the_id_of_a_request_is_kept_and_is_a_word() {
    let id = "req-3f9b2c1e-0000-4000-8000-000000000000";
    assert_eq!(
        error(500, &[("x-openstack-request-id", id)], "").request_id.as_deref(),
        Some(id)
    );
    let odd = error(500, &[("x-openstack-request-id", "req-1 <script>")], "").request_id;
    assert_eq!(odd.as_deref(), Some("req-1script"));
    assert_eq!(error(500, &[], "").request_id, None);
}

#[test]
fn an_error_reads_as_a_sentence() {
    let told = error(403, &[], &page("403 Forbidden", "You are not authorized.")).to_string();
    assert_eq!(
        told,
        "unable to create the image: the cloud answered 403: You are not authorized."
    );
}
