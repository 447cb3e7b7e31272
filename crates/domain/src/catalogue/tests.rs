//! Pricing tables: requested lines and their price or error.

use super::*;
use crate::fixtures;
use crate::product::{ApprovalPolicy, DenominationRange, SupplyRoute};

type Line<'a> = (&'a str, &'a str, u32);

fn currency(code: &str) -> Currency {
    code.parse().unwrap()
}

fn id(text: &str) -> ProductId {
    text.parse().unwrap()
}

fn product(product_id: &str, code: &str, denominations: &[i64]) -> Product {
    let face_value = |minor: &i64| Amount::from_minor(*minor).of(currency(code));
    Product {
        currency: currency(code),
        denominations: denominations.iter().map(face_value).collect(),
        ..fixtures::product(product_id)
    }
}

fn whole(catalogue: Catalogue) -> Assortment {
    Assortment::new(Arc::new(catalogue), None)
}

fn catalogue() -> Catalogue {
    let range = [500, 10_000, 500].map(Amount::from_minor);
    let ranged = Product {
        denomination_range: Some(DenominationRange::new(range, currency("USD"))),
        ..product("ranged", "USD", &[1_234])
    };
    let discontinued = Product {
        discontinued: true,
        ..product("gone", "USD", &[1_000])
    };
    let bought = Product {
        route: SupplyRoute::Vendor,
        approval: ApprovalPolicy::Always,
        min_validity_days: 30,
        ..product("bought", "USD", &[1_000])
    };
    Catalogue::new([
        product("card", "USD", &[1_000, 2_500]),
        product("huge", "USD", &[i64::MAX / 2]),
        product("euro", "EUR", &[1_000]),
        product("yen", "JPY", &[500]),
        product("dinar", "KWD", &[1_500]),
        ranged,
        discontinued,
        bought,
    ])
}

fn request(lines: &[Line<'_>], currency: Option<Currency>) -> RequestedOrder {
    let line = |(product_id, denomination, quantity): &Line<'_>| RequestedLine {
        product_id: (*product_id).to_owned(),
        denomination: (*denomination).into(),
        quantity: *quantity,
    };
    RequestedOrder {
        lines: lines.iter().map(line).collect(),
        currency,
        fulfilment: Fulfilment::Auto,
        reference: None,
        metadata: None,
    }
}

