//! Texts of a product in the language of a reader.

use super::Product;
use super::content::{Texts, Translation};
use crate::language::{AcceptedLanguages, Language};

impl Product {
    /// The languages of the product's texts, its own first.
    pub fn languages(&self) -> impl Iterator<Item = &Language> {
        let own = &self.content.language;
        let others = self.translations.iter().map(|texts| &texts.language);
        std::iter::once(own).chain(others.filter(move |language| *language != own))
    }

    /// The texts in the best language that a client accepts; in the product's own language if none matches.
    #[must_use]
    pub fn texts(&self, accepted: &AcceptedLanguages) -> Texts<'_> {
        let available: Vec<_> = self.languages().collect();
        let chosen = accepted.choose(&available);
        let translation = self
            .translations
            .iter()
            .find(|texts| Some(&texts.language) == chosen);
        // A product may have got the language of one of its translations: its own texts come first.
        match translation.filter(|texts| texts.language != self.content.language) {
            Some(texts) => Texts {
                language: &texts.language,
                description: &texts.description,
                redemption: &texts.redemption,
            },
            None => Texts {
                language: &self.content.language,
                description: &self.content.description,
                redemption: &self.redemption,
            },
        }
    }

    /// Adds or replaces the texts in a language.
    pub fn put_translation(&mut self, translation: Translation) {
        self.remove_translation(&translation.language);
        self.translations.push(translation);
        self.translations.sort_by(|a, b| a.language.cmp(&b.language));
    }

    /// Removes the texts in a language; `false` if there are none.
    pub fn remove_translation(&mut self, language: &Language) -> bool {
        let before = self.translations.len();
        self.translations.retain(|texts| texts.language != *language);
        self.translations.len() < before
    }
}

#[cfg(test)]
mod tests {
    use super::super::content::Redemption;
    use super::*;
    use crate::fixtures;

    fn translation(language: &str, description: &str) -> Translation {
        Translation {
            language: language.parse().unwrap(),
            description: description.to_owned(),
            redemption: Redemption::default(),
        }
    }

    #[test]
    fn texts_are_in_the_best_language_or_in_that_of_the_product() {
        let mut product = Product::new("card".parse().unwrap(), "EUR".parse().unwrap(), fixtures::NOW);
        product.content.description = "card".to_owned();
        for (language, description) in [("fr", "alt"), ("de", "Karte"), ("fr", "carte")] {
            product.put_translation(translation(language, description));
        }
        let tags: Vec<_> = product.languages().map(Language::as_str).collect();
        assert_eq!(tags, ["en", "de", "fr"]);
        for (header, language, description) in [
            ("fr-CA", "fr", "carte"),
            ("de, en", "de", "Karte"),
            ("en, de", "en", "card"),
            ("it", "en", "card"),
            ("", "en", "card"),
        ] {
            let texts = product.texts(&AcceptedLanguages::parse([header]));
            assert_eq!(
                (texts.language.as_str(), texts.description),
                (language, description),
                "{header}"
            );
        }
        let [french, italian] = ["fr", "it"].map(|tag| tag.parse().unwrap());
        assert!(product.remove_translation(&french) && !product.remove_translation(&italian));
        product.content.language = "de".parse().unwrap();
        assert_eq!(
            product.texts(&AcceptedLanguages::parse(["de"])).description,
            "card"
        );
    }
}
