/*
 * All that a run has measured, as one object: what the page of results and the site are made of.
 * `{ package, date, node, versions, machine, isPinned, load, minutes, sections }`, where a section is
 * `{ name, tables }` and a table `{ columns, rows }` of the texts that are printed.
 */

const sections = []

export function beginSection(name) {
  sections.push({ name, tables: [] })
}

export function addTable(columns, rows) {
  sections.at(-1)?.tables.push({ columns, rows: rows.map((row) => row.map(String)) })
}

/** The figures so far, beside what is known of the run. */
export const reportOf = (facts) => ({ ...facts, sections })
