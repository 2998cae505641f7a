//! Command lines of curl against real services.

use std::fs;

use super::{assert_all_good, filled, measured};

#[test]
fn lines_of_curl_reach_a_service_as_curl_would_send_them() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path();
    fs::write(path.join("picture.png"), [0, 0xff, b'$', b'{', 0xfe]).unwrap();
    let lines = [
        ("curl -F note=hello -F 'file=@picture.png;type=image/png' {shop}/uploads", "200"),
        ("curl --json '{\"name\": \"lamp\", \"price\": 2}' {shop}/items", "201"),
        ("curl -d username=ann --data-urlencode 'password=password of ann' {shop}/login", "200"),
        ("curl -T picture.png {shop}/raw", "200"),
        ("curl -u ann:plum '{httpbin}/basic-auth/ann/plum' --compressed", "200"),
        (
            "curl -G --data-urlencode 'q=ein wort' -A browser -e http://a.test/ -b 'a=b; c=d' {httpbin}/cookies",
            "200",
        ),
        ("curl -L {httpbin}/redirect/2", "200"),
        ("curl -I {nginx}/words.txt", "200"),
        ("curl --cacert {certificate} --http2 {secure}/", "200"),
    ];
    for (line, status) in lines {
        let summary = measured(path, &["hit", "-n", "3", "-c", "1", &filled(line)]);
        assert_all_good(&summary);
        assert_eq!(summary["statuses"][status], 3, "{line}: {summary}");
    }
}
