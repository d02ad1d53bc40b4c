/** How a page is found, in the browser and in the test of the built index. */
export const SEARCH = {
  options: {
    // A name such as outcome_unknown or clockToleranceSeconds stays one word, and each of its
    // parts is one, too.
    tokenize: (text) => {
      const words = text.split(/[^\p{L}\p{N}_]+/u).filter(Boolean)
      return words.flatMap((word) => {
        const parts = word.split(/_|(?<=[a-z0-9])(?=[A-Z])/).filter(Boolean)
        return parts.length > 1 ? [word, ...parts] : [word]
      })
    },
  },
  searchOptions: {
    boost: { title: 4, text: 1, titles: 1 },
    fuzzy: (term) => (term.length > 3 && !term.includes('_') ? 0.2 : false),
    prefix: true,
    combineWith: 'AND',
    // A reader first asks what to do; figures and reasons of design come last.
    boostDocument: (id) => {
      if (/\/(?:decisions|reference|bench|CHANGELOG)\b/.test(id)) return 0.3
      return /\/(?:faq|policy|operations)\b/.test(id) ? 4 : 1
    },
  },
}
