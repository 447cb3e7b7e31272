//! Checksum of an IBAN (ISO 13616, with the check digits of ISO 7064 mod 97-10).

/// Characters of an IBAN: country, check digits and the account of the country.
const LENGTHS: std::ops::RangeInclusive<usize> = 15..=34;

/// Whether the text is an IBAN whose check digits fit. Spaces between its groups do not count.
pub(super) fn is_valid(text: &str) -> bool {
    let letters: Vec<u8> = text.bytes().filter(|byte| *byte != b' ').collect();
    let is_framed = LENGTHS.contains(&letters.len())
        && letters[..2].iter().all(u8::is_ascii_uppercase)
        && letters[2..4].iter().all(u8::is_ascii_digit)
        && letters[4..].iter().all(u8::is_ascii_alphanumeric);
    if !is_framed {
        return false;
    }
    let (head, account) = letters.split_at(4);
    let remainder = account.iter().chain(head).fold(0_u32, |remainder, letter| {
        match (*letter as char).to_digit(36) {
            Some(digit @ 0..=9) => (remainder * 10 + digit) % 97,
            // A is 10: a letter stands for two digits.
            Some(number) => (remainder * 100 + number) % 97,
            None => remainder,
        }
    });
    remainder == 1
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn iban_with_wrong_check_digits_is_invalid() {
        for (text, expected) in [
            ("DE89370400440532013000", true),
            ("DE89 3704 0044 0532 0130 00", true),
            ("GB82WEST12345698765432", true),
            ("NO9386011117947", true),
            ("DE88370400440532013000", false),
            ("DE89370400440532013001", false),
            ("DE8937040044053201300O", false),
            ("89DE370400440532013000", false),
            ("DE89", false),
            ("", false),
            ("DEé9370400440532013000", false),
        ] {
            assert_eq!(is_valid(text), expected, "{text}");
        }
    }
}