fn price(lines: &[Line<'_>]) -> Result<PricedOrder, PricingError> {
    let priced = whole(catalogue()).price(&request(lines, None));
    priced.map_err(|failure| failure.first)
}

#[test]
fn order_total_is_the_sum_of_its_lines() {
    let table: &[(&[Line<'_>], &str)] = &[
        (&[("card", "10.00", 1)], "10.00 USD"),
        (&[("card", "10", 3), ("card", "25.0", 2)], "80.00 USD"),
        (&[("card", "10.00", 1), ("card", "10.00", 2)], "30.00 USD"),
        (
            &[
                ("ranged", "5.00", 1),
                ("ranged", "100.00", 1),
                ("ranged", "12.34", 1),
            ],
            "117.34 USD",
        ),
        (&[("yen", "500", 3)], "1500 JPY"),
        (&[("dinar", "1.500", 2)], "3.000 KWD"),
        (&[("card", "10.00", 1_000); 100], "1000000.00 USD"),
    ];
    for (lines, total) in table {
        assert_eq!(format!("{:?}", price(lines).unwrap().total), *total, "{lines:?}");
    }
}

#[test]
fn unsold_product_or_denomination_is_rejected() {
    let denomination = |product_id, line| PricingError::DenominationNotOffered {
        product_id: id(product_id),
        line,
    };
    let unknown = |text: &str| PricingError::ProductNotFound(text.to_owned());
    let table: &[(&[Line<'_>], PricingError)] = &[
        (&[("nothing", "10.00", 1)], unknown("nothing")),
        (&[("No Product!", "10.00", 1)], unknown("No Product!")),
        (
            &[("card", "10.00", 1), ("nothing", "10.00", 1)],
            unknown("nothing"),
        ),
        (&[("gone", "10.00", 1)], PricingError::Discontinued(id("gone"))),
        (&[("card", "10.01", 1)], denomination("card", 0)),
        (&[("card", "25.00", 1), ("card", "0", 1)], denomination("card", 1)),
        (&[("card", "-10.00", 1)], denomination("card", 0)),
        (&[("ranged", "4.50", 1)], denomination("ranged", 0)),
        (&[("ranged", "100.50", 1)], denomination("ranged", 0)),
        (&[("ranged", "7.25", 1)], denomination("ranged", 0)),
        (&[("yen", "501", 1)], denomination("yen", 0)),
    ];
    for (lines, reason) in table {
        assert_eq!(price(lines).unwrap_err(), *reason, "{lines:?}");
    }
}

#[test]
fn every_line_that_cannot_be_priced_is_named() {
    let lines = [
        ("card", "10.00", 1),
        ("nothing", "10.00", 1),
        ("card", "10.01", 1),
        ("euro", "10.00", 1),
        ("card", "ten", 1),
    ];
    let failure = whole(catalogue()).price(&request(&lines, None)).unwrap_err();
    assert_eq!(failure.first, PricingError::ProductNotFound("nothing".to_owned()));
    let refused: Vec<_> = failure.lines.iter().map(|(line, _)| *line).collect();
    assert_eq!(refused, [1, 2, 3, 4], "{failure:?}");
}

#[test]
fn denomination_decimals_follow_the_products_currency() {
    let too_many = |code, exponent| InvalidMoney::TooManyDecimals {
        currency: currency(code),
        exponent,
    };
    let table: &[(Line<'_>, InvalidMoney)] = &[
        (("card", "10.001", 1), too_many("USD", 2)),
        (("yen", "500.5", 1), too_many("JPY", 0)),
        (("dinar", "1.5001", 1), too_many("KWD", 3)),
        (("card", "ten", 1), InvalidMoney::NotANumber),
        (("card", "1e1", 1), InvalidMoney::NotANumber),
        (("card", "99999999999999999999", 1), InvalidMoney::OutOfRange),
    ];
    for (line, error) in table {
        let reason = PricingError::InvalidAmount {
            line: 1,
            error: error.clone(),
        };
        let product_of_same_currency = match line.0 {
            "yen" => ("yen", "500", 1),
            "dinar" => ("dinar", "1.500", 1),
            _ => ("card", "10.00", 1),
        };
        assert_eq!(
            price(&[product_of_same_currency, *line]).unwrap_err(),
            reason,
            "{line:?}"
        );
    }
}

#[test]
fn mixed_currencies_are_rejected() {
    let differs = |product_id, found, expected| PricingError::CurrencyMismatch {
        product_id: id(product_id),
        found: currency(found),
        expected: currency(expected),
    };
    let table: &[(&[Line<'_>], Option<&str>, Option<PricingError>)] = &[
        (&[("card", "10.00", 1)], Some("USD"), None),
        (
            &[("card", "10.00", 1)],
            Some("EUR"),
            Some(differs("card", "USD", "EUR")),
        ),
        (
            &[("euro", "10.00", 1), ("card", "10.00", 1)],
            None,
            Some(differs("card", "USD", "EUR")),
        ),
        (
            &[("card", "10.00", 1), ("euro", "10.00", 1)],
            Some("USD"),
            Some(differs("euro", "EUR", "USD")),
        ),
        // The currency is checked before the face value: 500 yen is not 500.00 dollars.
        (
            &[("card", "10.00", 1), ("yen", "0.5", 1)],
            None,
            Some(differs("yen", "JPY", "USD")),
        ),
    ];
    for (lines, requested, reason) in table {
        let priced = whole(catalogue()).price(&request(lines, requested.map(currency)));
        assert_eq!(
            priced.err().map(|failure| failure.first),
            *reason,
            "{lines:?} in {requested:?}"
        );
    }
}

#[test]
fn overflowing_total_is_rejected() {
    let half = "46116860184273879.03";
    assert!(price(&[("huge", half, 2)]).is_ok());
    for lines in [&[("huge", half, 3)][..], &[("huge", half, 2), ("huge", half, 1)]] {
        assert_eq!(
            price(lines).unwrap_err(),
            PricingError::TotalTooLarge,
            "{lines:?}"
        );
    }
}

#[test]
fn priced_line_copies_its_products_settings() {
    let priced = price(&[("bought", "10.00", 4)]).unwrap();
    let [line] = &priced.lines[..] else {
        panic!("{priced:?}")
    };
    let frozen = (line.route, line.approval, line.min_validity_days, line.quantity);
    assert_eq!(frozen, (SupplyRoute::Vendor, ApprovalPolicy::Always, 30, 4));
    assert_eq!(
        (line.unit_price, line.sku.denomination),
        (Amount::from_minor(1_000), Amount::from_minor(1_000))
    );
}

#[test]
fn adding_a_product_leaves_the_old_catalogue_unchanged() {
    let old = catalogue();
    let new = whole(old.with_product(product("card", "USD", &[9_900])));
    let old = whole(old);
    let requested = || request(&[("card", "99.00", 1)], None);
    assert!(old.price(&requested()).is_err());
    assert_eq!(
        new.price(&requested()).unwrap().total.amount,
        Amount::from_minor(9_900)
    );
    assert_eq!(new.products().count(), old.products().count());
}

#[test]
fn products_outside_the_partners_scope_are_hidden() {
    let in_category = |product_id, category: &str| Product {
        category_id: category.to_owned(),
        ..product(product_id, "USD", &[1_000])
    };
    let products = [("card", "gifts"), ("game", "games"), ("film", "films")];
    let all = Arc::new(Catalogue::new(
        products.map(|(id, category)| in_category(id, category)),
    ));
    for (scope, expected) in [
        (None, &["card", "film", "game"][..]),
        (
            Some(r#"{"categories":["games"],"products":["film"]}"#),
            &["film", "game"],
        ),
        (Some(r#"{"products":["card","no-such-product"]}"#), &["card"]),
        (Some("{}"), &[]),
    ] {
        let of_partner = scope.map(|text| Arc::new(serde_json::from_str(text).unwrap()));
        let assortment = Assortment::new(Arc::clone(&all), of_partner);
        let mut ids: Vec<_> = assortment
            .products()
            .map(|product| product.product_id.as_str())
            .collect();
        ids.sort_unstable();
        assert_eq!(ids, expected, "{scope:?}");
        for (product_id, _) in products {
            let within = expected.contains(&product_id);
            assert_eq!(assortment.get(&id(product_id)).is_some(), within, "{product_id}");
            let priced = assortment
                .price(&request(&[(product_id, "10.00", 1)], None))
                .map_err(|failure| failure.first);
            let refused = Err(PricingError::ProductNotFound(product_id.to_owned()));
            assert!(
                if within { priced.is_ok() } else { priced == refused },
                "{product_id}"
            );
        }
    }
}
