//! Conditional GET with `ETag` and `If-None-Match` (RFC 9110, 13.1.2).
//!
//! The tag is a hash of the response body, so it changes with every field, availability included. A request
//! with the current tag gets 304 without a body. The body is built in any case; the tag saves only its
//! transfer.

use actix_web::http::header::{CACHE_CONTROL, CONTENT_TYPE, ETag, EntityTag, Header as _, IfNoneMatch};
use actix_web::{HttpRequest, HttpResponse};
use serde::Serialize;
use sha2::{Digest as _, Sha256};

use crate::api::error::ApiResult;

/// Bytes of the hash in the tag: enough to rule out collisions.
const TAG_BYTES: usize = 16;

/// The response belongs to one partner, and clients must revalidate it each time.
const PRIVATE_NO_CACHE: &str = "private, no-cache";

/// Responds with the body and its tag, or with 304 if the client already has it.
pub(crate) fn conditional_response(request: &HttpRequest, body: &impl Serialize) -> ApiResult {
    let bytes = serde_json::to_vec(body)?;
    let tag = entity_tag(&bytes);
    let is_cached = is_cached_by_client(request, &tag);
    let mut response = if is_cached {
        HttpResponse::NotModified()
    } else {
        HttpResponse::Ok()
    };
    response
        .insert_header(ETag(tag))
        .insert_header((CACHE_CONTROL, PRIVATE_NO_CACHE));
    if is_cached {
        return Ok(response.finish());
    }
    Ok(response
        .insert_header((CONTENT_TYPE, "application/json"))
        .body(bytes))
}

/// The tag of these bytes.
pub(super) fn entity_tag(bytes: &[u8]) -> EntityTag {
    let hash = Sha256::digest(bytes);
    EntityTag::new_strong(hex::encode(&hash[..TAG_BYTES]))
}

/// Whether `If-None-Match` contains the tag. RFC 9110 prescribes the weak comparison for GET. A malformed
/// header counts as absent.
pub(super) fn is_cached_by_client(request: &HttpRequest, tag: &EntityTag) -> bool {
    match IfNoneMatch::parse(request) {
        Ok(IfNoneMatch::Any) => true,
        Ok(IfNoneMatch::Items(tags)) => tags.iter().any(|candidate| candidate.weak_eq(tag)),
        Err(_) => false,
    }
}

#[cfg(test)]
mod tests {
    use actix_web::body::MessageBody as _;
    use actix_web::http::StatusCode;
    use actix_web::http::header::{HeaderValue, IF_NONE_MATCH};
    use actix_web::test::TestRequest;
    use proptest::prelude::*;

    use super::*;

    const BODY: &str = "a response";

    fn tag() -> String {
        entity_tag(br#""a response""#).to_string()
    }

    fn status(lines: &[HeaderValue]) -> StatusCode {
        let mut request = TestRequest::default();
        for line in lines {
            request = request.append_header((IF_NONE_MATCH, line.clone()));
        }
        conditional_response(&request.to_http_request(), &BODY)
            .unwrap()
            .status()
    }

    #[test]
    fn response_has_a_strong_tag_of_its_bytes() {
        let request = TestRequest::default().to_http_request();
        let response = conditional_response(&request, &BODY).unwrap();
        assert_eq!(response.headers().get("etag").unwrap(), &tag());
        assert_eq!(
            response.headers().get("cache-control").unwrap(),
            "private, no-cache"
        );
        assert!(tag().starts_with('"') && tag().len() == 34, "{}", tag());
        assert_ne!(entity_tag(b"1"), entity_tag(b"2"));
    }

    #[test]
    fn matching_tag_gets_304_without_body() {
        let request = TestRequest::default()
            .insert_header((IF_NONE_MATCH, tag()))
            .to_http_request();
        let unchanged = conditional_response(&request, &BODY).unwrap();
        assert_eq!(unchanged.status(), StatusCode::NOT_MODIFIED);
        assert_eq!(unchanged.headers().get("etag").unwrap(), &tag());
        assert_eq!(unchanged.headers().get("content-type"), None);
        assert_eq!(unchanged.into_body().try_into_bytes().unwrap(), "");
    }

    #[test]
    fn tag_in_any_position_is_compared_weakly() {
        let tag = tag();
        for (lines, is_cached) in [
            (vec![tag.clone()], true),
            (vec![format!("W/{tag}")], true),
            (vec![format!("\"other\", W/\"x\" ,{tag}")], true),
            (vec!["\"other\"".to_owned(), tag.clone()], true),
            (vec!["*".to_owned()], true),
            (vec![], false),
            (vec![String::new()], false),
            (vec!["\"other\"".to_owned()], false),
            (vec![tag.trim_matches('"').to_owned()], false),
            (vec![format!("w/{tag}")], false),
            (vec![format!("{tag}x")], false),
            (vec!["\"*\"".to_owned()], false),
        ] {
            let headers: Vec<_> = lines
                .iter()
                .map(|line| HeaderValue::from_str(line).unwrap())
                .collect();
            assert_eq!(
                status(&headers) == StatusCode::NOT_MODIFIED,
                is_cached,
                "{lines:?}"
            );
        }
    }

    proptest! {
        #[test]
        fn any_header_gets_a_response(bytes in proptest::collection::vec(any::<u8>(), 0..80)) {
            if let Ok(line) = HeaderValue::from_bytes(&bytes) {
                let asterisk = line.to_str().is_ok_and(|text| text.trim() == "*");
                prop_assert_eq!(status(&[line]) == StatusCode::NOT_MODIFIED, asterisk);
            }
        }

        #[test]
        fn tag_among_any_others_is_found(
            others in proptest::collection::vec("(W/)?\"[!#-+.-~-]{0,20}\"", 0..6),
            at in any::<prop::sample::Index>(),
            weak in any::<bool>(),
        ) {
            let line = |tags: &[String]| HeaderValue::from_str(&tags.join(", ")).unwrap();
            let mut tags = others.clone();
            tags.insert(at.index(others.len() + 1), format!("{}{}", if weak { "W/" } else { "" }, tag()));
            prop_assert_eq!(status(&[line(&tags)]), StatusCode::NOT_MODIFIED);
            prop_assert_eq!(status(&[line(&others)]), StatusCode::OK);
        }
    }
}
