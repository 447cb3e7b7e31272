//! Build of the service as the program reports it: labels of `vouchsafe_build_info` in its `/metrics`.

use std::collections::BTreeMap;

use bytes::Bytes;
use hyper::{HeaderMap, Method};
use vouchsafe_api_client::Client;
use vouchsafe_api_client::origin::Origin;

/// Series with the build as its labels.
const BUILD_INFO: &str = "vouchsafe_build_info{";

/// Labels of the build, such as `version` and `profile`. Empty if the program does not report them.
pub(crate) async fn read_build_info(admin_url: &str) -> anyhow::Result<BTreeMap<String, String>> {
    let mut client = Client::new(Origin::parse(admin_url)?);
    let response = client
        .call(Method::GET, "/metrics", HeaderMap::new(), Bytes::new())
        .await?;
    Ok(parse_build_info(&String::from_utf8_lossy(&response.body)))
}

/// Values of these labels contain no quotes and no commas.
fn parse_build_info(metrics: &str) -> BTreeMap<String, String> {
    let mut lines = metrics.lines();
    let labels = lines.find_map(|line| line.strip_prefix(BUILD_INFO)?.split_once('}'));
    let Some((labels, _)) = labels else {
        return BTreeMap::new();
    };
    let pairs = labels.split(',').filter_map(|label| label.split_once('='));
    pairs
        .map(|(name, value)| (name.trim().to_owned(), value.trim_matches('"').to_owned()))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_of_the_build_are_parsed() {
        let metrics = "# TYPE vouchsafe_build_info gauge\nvouchsafe_build_info{version=\"0.2.0\",profile=\"release\"} 1\nup 1\n";
        let labels: Vec<_> = parse_build_info(metrics).into_iter().collect();
        let pair = |name: &str, value: &str| (name.to_owned(), value.to_owned());
        assert_eq!(labels, [pair("profile", "release"), pair("version", "0.2.0")]);
        assert!(parse_build_info("up 1\n").is_empty());
    }
}
