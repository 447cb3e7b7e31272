//! `ETag` and `If-None-Match`: does the caller have these very bytes already?
//!
//! The tag is a hash of the answer's bytes, so it changes with everything that is shown, availability included. Who
//! shows the tag of what would be answered is answered 304 without a body (RFC 9110, 13.1.2).

use actix_web::http::header::{CACHE_CONTROL, CONTENT_TYPE, ETag, EntityTag, Header as _, IfNoneMatch};
use actix_web::{HttpRequest, HttpResponse};
use serde::Serialize;
use sha2::{Digest as _, Sha256};

use crate::errors::{ApiError, Code};

/// How much of the hash the tag has: enough that no two answers share one. Bytes.
const TAG_BYTES: usize = 16;

/// One partner's, and asked for again each time; the tag saves the bytes alone.
const REVALIDATE: &str = "private, no-cache";

/// Answers with the body and its tag, or says that nothing has changed.
///
/// # Errors
/// `INTERNAL_ERROR` for what cannot be written as JSON.
pub fn answer(request: &HttpRequest, body: &impl Serialize) -> Result<HttpResponse, ApiError> {
    let bytes = serde_json::to_vec(body).map_err(|_| {
        let message = "the answer could not be written; send the same request again";
        ApiError::new(Code::InternalError, message)
    })?;
    let tag = tag_of(&bytes);
    let known = is_known(request, &tag);
    let mut response = if known {
        HttpResponse::NotModified()
    } else {
        HttpResponse::Ok()
    };
    response
        .insert_header(ETag(tag))
        .insert_header((CACHE_CONTROL, REVALIDATE));
    if known {
        return Ok(response.finish());
    }
    Ok(response
        .insert_header((CONTENT_TYPE, "application/json"))
        .body(bytes))
}

fn tag_of(bytes: &[u8]) -> EntityTag {
    let hash = Sha256::digest(bytes);
    EntityTag::new_strong(hex::encode(&hash[..TAG_BYTES]))
}

/// Compared weakly, as a read asks for. What is no list of tags is as if it were not there.
fn is_known(request: &HttpRequest, tag: &EntityTag) -> bool {
    match IfNoneMatch::parse(request) {
        Ok(IfNoneMatch::Any) => true,
        Ok(IfNoneMatch::Items(tags)) => tags.iter().any(|shown| shown.weak_eq(tag)),
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

    const BODY: &str = "an answer";

    fn tag() -> String {
        tag_of(br#""an answer""#).to_string()
    }

    fn status(lines: &[HeaderValue]) -> StatusCode {
        let mut request = TestRequest::default();
        for line in lines {
            request = request.append_header((IF_NONE_MATCH, line.clone()));
        }
        answer(&request.to_http_request(), &BODY).unwrap().status()
    }

    #[test]
    fn the_tag_is_strong_and_that_of_the_bytes() {
        let request = TestRequest::default().to_http_request();
        let shown = answer(&request, &BODY).unwrap();
        assert_eq!(shown.headers().get("etag").unwrap(), &tag());
        assert_eq!(shown.headers().get("cache-control").unwrap(), "private, no-cache");
        assert!(tag().starts_with('"') && tag().len() == 34, "{}", tag());
        assert_ne!(tag_of(b"1"), tag_of(b"2"));
    }

    #[test]
    fn who_has_the_bytes_gets_none() {
        let request = TestRequest::default()
            .insert_header((IF_NONE_MATCH, tag()))
            .to_http_request();
        let unchanged = answer(&request, &BODY).unwrap();
        assert_eq!(unchanged.status(), StatusCode::NOT_MODIFIED);
        assert_eq!(unchanged.headers().get("etag").unwrap(), &tag());
        assert_eq!(unchanged.headers().get("content-type"), None);
        assert_eq!(unchanged.into_body().try_into_bytes().unwrap(), "");
    }

    #[test]
    fn tags_are_compared_weakly_wherever_they_stand() {
        let tag = tag();
        for (lines, known) in [
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
            assert_eq!(status(&headers) == StatusCode::NOT_MODIFIED, known, "{lines:?}");
        }
    }

    proptest! {
        #[test]
        fn any_header_is_answered(bytes in proptest::collection::vec(any::<u8>(), 0..80)) {
            if let Ok(line) = HeaderValue::from_bytes(&bytes) {
                let asterisk = line.to_str().is_ok_and(|text| text.trim() == "*");
                prop_assert_eq!(status(&[line]) == StatusCode::NOT_MODIFIED, asterisk);
            }
        }

        #[test]
        fn our_tag_is_found_among_any_others(
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
