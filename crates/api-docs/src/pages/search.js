// Ranking of the search. Tests run it with the index of the site.
"use strict";

const STOP_WORDS = new Set("a an and are can do does for how i in is it my of on the to what when where with".split(" "));

// The words of a query that mean something, without endings.
function searchWords(query) {
  const all = query.toLowerCase().split(/\s+/).filter(Boolean);
  const words = all.filter((word) => !STOP_WORDS.has(word));
  return (words.length ? words : all).map((word) => (word.length > 4 ? word.replace(/(?<!s)s$/, "") : word));
}

// The entries with all words, best first. Titles count most, then headings, then how often the text has the word. Guides come before the
// reference, and schemas last. Keywords are what readers call the subject of a section.
function findEntries(entries, words) {
  const phrase = words.join(" ");
  const rank = ([address, page, heading, text, keywords]) => {
    const [title, section, body, names] = [page, heading, text, keywords ?? ""].map((part) => part.toLowerCase());
    let sum = (section || title).startsWith(phrase) || (!section && body.startsWith(phrase)) ? 8 : 0;
    if (names.split(", ").includes(phrase)) sum += 40;
    for (const word of words) {
      const inTitle = title.includes(word) ? (heading ? 3 : 12) : 0;
      const inHeading = section.includes(word) || names.includes(word) ? 6 : 0;
      const points = inTitle + inHeading + Math.min(body.split(word).length - 1, 4) / 2;
      if (!points) return 0;
      sum += points;
    }
    if (address.includes("/schemas/")) return sum / 4;
    return address.startsWith("/docs/reference") ? sum : sum * 1.5;
  };
  const ranked = entries.map((entry) => [rank(entry), entry]).filter(([points]) => points);
  return ranked.sort((one, other) => other[0] - one[0]).map(([, entry]) => entry);
}
