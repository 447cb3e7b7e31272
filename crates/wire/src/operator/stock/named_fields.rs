//! CSV texts of few vouchers, as fields with the names of the header. Imports, which may be of any size, use [`super::csv`].

use super::field_splitter::FieldSplitter;
use super::row::LineError;

/// More than a voucher has.
const MAX_FIELDS: usize = 20;

/// The fields of a line: name and value, without empty values.
pub type NamedFields = Vec<(String, String)>;

/// A CSV text with a header.
#[derive(Debug, PartialEq, Eq)]
pub struct NamedLines {
    pub names: Vec<String>,
    /// The lines after the header that are not empty.
    pub lines: Vec<Result<NamedFields, LineError>>,
}

/// Splits a CSV text. Values at the end of a line may be missing. A line with more values than names is an error: a code with a comma
/// that is not quoted would be cut.
///
/// # Errors
/// [`LineError`] of the header.
pub fn split_named_lines(text: &str) -> Result<NamedLines, LineError> {
    let mut splitter = FieldSplitter::<MAX_FIELDS>::default();
    let mut split = |line: &str| {
        let fields = splitter.split(line)?;
        let texts = (0..fields.count).map(|position| fields.get(position).to_owned());
        Ok::<Vec<String>, LineError>(texts.collect())
    };
    let mut lines = text.lines().map(str::trim).filter(|line| !line.is_empty());
    let header = lines.next().map(&mut split).transpose()?.unwrap_or_default();
    let names: Vec<_> = header.iter().map(|name| name.trim().to_owned()).collect();
    let mut named = |line: &str| {
        let values = split(line)?;
        if values.len() > names.len() {
            return Err(LineError::Fields {
                expected: names.len(),
                found: values.len(),
            });
        }
        let fields = names.iter().cloned().zip(values);
        Ok(fields.filter(|(_, value)| !value.is_empty()).collect())
    };
    let lines = lines.map(&mut named).collect();
    Ok(NamedLines { names, lines })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_have_the_names_of_the_header_and_are_never_cut() {
        let text = "code, pin\r\n\"A,B\",1\r\n\r\nC\r\nD,2,E\r\n\"F\r\n";
        let NamedLines { names, lines } = split_named_lines(text).unwrap();
        assert_eq!(names, ["code", "pin"]);
        let field = |name: &str, value: &str| (name.to_owned(), value.to_owned());
        let expected = [
            Ok(vec![field("code", "A,B"), field("pin", "1")]),
            Ok(vec![field("code", "C")]),
            Err(LineError::Fields {
                expected: 2,
                found: 3,
            }),
            Err(LineError::OpenQuote),
        ];
        assert_eq!(lines, expected);
        assert_eq!(split_named_lines("\n").unwrap().lines, []);
        assert_eq!(split_named_lines("\"code\na"), Err(LineError::OpenQuote));
    }
}
